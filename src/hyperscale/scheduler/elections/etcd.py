"""An election in etcd, over the JSON gateway of its v3 API.

The leader's key lives under an etcd lease and is created in the same transaction that moves the
token counter, compared by revision: of two candidates one sees its transaction fail. The token is
above etcd's revision, so it also grows when the counter was lost. Candidates watch the key.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from hyperscale.scheduler.elections.contract import ElectionUnavailable, Leader
from hyperscale.scheduler.exchange import ExchangeFailed, exchange, streamed

OPERATION_TIMEOUT_S: Final = 5.0


def _text(data: str | bytes) -> str:
    return b64encode(data.encode() if isinstance(data, str) else data).decode()


class EtcdLease:
    def __init__(
        self, endpoints: Sequence[str], node: str, address: str, ttl_s: float, prefix: str
    ) -> None:
        """Endpoints as `http://host:port`. etcd counts TTLs in whole seconds, at least one."""
        self._endpoints = list(endpoints)
        self._who = msgspec.json.encode((node, address))
        self._ttl_s = max(1, round(ttl_s))
        self._key = f"{prefix}/leader"
        self._counter = f"{prefix}/token"
        self._lease = "0"

    async def acquire(self, floor: int) -> int | None:
        answer = await self._range(self._key)
        if answer.get("kvs"):
            return None
        counter = await self._range(self._counter)
        known = counter.get("kvs", [{}])[0]
        revision = int(counter["header"]["revision"])
        before = int(b64decode(known.get("value", "")) or 0)
        token = max(floor, before, revision) + 1
        granted = await self._call("/v3/lease/grant", {"TTL": self._ttl_s})
        lease = str(granted["ID"])
        if not await self._create(token, lease, known.get("mod_revision", "0")):
            await self._call("/v3/lease/revoke", {"ID": lease})
            return None
        self._lease = lease
        return token

    async def renew(self, token: int) -> bool:
        answer = await self._call("/v3/lease/keepalive", {"ID": self._lease})
        return int(answer.get("result", answer).get("TTL", "0")) > 0

    async def release(self, token: int) -> None:
        await self._call("/v3/lease/revoke", {"ID": self._lease})

    async def vacant(self, timeout_s: float) -> None:
        answer = await self._range(self._key)
        if not answer.get("kvs"):
            return
        revision = int(answer["header"]["revision"])
        try:
            async with asyncio.timeout(timeout_s):
                await self._watch_deletion(revision + 1)
        except TimeoutError:
            return

    async def holder(self) -> Leader | None:
        answer = await self._range(self._key)
        if not answer.get("kvs"):
            return None
        counter = await self._range(self._counter)
        token = int(b64decode(counter["kvs"][0]["value"]))
        who = b64decode(answer["kvs"][0]["value"])
        node, address = msgspec.json.decode(who, type=tuple[str, str])
        return Leader(node, address, token)

    async def close(self) -> None:
        """Connections live for one request only."""

    async def _create(self, token: int, lease: str, counter_revision: str) -> bool:
        compare = [
            {"key": _text(self._key), "target": "CREATE", "create_revision": "0"},
            {"key": _text(self._counter), "target": "MOD", "mod_revision": counter_revision},
        ]
        puts = [
            {"request_put": {"key": _text(self._key), "value": _text(self._who), "lease": lease}},
            {"request_put": {"key": _text(self._counter), "value": _text(str(token))}},
        ]
        answer = await self._call("/v3/kv/txn", {"compare": compare, "success": puts})
        return bool(answer.get("succeeded"))

    async def _range(self, key: str) -> dict[str, Any]:
        return await self._call("/v3/kv/range", {"key": _text(key)})

    async def _watch_deletion(self, revision: int) -> None:
        create = {"create_request": {"key": _text(self._key), "start_revision": str(revision)}}
        url = self._endpoints[0] + "/v3/watch"
        buffer = b""
        try:
            async with aclosing(streamed("POST", url, msgspec.json.encode(create))) as chunks:
                async for chunk in chunks:
                    *lines, buffer = (buffer + chunk).split(b"\n")
                    if any(_deletes(line) for line in lines):
                        return
        except (ExchangeFailed, OSError) as error:
            self._turn()
            raise ElectionUnavailable(f"etcd does not answer: {error}") from error

    async def _call(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """On the first endpoint that answers; it is then asked first."""
        body = msgspec.json.encode(request)
        trouble = ""
        for _ in range(len(self._endpoints)):
            try:
                async with asyncio.timeout(OPERATION_TIMEOUT_S):
                    answer = await exchange("POST", self._endpoints[0] + path, body=body)
                if answer.status == 200:
                    return dict(msgspec.json.decode(answer.body))
                trouble = f"status {answer.status}: {answer.body[:200].decode(errors='replace')}"
                if b"lease not found" in answer.body:
                    return {}
            except (ExchangeFailed, TimeoutError, OSError) as error:
                trouble = str(error) or "no answer in time"
            self._turn()
        raise ElectionUnavailable(f"etcd does not answer: {trouble}")

    def _turn(self) -> None:
        self._endpoints.append(self._endpoints.pop(0))


def _deletes(line: bytes) -> bool:
    if not line.strip():
        return False
    events = msgspec.json.decode(line).get("result", {}).get("events", [])
    return any(event.get("type") == "DELETE" for event in events)
