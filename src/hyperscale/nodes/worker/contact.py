"""When managers were last in touch, and when a worker must therefore stop its load.

Managers give a silent worker's parts to others after a while (8 s); before that, at `fence_s`, the
worker has ended them. What counts is an answer over TCP, the transport of commands, dated when the
question was asked: that is when a manager surely heard us. Probes over UDP prove nothing: who
answers them may be unable to command us.

Not every answer will do: a manager cut off together with us answers as ever, while the others give
our work away, and one that follows a leader we cannot reach is no help either. So it must be one
that leads, which takes a lease of a majority; or it must be sure that nobody led at some moment.
Of that there are two proofs. A majority of managers supported no leader at that moment, each by
its own word. Or our leader itself says that it leads no more, and a majority knows of no later
term. Whoever leads next counts our silence from when it takes over, which is later.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

NEVER = float("-inf")


class _Word(NamedTuple):
    """What a manager that does not lead said last."""

    asked_at: float
    free_since: float  # from then until it was asked no leader acted by its support
    term: int


class Contact:
    def __init__(self, now: float, fence_s: float) -> None:
        if fence_s <= 0:
            raise ValueError("fence_s must be positive")
        self._fence_s = fence_s
        self._led_at = now
        self._leader, self._term = "", 0
        self._deposed_at: float | None = None
        self._voters: frozenset[str] = frozenset()
        self._words: dict[str, _Word] = {}
        self.heard_at = now
        """The latest moment of which we know that a leader heard us, or that nobody led: asked
        for often, changed now and then."""

    def know(self, voters: Iterable[str]) -> None:
        """All managers that vote, by their ids. Until they are known, any one of them will do."""
        self._voters = frozenset(voters)
        if self._voters:
            self._words = {name: said for name, said in self._words.items() if name in self._voters}
        self._judge()

    def led(self, asked_at: float, manager: str, term: int) -> None:
        """That manager holds the lease of this term, and answered what was asked at that moment."""
        self._led_at = max(self._led_at, asked_at)
        if term >= self._term:
            self._leader, self._term, self._deposed_at = manager, term, None
        self._judge()

    def heard(
        self, asked_at: float, answered_at: float, manager: str, term: int, leaderless_s: float
    ) -> None:
        """That manager does not lead, and has supported no leader for so long."""
        if self._voters and manager not in self._voters:
            return
        known = self._words.get(manager)
        if known is not None and asked_at <= known.asked_at:
            return
        self._words[manager] = _Word(asked_at, answered_at - leaderless_s, term)
        if manager == self._leader and self._deposed_at is None:
            self._deposed_at = answered_at
        self._judge()

    def _judge(self) -> None:
        self.heard_at = max(self._led_at, self._leaderless_at(), self._deposed_all_at())

    def _leaderless_at(self) -> float:
        """The latest moment at which a majority supported no leader."""
        free = [said for said in self._words.values() if said.free_since < said.asked_at]
        for at in sorted((said.asked_at for said in free), reverse=True):
            if sum(said.free_since < at <= said.asked_at for said in free) >= self._majority:
                return at
        return NEVER

    def _deposed_all_at(self) -> float:
        """The latest moment at which our leader had stopped and a majority knew of no later term.
        Managers that are all started again may have promised something before, and wait; but
        whom they had promised it to is among them, and says that it does not lead."""
        if self._deposed_at is None:
            return NEVER
        asked = sorted(w.asked_at for w in self._words.values() if w.term <= self._term)
        if len(asked) < self._majority or asked[-self._majority] < self._deposed_at:
            return NEVER
        return asked[-self._majority]

    @property
    def _majority(self) -> int:
        return len(self._voters) // 2 + 1 if self._voters else 1

    def silent_s(self, now: float) -> float:
        return max(0.0, now - self.heard_at)

    def remaining_s(self, now: float) -> float:
        """How much longer load may run without another answer; never below zero."""
        return max(0.0, self.heard_at + self._fence_s - now)

    def is_fading(self, now: float) -> bool:
        """Half of the time is over: whoever is asked now, it should be everybody."""
        return self.heard_at + self._fence_s - now <= self._fence_s / 2

    def is_cut_off(self, now: float) -> bool:
        return self.heard_at + self._fence_s - now <= 0.0
