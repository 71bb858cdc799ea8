"""Groups that are over: what must be remembered until nobody can bring them back.

A member that has not heard of the end might, with others that have forgotten the group, begin it
anew from an old log. So whoever knows of the end remembers it until everybody who was ever a member
has said that it has no log, and for a while longer, because of what may still be under way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import islice

TOLD_AT_ONCE_MAX = 1_000


class Graves:
    def __init__(self, under_way_s: float) -> None:
        self.untold: dict[str, set[str]] = {}  # by group
        self._of: defaultdict[str, set[str]] = defaultdict(set)  # groups, by who is untold
        self._gone: dict[str, float] = {}  # until when
        self._under_way_s = under_way_s

    def has(self, now: float, group: str) -> bool:
        return group in self.untold or now < self._gone.get(group, now)

    def add(self, now: float, group: str, untold: Iterable[str]) -> None:
        self.untold[group] = set(untold)
        for other in self.untold[group]:
            self._of[other].add(group)
        self._forget_if_told(now, group)

    def told(self, now: float, group: str, other: str) -> bool:
        """Whether nobody is left who must be told."""
        if other not in self.untold.get(group, ()):
            return False
        self.untold[group].discard(other)
        self._of[other].discard(group)
        return self._forget_if_told(now, group)

    def to_tell(self, other: str) -> list[str]:
        return sorted(islice(self._of.get(other, ()), TOLD_AT_ONCE_MAX))

    def tidy(self, now: float) -> None:
        # The oldest come first.
        over = [group for group, until in self._gone.items() if until <= now]
        for group in over:
            del self._gone[group]

    def _forget_if_told(self, now: float, group: str) -> bool:
        if self.untold[group]:
            return False
        del self.untold[group]
        self._gone.pop(group, None)
        self._gone[group] = now + self._under_way_s
        return True
