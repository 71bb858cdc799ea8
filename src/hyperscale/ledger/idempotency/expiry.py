"""When keys fall due, in buckets of time.

A bucket is a plain list of the keys whose time ends within the same second, so a key costs one
pointer, and keys are taken out a few at a time: no pass over everything exists. A bucket also knows
the oldest log record its keys stand on, which tells how much of the log must be kept.
"""

from __future__ import annotations

from heapq import heappop, heappush


class _Bucket:
    __slots__ = ("keys", "lsn_min")

    def __init__(self, lsn: int) -> None:
        self.keys: list[bytes] = []
        self.lsn_min = lsn


class Expiry:
    def __init__(self, width_s: float = 1.0) -> None:
        self._width_s = width_s
        self._buckets: dict[int, _Bucket] = {}
        self._slots: list[int] = []

    def add(self, until: float, key: bytes, lsn: int = 0) -> None:
        slot = int(until / self._width_s)
        bucket = self._buckets.get(slot)
        if bucket is None:
            bucket = self._buckets[slot] = _Bucket(lsn)
            heappush(self._slots, slot)
        elif lsn < bucket.lsn_min:
            bucket.lsn_min = lsn
        bucket.keys.append(key)

    def due(self, now: float, limit: int) -> list[bytes]:
        """Take out up to `limit` keys whose second is over."""
        return self._take(int(now / self._width_s), limit)

    def oldest(self, limit: int) -> list[bytes]:
        """Take out up to `limit` of the keys that fall due next, due or not."""
        return self._take(None, limit)

    def lsn_min(self) -> int | None:
        """Oldest record any key here stands on; None: there is no key."""
        return min((bucket.lsn_min for bucket in self._buckets.values()), default=None)

    def _take(self, before_slot: int | None, limit: int) -> list[bytes]:
        taken: list[bytes] = []
        while self._slots and len(taken) < limit:
            slot = self._slots[0]
            if before_slot is not None and slot >= before_slot:
                break
            keys = self._buckets[slot].keys
            cut = max(0, len(keys) - (limit - len(taken)))
            taken += keys[cut:]
            del keys[cut:]
            if not keys:
                heappop(self._slots)
                del self._buckets[slot]
        return taken
