"""Addresses through which a node finds its cluster.

A seed is an address, not yet a node: it becomes one when it answers an exchange. Until then it
is asked for ever with growing pauses and a warning after a minute; it is never dead and never
given up. A seed whose node has gone from the view is asked again, which also heals splits that
outlived every memory of the other side. An address that was found, and not configured, is no more
than a hint: it is let go once its node has gone, or when it has been silent for long. Whoever found
it will find it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.cluster.identity import Endpoint, NodeId
from hyperscale.cluster.overload.backoff import grown_s

FOUND_TRIES_MAX = 5


@dataclass(slots=True)
class Seed:
    address: Endpoint
    since: float
    configured: bool = True
    node_id: NodeId | None = None
    failures: int = 0
    warned: bool = False


class Seeds:
    __slots__ = ("_first_s", "_longest_s", "_seeds", "_warning_s")

    def __init__(self, first_s: float, longest_s: float, warning_s: float) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._warning_s = warning_s
        self._seeds: dict[Endpoint, Seed] = {}

    def add(self, now: float, address: Endpoint, configured: bool = True) -> bool:
        if address in self._seeds:
            return False
        self._seeds[address] = Seed(address, now, configured)
        return True

    def drop(self, address: Endpoint) -> None:
        del self._seeds[address]

    def get(self, address: Endpoint) -> Seed | None:
        return self._seeds.get(address)

    def answered(self, address: Endpoint, node_id: NodeId) -> None:
        seed = self._seeds.get(address)
        if seed is not None:
            seed.node_id = node_id
            seed.failures = 0

    def asked_in_vain(self, now: float, address: Endpoint) -> float | None:
        """When to ask again; None when it is no seed of ours."""
        seed = self._seeds.get(address)
        if seed is None:
            return None
        seed.failures += 1
        if not seed.configured and seed.failures >= FOUND_TRIES_MAX:
            self.drop(address)
            return None
        return now + grown_s(self._first_s, seed.failures - 1, self._longest_s)

    def overdue(self, now: float, address: Endpoint) -> float | None:
        """Seconds of silence, once, when it never answered for too long."""
        seed = self._seeds.get(address)
        if seed is None or seed.node_id is not None or seed.warned:
            return None
        silent_s = now - seed.since
        if silent_s < self._warning_s:
            return None
        seed.warned = True
        return silent_s

    @property
    def retry_s(self) -> float:
        return self._longest_s
