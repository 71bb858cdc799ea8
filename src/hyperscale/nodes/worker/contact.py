"""When managers were last in touch, and when a worker must therefore stop its load (DECISIONS 19).

Managers give a silent worker's parts to others after a while (8 s); before that, at `fence_s`, the
worker has ended them. What counts is an answer, dated when the question was asked: that is when a
manager surely heard us. Words that merely reach us prove nothing about our own.

Not every answer will do: a manager cut off together with us answers as ever, while the others give
our work away. So it must be one that leads, which takes a lease of a quorum, or a quorum of
managers must have answered, each for itself, while none of them leads yet.
"""

from __future__ import annotations

from collections.abc import Iterable


class Contact:
    def __init__(self, now: float, fence_s: float) -> None:
        if fence_s <= 0:
            raise ValueError("fence_s must be positive")
        self._fence_s = fence_s
        self._led_at = now
        self._voters: frozenset[str] = frozenset()
        self._heard: dict[str, float] = {}
        self.heard_at = now
        """The latest moment since when a leader or a majority has answered: asked for often,
        changed now and then."""

    def know(self, voters: Iterable[str]) -> None:
        """All managers that vote, by their ids. Until they are known, any one of them will do."""
        self._voters = frozenset(voters)
        if self._voters:
            self._heard = {name: at for name, at in self._heard.items() if name in self._voters}
        self._judge()

    def led(self, asked_at: float) -> None:
        """A manager that leads answered what was asked at that moment."""
        self._led_at = max(self._led_at, asked_at)
        self._judge()

    def heard(self, asked_at: float, manager: str) -> None:
        """That manager answered, whether it leads or not."""
        if self._voters and manager not in self._voters:
            return
        if asked_at > self._heard.get(manager, float("-inf")):
            self._heard[manager] = asked_at
            self._judge()

    def _judge(self) -> None:
        self.heard_at = max(self._led_at, self._quorum_at())

    def _quorum_at(self) -> float:
        """The latest moment since when a majority has answered."""
        needed = len(self._voters) // 2 + 1 if self._voters else 1
        latest = sorted(self._heard.values(), reverse=True)
        return latest[needed - 1] if len(latest) >= needed else float("-inf")

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
