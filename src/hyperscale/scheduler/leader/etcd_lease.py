"""An election in etcd.

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

from hyperscale.runtime.etcd import EtcdAccess, Gateway
from hyperscale.scheduler.leader.election import ElectionUnavailable, Leader

TIMEOUT_S_MAX: Final = 5.0
TIMEOUT_S_MIN: Final = 0.5
TIMEOUTS_PER_TTL: Final = 8
"""A leader renews after a third of the TTL and trusts it for four fifths: in between, three members
that hang can each be waited for, and another one asked."""


def _text(data: str | bytes) -> str:
    return b64encode(data.encode() if isinstance(data, str) else data).decode()


class EtcdLease:
    def __init__(
        self,
        endpoints: Sequence[str],
        node: str,
        address: str,
        ttl_s: float,
        prefix: str,
        access: EtcdAccess,
    ) -> None:
        """etcd counts TTLs in whole seconds, at least one."""
        timeout_s = TIMEOUT_S_MAX
        if len(endpoints) > 1:
            timeout_s = min(timeout_s, max(TIMEOUT_S_MIN, ttl_s / TIMEOUTS_PER_TTL))
        self._gateway = Gateway(endpoints, access, timeout_s, ElectionUnavailable)
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
        granted = await self._gateway.call("/v3/lease/grant", {"TTL": self._ttl_s})
        lease = str(granted["ID"])
        if not await self._create(token, lease, known.get("mod_revision", "0")):
            await self._gateway.call("/v3/lease/revoke", {"ID": lease})
            return None
        self._lease = lease
        return token

    async def renew(self, token: int) -> bool:
        answer = await self._gateway.call("/v3/lease/keepalive", {"ID": self._lease})
        return int(answer.get("result", answer).get("TTL", "0")) > 0

    async def release(self, token: int) -> None:
        await self._gateway.call("/v3/lease/revoke", {"ID": self._lease})

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
        await self._gateway.close()

    async def _create(self, token: int, lease: str, counter_revision: str) -> bool:
        compare = [
            {"key": _text(self._key), "target": "CREATE", "create_revision": "0"},
            {"key": _text(self._counter), "target": "MOD", "mod_revision": counter_revision},
        ]
        puts = [
            {"request_put": {"key": _text(self._key), "value": _text(self._who), "lease": lease}},
            {"request_put": {"key": _text(self._counter), "value": _text(str(token))}},
        ]
        answer = await self._gateway.call("/v3/kv/txn", {"compare": compare, "success": puts})
        return bool(answer.get("succeeded"))

    async def _range(self, key: str) -> dict[str, Any]:
        return await self._gateway.call("/v3/kv/range", {"key": _text(key)})

    async def _watch_deletion(self, revision: int) -> None:
        create = {"create_request": {"key": _text(self._key), "start_revision": str(revision)}}
        async with aclosing(self._gateway.stream("/v3/watch", create)) as messages:
            async for message in messages:
                if _deletes(message):
                    return


def _deletes(message: dict[str, Any]) -> bool:
    events = message.get("result", {}).get("events", [])
    return any(event.get("type") == "DELETE" for event in events)
