"""Which address to try next, and when: Happy Eyeballs (RFC 8305) without any I/O.

    waiting ─► running ─► failed       the next one starts at once
               running ─► connected    the end; those still running are for the caller to drop

While an attempt runs without a word, the next starts beside it after a short while. An address that
failed, or was overtaken by one that started later, rests: for some seconds it comes last.
"""

from __future__ import annotations

from collections.abc import Sequence

STAGGER_S = 0.25  # RFC 8305, 8: the recommended Connection Attempt Delay
REST_S = 10.0


class Attempts:
    """The caller asks `start` whenever `next_at` has come, and says how each attempt went."""

    __slots__ = ("_due", "_resting", "_running", "_waiting")

    def __init__(self, addresses: Sequence[str], resting: dict[str, float]) -> None:
        self._waiting = list(addresses)
        self._running: list[str] = []  # in the order of their start
        self._resting = resting  # address -> until when; belongs to the route
        self._due = 0.0

    @property
    def exhausted(self) -> bool:
        """Every address was tried and failed."""
        return not self._waiting and not self._running

    def next_at(self, now: float) -> float | None:
        """When `start` will give an address; None: no other is left."""
        return max(self._due, now) if self._waiting else None

    def start(self, now: float) -> str | None:
        """The address to connect to now, if it is time for one."""
        if not self._waiting or now < self._due:
            return None
        rested = (one for one in self._waiting if self._resting.get(one, 0.0) <= now)
        address = next(rested, self._waiting[0])
        self._waiting.remove(address)
        self._running.append(address)
        self._due = now + STAGGER_S
        return address

    def failed(self, address: str, now: float) -> None:
        self._running.remove(address)
        self._resting[address] = now + REST_S
        self._due = now

    def connected(self, address: str) -> None:
        self._waiting.clear()
        self._resting.pop(address, None)
        last_start = self._due - STAGGER_S
        for overtaken in self._running[: self._running.index(address)]:
            self._resting[overtaken] = last_start + REST_S


def interleaved(addresses: Sequence[str], turn: int) -> list[str]:
    """The family of the first address and the other one by turns, each in rotation.

    The system put the preferred family first; within a family all are equal, so that each turn
    begins with another and the load spreads over them.
    """
    if len(addresses) == 1:
        return list(addresses)
    preferred_is_six = ":" in addresses[0]
    preferred = [one for one in addresses if (":" in one) == preferred_is_six]
    other = [one for one in addresses if (":" in one) != preferred_is_six]
    preferred, other = _rotated(preferred, turn), _rotated(other, turn)
    both = min(len(preferred), len(other))
    mixed = [one for pair in zip(preferred, other, strict=False) for one in pair]
    return [*mixed, *preferred[both:], *other[both:]]


def _rotated(addresses: list[str], turn: int) -> list[str]:
    first = turn % len(addresses) if addresses else 0
    return [*addresses[first:], *addresses[:first]]
