"""An election by an advisory lock of PostgreSQL, which its session holds: it is free the moment the
leader's process ends.

Lock and epoch belong together. The session that got the lock raises the epoch before anybody hears
of the term, and the store checks it in every write, so whoever led before, and does not know yet
that its session is gone, changes nothing. A leader that stands still keeps its session; the row
says until when it counts, by the server's clock, and whoever waits ends a session past that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import msgspec

from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.leader.election import ElectionUnavailable, Leader
from hyperscale.scheduler.queue.operations import EPOCH_KEY
from hyperscale.scheduler.store.postgres.connecting import (
    Connection,
    Connections,
    answers,
    connect,
)
from hyperscale.scheduler.store.postgres.schema import migrate
from hyperscale.scheduler.store.tables import EPOCHS

LOOK_S: Final = 0.25
LOCK: Final = 0x6879_7065_7273_6D02

_ACQUIRE: Final = (
    "INSERT INTO elections VALUES ('leader', $1, $2, $3::bigint + 1, clock_timestamp() + $4)"
    " ON CONFLICT (name) DO UPDATE SET node = excluded.node, address = excluded.address,"
    " token = greatest(elections.token + 1, excluded.token), until = excluded.until"
    " RETURNING token"
)
_EPOCH: Final = "SELECT data FROM records WHERE kind = $1 AND key = $2 FOR UPDATE"
_RAISE: Final = (
    "INSERT INTO records VALUES ($1, $2, NULL, $3)"
    " ON CONFLICT (kind, key) DO UPDATE SET data = excluded.data"
)
_RENEW: Final = (
    "UPDATE elections SET until = clock_timestamp() + $2"
    " WHERE name = 'leader' AND token = $1 AND node <> ''"
)
_RELEASE: Final = "UPDATE elections SET node = '' WHERE name = 'leader' AND token = $1"
_HOLDERS: Final = (
    "FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    f" AND classid::bigint = {LOCK >> 32} AND objid::bigint = {LOCK & 0xFFFF_FFFF}"
)
_HOLDER: Final = (
    "SELECT node, address, token, until >= clock_timestamp() AS counts,"
    f" EXISTS (SELECT {_HOLDERS}) AS locked FROM elections WHERE name = 'leader'"
)
_END: Final = f"SELECT pg_terminate_backend(pid) {_HOLDERS}"


class PostgresLease:
    def __init__(self, url: str, node: str, address: str, ttl_s: float) -> None:
        self._url = url
        self._node = node
        self._address = address
        self._ttl_s = ttl_s
        self._connected: Connection | None = None
        self._others = Connections(url)
        """For whoever only looks, and may stop in between: that must not end the session."""

    async def acquire(self, floor: int) -> int | None:
        async with self._session() as session:
            if await session.fetchval("SELECT pg_try_advisory_lock($1)", LOCK):
                return await self._took(session, floor)
            row = await session.fetchrow(_HOLDER)
            if row is not None and row["locked"] and not row["counts"]:
                await session.execute(_END)
            return None

    async def _took(self, session: Connection, floor: int) -> int:
        who = (self._node, self._address)
        async with session.transaction():
            data = await session.fetchval(_EPOCH, EPOCHS.name, EPOCH_KEY)
            epoch = 0 if data is None else msgspec.msgpack.decode(data, type=int)
            ttl = timedelta(seconds=self._ttl_s)
            token = int(await session.fetchval(_ACQUIRE, *who, max(floor, epoch), ttl))
            raised = msgspec.msgpack.encode(token)
            await session.execute(_RAISE, EPOCHS.name, EPOCH_KEY, raised)
        return token

    async def renew(self, token: int) -> bool:
        if self._connected is None or self._connected.is_closed():
            return False  # and with the session the lock
        async with self._session() as session:
            told = await session.execute(_RENEW, token, timedelta(seconds=self._ttl_s))
            return bool(told == "UPDATE 1")

    async def release(self, token: int) -> None:
        if self._connected is None or self._connected.is_closed():
            return
        async with self._session() as session:
            await session.execute(_RELEASE, token)
            await session.execute("SELECT pg_advisory_unlock_all()")

    async def vacant(self, timeout_s: float) -> None:
        for _ in range(max(1, round(timeout_s / LOOK_S))):
            row = await self._look()
            if row is None or not row["locked"] or not row["counts"]:
                return
            await asyncio.sleep(LOOK_S)

    async def holder(self) -> Leader | None:
        row = await self._look()
        if row is None or not (row["node"] and row["locked"] and row["counts"]):
            return None
        return Leader(row["node"], row["address"], row["token"])

    async def _look(self) -> Any:
        try:
            async with self._others.one() as connection:
                return await connection.fetchrow(_HOLDER)
        except StoreUnavailable as error:
            raise ElectionUnavailable(error.message) from error

    async def close(self) -> None:
        self._others.close()
        if self._connected is not None:
            self._connected.terminate()
            self._connected = None

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Connection]:
        """Raises ElectionUnavailable. Whoever stops in between leaves no session behind: what
        became of the question is unknown, and so whether the session has the lock."""
        try:
            with answers():
                async with asyncio.timeout(self._ttl_s):
                    session = await self._open()
                    try:
                        yield session
                    except BaseException:
                        session.terminate()
                        raise
        except StoreUnavailable as error:
            raise ElectionUnavailable(error.message) from error

    async def _open(self) -> Connection:
        if self._connected is None or self._connected.is_closed():
            self._connected = await connect(self._url)
            await migrate(self._connected)  # it may be another database than the store's
        return self._connected
