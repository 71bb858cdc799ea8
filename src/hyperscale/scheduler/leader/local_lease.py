"""An election inside the job store: one row, changed by compare-and-set.

Nobody trusts another machine's clock. A candidate takes over when it has seen the row unchanged for
a whole TTL on its own monotonic clock, or when the row's wall time is past by two TTLs more, which
saves the wait when everything had been down.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import msgspec

from hyperscale.scheduler.errors import StoreUnavailable, VersionConflict
from hyperscale.scheduler.leader.election import ElectionUnavailable, Leader
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Value

KEY: Final = "election"
LOOK_S: Final = 0.25
LONG_PAST_TTLS: Final = 2


class _Row(msgspec.Struct, frozen=True):
    node: str
    """Empty after a resignation."""
    address: str
    token: int
    until_s: float
    ttl_s: float


class LocalLease:
    def __init__(
        self,
        store: Store,
        node: str,
        address: str,
        ttl_s: float,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._node = node
        self._address = address
        self._ttl_s = ttl_s
        self._clock = clock
        self._wall = wall
        self._version = 0
        self._seen: tuple[int, float] = (-1, 0.0)
        self._unanswered: set[bytes] = set()
        """Rows whose writing was not answered, since the last answer: some retries of one term."""

    async def acquire(self, floor: int) -> int | None:
        value, row = await self._read()
        if row is not None and value is not None and self._taken(value, row):
            return None
        token = max(floor, 0 if row is None else row.token) + 1
        return token if await self._put(token, 0 if value is None else value.version) else None

    async def renew(self, token: int) -> bool:
        return await self._put(token, self._version)

    async def release(self, token: int) -> None:
        row = _Row("", "", token, 0.0, self._ttl_s)
        await self._put_row(row, self._version)

    async def vacant(self, timeout_s: float) -> None:
        until = self._clock() + timeout_s
        while self._clock() < until:
            value, row = await self._read()
            if row is None or value is None or self._free(value, row):
                return
            await asyncio.sleep(min(LOOK_S, self._ttl_s / 10))

    async def holder(self) -> Leader | None:
        value, row = await self._read()
        if row is None or value is None or self._free(value, row):
            return None
        return Leader(row.node, row.address, row.token)

    async def close(self) -> None:
        """The store is its opener's to close."""

    def _taken(self, value: Value, row: _Row) -> bool:
        """By somebody else, that is: not by a write of ours whose answer was lost."""
        return not self._free(value, row) and value.data not in self._unanswered

    def _free(self, value: Value, row: _Row) -> bool:
        if not row.node:
            return True
        if self._seen[0] != value.version:
            self._seen = (value.version, self._clock())
        if self._clock() - self._seen[1] >= row.ttl_s:
            return True
        return self._wall() >= row.until_s + LONG_PAST_TTLS * row.ttl_s

    async def _read(self) -> tuple[Value | None, _Row | None]:
        try:
            value = await self._store.get(KEY)
        except StoreUnavailable as error:
            raise ElectionUnavailable(error.message) from error
        return value, None if value is None else msgspec.json.decode(value.data, type=_Row)

    async def _put(self, token: int, version: int) -> bool:
        until_s = self._wall() + self._ttl_s
        return await self._put_row(
            _Row(self._node, self._address, token, until_s, self._ttl_s), version
        )

    async def _put_row(self, row: _Row, version: int) -> bool:
        data = msgspec.json.encode(row)
        try:
            value = await self._store.put(KEY, data, version)
        except VersionConflict:
            return await self._put_again(row)
        except StoreUnavailable as error:
            self._unanswered.add(data)
            raise ElectionUnavailable(error.message) from error
        self._unanswered.clear()
        self._version = value.version
        return True

    async def _put_again(self, row: _Row) -> bool:
        """A write whose answer was lost did happen, when the row says so; then on top of it."""
        value, _ = await self._read()
        if value is None or value.data not in self._unanswered:
            return False
        self._unanswered.discard(value.data)
        return await self._put_row(row, value.version)
