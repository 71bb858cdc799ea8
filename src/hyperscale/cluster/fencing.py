"""Fencing tokens: the number that makes a late command harmless.

A lease tells a leader when to stop; only a token lets the receiver refuse one that did not notice.
Tokens of one scope (a datacenter's managers, the gates) are totally ordered: a new leader has a
higher term, a new owner of a job a higher epoch, a new try of a workflow a higher attempt.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, TypeVar


class Fence(NamedTuple):
    term: int
    epoch: int = 0
    attempt: int = 0


class Ruling(Enum):
    FRESH = "fresh"
    """Higher than anything seen: carry it out, then `answer`."""
    REPEAT = "repeat"
    """The same command again: give the original answer; None means it is still being worked on."""
    STALE = "stale"
    """Somebody newer has spoken: refuse, naming the highest token so the sender can catch up."""
    FULL = "full"
    """No room to remember another key, so nothing new may be started."""


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class FenceResult(Generic[Answer]):
    ruling: Ruling
    highest: Fence | None
    answer: Answer | None = None


@dataclass(slots=True)
class _Seen(Generic[Answer]):
    fence: Fence
    answer: Answer | None = None
    forget_at: float | None = None


class FenceGuard(Generic[Answer]):
    """Highest token per key (a workflow, a job), kept for `tombstone_s` after the end so that a
    delayed duplicate of finished work does not start it again. Holds at most `keys_max` keys: it
    refuses a new one rather than forget one whose time has not come."""

    def __init__(self, tombstone_s: float = 900.0, keys_max: int = 100_000) -> None:
        if tombstone_s <= 0 or keys_max < 1:
            raise ValueError("tombstone_s and keys_max must be positive")
        self._tombstone_s = tombstone_s
        self._keys_max = keys_max
        self._seen: dict[str, _Seen[Answer]] = {}
        self._ended: deque[tuple[float, str, Fence]] = deque()

    def __len__(self) -> int:
        return len(self._seen)

    def admit(self, now: float, key: str, fence: Fence) -> FenceResult[Answer]:
        """Judge and remember in one step, so two equal commands cannot both be fresh."""
        seen = self._seen.get(key)
        if seen is None:
            if len(self._seen) >= self._keys_max and not self.purge(now):
                return FenceResult(Ruling.FULL, None)
            self._seen[key] = _Seen(fence)
            return FenceResult(Ruling.FRESH, fence)
        if fence < seen.fence:
            return FenceResult(Ruling.STALE, seen.fence)
        if fence == seen.fence:
            return FenceResult(Ruling.REPEAT, fence, seen.answer)
        self._seen[key] = _Seen(fence)
        return FenceResult(Ruling.FRESH, fence)

    def answer(self, key: str, fence: Fence, answer: Answer) -> bool:
        """Note what was replied; False if a newer command has taken the key over meanwhile."""
        seen = self._seen.get(key)
        if seen is None or seen.fence != fence:
            return False
        seen.answer = answer
        return True

    def finish(self, now: float, key: str, fence: Fence) -> bool:
        """The work of this command is over: start the tombstone's time."""
        seen = self._seen.get(key)
        if seen is None or seen.fence != fence:
            return False
        if seen.forget_at is None:
            seen.forget_at = now + self._tombstone_s
            self._ended.append((seen.forget_at, key, fence))
        return True

    def highest(self, key: str) -> Fence | None:
        seen = self._seen.get(key)
        return None if seen is None else seen.fence

    def purge(self, now: float) -> int:
        """Forget what ended long enough ago; returns how many. Ends come in the order of time,
        so a look at the oldest is enough."""
        forgotten = 0
        while self._ended and self._ended[0][0] <= now:
            _, key, fence = self._ended.popleft()
            seen = self._seen.get(key)
            if seen is not None and seen.fence == fence:
                del self._seen[key]
                forgotten += 1
        return forgotten
