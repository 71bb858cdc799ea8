"""Peers that answered lately: asked first at the next start.

One failure demotes a peer until it answers again. Clocks do not survive a restart, so an
entry is saved with its age, and the time the node was down is not counted: a wrong guess costs
one probe that fails next to others that do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

import msgspec

from hyperscale.cluster.identity import Endpoint


class PeerHealth(Enum):
    HEALTHY = "healthy"
    EXPIRED = "expired"


@dataclass(slots=True)
class _Entry:
    last_seen: float
    successes: int = 1
    health: PeerHealth = PeerHealth.HEALTHY


class _Saved(msgspec.Struct, frozen=True, array_like=True):
    address: Endpoint
    age_s: Annotated[float, msgspec.Meta(ge=0.0)]


class HealthCache:
    __slots__ = ("_entries", "_entries_max", "_lifetime_s")

    def __init__(self, lifetime_s: float = 60.0, entries_max: int = 64) -> None:
        self._lifetime_s = lifetime_s
        self._entries_max = entries_max
        self._entries: dict[Endpoint, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def record_success(self, now: float, address: Endpoint) -> None:
        entry = self._entries.get(address)
        if entry is None:
            self._entries[address] = _Entry(now)
            self._bound()
        else:
            entry.last_seen = now
            entry.successes += 1
            entry.health = PeerHealth.HEALTHY

    def record_failure(self, address: Endpoint) -> None:
        entry = self._entries.get(address)
        if entry is not None:
            entry.health = PeerHealth.EXPIRED

    def healthy(self, now: float) -> list[Endpoint]:
        """Seen within the lifetime and not failed since, the latest first."""
        fresh = [
            (-entry.last_seen, address)
            for address, entry in self._entries.items()
            if entry.health is PeerHealth.HEALTHY and now - entry.last_seen <= self._lifetime_s
        ]
        return [address for _, address in sorted(fresh)]

    def evict_expired(self, now: float) -> None:
        kept = self.healthy(now)
        self._entries = {address: self._entries[address] for address in kept}

    def save(self, now: float) -> bytes:
        entries = [
            _Saved(address, max(0.0, now - self._entries[address].last_seen))
            for address in self.healthy(now)
        ]
        return msgspec.msgpack.encode(entries)

    def load(self, now: float, data: bytes) -> None:
        """What cannot be read is not remembered."""
        try:
            saved = msgspec.msgpack.decode(data, type=list[_Saved])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        for each in saved[: self._entries_max]:
            self._entries.setdefault(each.address, _Entry(now - each.age_s))
        self._bound()

    def _bound(self) -> None:
        while len(self._entries) > self._entries_max:
            oldest = min(self._entries, key=lambda address: self._entries[address].last_seen)
            del self._entries[oldest]
