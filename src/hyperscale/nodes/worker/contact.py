"""When managers were last in touch, and when a worker must therefore stop its load (DECISIONS 19).

Managers give a silent worker's parts to others after a while (8 s); before that, at `fence_s`, the
worker has ended them. What counts is an answer, dated when the question was asked: that is when a
manager surely heard us. Words that merely reach us prove nothing about our own.
"""

from __future__ import annotations


class Contact:
    def __init__(self, now: float, fence_s: float) -> None:
        if fence_s <= 0:
            raise ValueError("fence_s must be positive")
        self._fence_s = fence_s
        self._heard_at = now

    @property
    def heard_at(self) -> float:
        return self._heard_at

    def heard(self, asked_at: float) -> None:
        """A manager answered what was asked at that moment."""
        self._heard_at = max(self._heard_at, asked_at)

    def silent_s(self, now: float) -> float:
        return max(0.0, now - self._heard_at)

    def remaining_s(self, now: float) -> float:
        """How much longer load may run without another answer; never below zero."""
        return max(0.0, self._heard_at + self._fence_s - now)

    def is_cut_off(self, now: float) -> bool:
        return self.remaining_s(now) <= 0.0
