"""The two sides of a lease: a voter's promise and a leader's sum of promises.

A leader's lease is never longer than what a quorum of promises covers (see `states`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hyperscale.cluster.election.settings import ElectionSettings


@dataclass(frozen=True, slots=True)
class LeasePromise:
    """Until then (own clock) help nobody to leadership but the holder, unless the leader of
    `term` or a later one resigned. Holder None: made before a restart, to whom is forgotten."""

    holder: str | None
    term: int
    until: float

    def blocks(self, now: float, candidate: str, released_term: int = 0) -> bool:
        if now >= self.until or candidate == self.holder:
            return False
        return released_term == 0 or released_term < self.term


class LeaderLease:
    """Which voters promised what to this leader, counted from when it asked them."""

    def __init__(self, quorum: int, settings: ElectionSettings) -> None:
        self._others_needed = quorum - 1
        self._settings = settings
        self._covered_until: dict[str, float] = {}
        self._sent_at: dict[int, float] = {}
        self._round = 0

    def open_round(self, now: float) -> int:
        """A heartbeat is being sent: remember when, forget rounds too old to renew anything."""
        self._round += 1
        self._sent_at[self._round] = now
        oldest = now - self._settings.lease_s
        for number in [n for n, at in self._sent_at.items() if at < oldest]:
            del self._sent_at[number]
        return self._round

    def acknowledge(self, voter: str, round_number: int, promise_s: float) -> None:
        sent_at = self._sent_at.get(round_number)
        if sent_at is not None:
            self.cover(voter, sent_at, promise_s)

    def cover(self, voter: str, asked_at: float, promise_s: float) -> None:
        until = asked_at + self._settings.trusted_s(min(promise_s, self._settings.lease_s))
        self._covered_until[voter] = max(until, self._covered_until.get(voter, -math.inf))

    def covered(self, voter: str, now: float) -> bool:
        return self._covered_until.get(voter, -math.inf) > now

    @property
    def until(self) -> float:
        """End of the time for which a quorum, self included, has promised."""
        if self._others_needed == 0:
            return math.inf
        ends = sorted(self._covered_until.values(), reverse=True)
        if len(ends) < self._others_needed:
            return -math.inf
        return ends[self._others_needed - 1]
