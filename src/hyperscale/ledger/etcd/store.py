"""Logs of jobs in etcd: the keys, and the transactions that change them.

    jobs/owner/JOB        who owns it, under that gate's lease; its create revision is the token
    jobs/head/JOB         changes with every event; its create revision tells one life of the id
                          from the next
    jobs/event/JOB/000007 one event
    parts/JOB/NAME/0003   of an event that is too large for one request

An append compares the token and the revision of the head, and writes head and event, in one
transaction: of two that want the same place one fails, and so does whoever owns the job no more.
"""

from __future__ import annotations

import uuid
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from hyperscale.ledger.vsr import Unknown
from hyperscale.runtime.etcd import EtcdAccess, Gateway

PART_BYTES: Final = 512 << 10  # etcd takes requests of 1.5 MiB
PAGE_KEYS: Final = 64
ANSWER_BYTES_MAX: Final = 2 * PAGE_KEYS * PART_BYTES


class Compacted(Exception):
    """etcd does not know any more what changed since then."""


class Written(msgspec.Struct, frozen=True, array_like=True):
    request: str
    payload: bytes
    parts: str = ""


class Change(NamedTuple):
    """A key as it is now; `value` is None where it is gone."""

    kind: Literal["owner", "head", "event"]
    job_id: str
    number: int
    value: bytes | None
    created: int
    revision: int
    lease: str
    written: Written | None = None


class Log(NamedTuple):
    owner: Change | None
    head: Change | None
    events: list[Change]


def _text(data: str | bytes) -> str:
    return b64encode(data.encode() if isinstance(data, str) else data).decode()


def _range_of(prefix: str) -> dict[str, str]:
    """All keys that begin so; the prefix ends with a slash, and `0` follows that."""
    return {"key": _text(prefix), "range_end": _text(prefix[:-1] + "0")}


def _put(key: str, value: str | bytes, **more: str) -> dict[str, Any]:
    return {"request_put": {"key": _text(key), "value": _text(value), **more}}


def _delete(**where: str) -> dict[str, Any]:
    return {"request_delete_range": where}


class EtcdStore:
    def __init__(
        self, endpoints: Sequence[str], access: EtcdAccess, prefix: str, timeout_s: float
    ) -> None:
        """Everything raises Unknown when etcd does not answer: it may have been done, or not."""
        self._gateway = Gateway(endpoints, access, timeout_s, Unknown, ANSWER_BYTES_MAX)
        self._jobs = f"{prefix}/jobs/"
        self._parts = f"{prefix}/parts/"

    async def close(self) -> None:
        await self._gateway.close()

    # -- a gate's lease ------------------------------------------------------------------------

    async def grant(self, ttl_s: int) -> str:
        return str((await self._gateway.call("/v3/lease/grant", {"TTL": ttl_s}))["ID"])

    async def keep_alive(self, lease: str) -> bool:
        answer = await self._gateway.call("/v3/lease/keepalive", {"ID": lease})
        return int(answer.get("result", answer).get("TTL", "0")) > 0

    async def revoke(self, lease: str) -> None:
        await self._gateway.call("/v3/lease/revoke", {"ID": lease})

    # -- one job -------------------------------------------------------------------------------

    async def claim(self, job_id: str, gate: str, lease: str) -> None:
        """Where nobody owns it; `read` tells who does."""
        key = self._key("owner", job_id)
        free = {"key": _text(key), "target": "CREATE", "create_revision": "0"}
        await self._transact([free], [_put(key, gate, lease=lease)])

    async def release(self, job_id: str, token: int) -> None:
        await self._transact(
            [self._owned(job_id, token)], [_delete(key=_text(self._key("owner", job_id)))]
        )

    async def append(
        self,
        job_id: str,
        token: int,
        head: int,
        number: int,
        written: Written,
        replaces: int | None = None,
    ) -> int | None:
        """The head's revision after it; None when the job is another's or has gone on. `replaces`:
        the number of an event that says nothing any more."""
        value = await self._in_parts(job_id, written)
        changes = [
            _put(self._key("head", job_id), str(number)),
            _put(self._event(job_id, number), value),
        ]
        if replaces is not None:
            changes.append(_delete(key=_text(self._event(job_id, replaces))))
        here = {
            "key": _text(self._key("head", job_id)),
            "target": "MOD",
            "mod_revision": str(head),
        }
        answer = await self._transact([self._owned(job_id, token), here], changes)
        return int(answer["header"]["revision"]) if answer.get("succeeded") else None

    async def rewrite(self, job_id: str, token: int, number: int, written: Written) -> None:
        """Less of an event than there was. Its parts stay: somebody may be about to read them."""
        value = await self._in_parts(job_id, written)
        event = self._event(job_id, number)
        there = {"key": _text(event), "target": "VERSION", "result": "GREATER", "version": "0"}
        await self._transact([self._owned(job_id, token), there], [_put(event, value)])

    async def forget(self, job_id: str, token: int) -> bool:
        """All of it. False: it is another's."""
        quoted = quote(job_id, safe="")
        changes = [
            _delete(key=_text(self._key("owner", job_id))),
            _delete(key=_text(self._key("head", job_id))),
            _delete(**_range_of(f"{self._jobs}event/{quoted}/")),
            _delete(**_range_of(f"{self._parts}{quoted}/")),
        ]
        answer = await self._transact([self._owned(job_id, token)], changes)
        return bool(answer.get("succeeded"))

    async def read(self, job_id: str, after: int = -1) -> Log:
        """What was committed before this call, of events those behind `after`."""
        keys = [{"key": _text(self._key(kind, job_id))} for kind in ("owner", "head")]
        asked = [{"request_range": key} for key in keys]
        answer = await self._transact([], asked)
        found = [kv for one in answer["responses"] for kv in one["response_range"].get("kvs", ())]
        told = {change.kind: change for change in [await self._change(kv) for kv in found]}
        revision = answer["header"]["revision"]
        start = self._event(job_id, after + 1)
        end = _range_of(f"{self._jobs}event/{quote(job_id, safe='')}/")["range_end"]
        events = [one async for one in self._pages(start, end, revision)]
        return Log(told.get("owner"), told.get("head"), events)

    # -- all jobs ------------------------------------------------------------------------------

    async def everything(self) -> tuple[int, list[Change]]:
        """With the revision at which all was so."""
        answer = await self._gateway.call(
            "/v3/kv/range", {**_range_of(self._jobs), "count_only": True}
        )
        revision = answer["header"]["revision"]
        end = _range_of(self._jobs)["range_end"]
        found = [one async for one in self._pages(self._jobs, end, revision)]
        return int(revision), found

    async def watch(self, revision: int) -> AsyncGenerator[tuple[int, list[Change]], None]:
        """What changes from this revision on. Raises Compacted, Unknown."""
        create = {"create_request": {**_range_of(self._jobs), "start_revision": str(revision)}}
        async with aclosing(self._gateway.stream("/v3/watch", create)) as messages:
            async for message in messages:
                result = message.get("result")
                if result is None or result.get("canceled"):
                    if int((result or {}).get("compact_revision", "0")):
                        raise Compacted
                    raise Unknown(f"etcd: the watch ended: {message}"[:300])
                events = result.get("events", [])
                if events:
                    changes = [await self._change(one["kv"], one.get("type")) for one in events]
                    yield int(result["header"]["revision"]), changes

    # -- keys and values -----------------------------------------------------------------------

    def _key(self, kind: str, job_id: str) -> str:
        return f"{self._jobs}{kind}/{quote(job_id, safe='')}"

    def _event(self, job_id: str, number: int) -> str:
        return f"{self._key('event', job_id)}/{number:08d}"

    def _owned(self, job_id: str, token: int) -> dict[str, str]:
        key = _text(self._key("owner", job_id))
        return {"key": key, "target": "CREATE", "create_revision": str(token)}

    async def _transact(
        self, compare: list[dict[str, str]], success: list[dict[str, Any]]
    ) -> dict[str, Any]:
        return await self._gateway.call("/v3/kv/txn", {"compare": compare, "success": success})

    async def _pages(self, start: str, end: str, revision: str) -> AsyncGenerator[Change, None]:
        key, more = _text(start), True
        while more:
            asked = {"key": key, "range_end": end, "limit": str(PAGE_KEYS), "revision": revision}
            answer = await self._gateway.call("/v3/kv/range", asked)
            kvs = answer.get("kvs", [])
            for kv in kvs:
                yield await self._change(kv)
            more = bool(answer.get("more")) and bool(kvs)
            if more:
                key = _text(b64decode(kvs[-1]["key"]) + b"\0")

    async def _in_parts(self, job_id: str, written: Written) -> bytes:
        """Nobody sees the parts before the event that names them is there."""
        data = written.payload
        if len(data) > PART_BYTES:
            name = uuid.uuid4().hex
            for number, start in enumerate(range(0, len(data), PART_BYTES)):
                key = f"{self._parts}{quote(job_id, safe='')}/{name}/{number:06d}"
                value = _text(data[start : start + PART_BYTES])
                await self._gateway.call("/v3/kv/put", {"key": _text(key), "value": value})
            written = Written(written.request, b"", name)
        return msgspec.msgpack.encode(written)

    async def _change(self, kv: dict[str, str], how: str | None = None) -> Change:
        key = b64decode(kv["key"]).decode().removeprefix(self._jobs)
        kind, quoted, *rest = key.split("/")
        job_id = unquote(quoted)
        value = None if how == "DELETE" else b64decode(kv.get("value", ""))
        written = None
        if kind == "event" and value is not None:
            written = msgspec.msgpack.decode(value, type=Written)
            if written.parts:
                start = f"{self._parts}{quoted}/{written.parts}/"
                written = msgspec.structs.replace(written, payload=await self._joined(start))
        return Change(
            kind,  # type: ignore[arg-type]  # there are no others beneath this prefix
            job_id,
            int(rest[0]) if rest else 0,
            value,
            int(kv.get("create_revision", "0")),
            int(kv.get("mod_revision", "0")),
            str(kv.get("lease", "")),
            written,
        )

    async def _joined(self, start: str) -> bytes:
        where, found = _range_of(start), []
        more = True
        while more:
            answer = await self._gateway.call("/v3/kv/range", {**where, "limit": str(PAGE_KEYS)})
            kvs = answer.get("kvs", [])
            found += [b64decode(kv["value"]) for kv in kvs]
            more = bool(answer.get("more")) and bool(kvs)
            if more:
                where["key"] = _text(b64decode(kvs[-1]["key"]) + b"\0")
        return b"".join(found)
