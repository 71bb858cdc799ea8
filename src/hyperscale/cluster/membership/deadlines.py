"""One heap of deadlines for a whole core, so that a tick costs what is due and nothing else.

Each key holds at most one deadline. Setting or cancelling leaves the old heap entry behind under
an outdated token; it is recognised and dropped when it surfaces. A late or doubled timer of the
shell is therefore harmless: nothing fires that is not current and due.
"""

from __future__ import annotations

import heapq
import math
from typing import Generic, TypeVar

Key = TypeVar("Key")


class Deadlines(Generic[Key]):
    __slots__ = ("_current", "_heap", "_next", "_token")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Key]] = []
        self._current: dict[Key, tuple[float, int]] = {}
        self._token = 0
        self._next: float | None = math.inf  # None: look again

    def __len__(self) -> int:
        return len(self._current)

    def __contains__(self, key: Key) -> bool:
        return key in self._current

    def due(self, key: Key) -> float:
        entry = self._current.get(key)
        return entry[0] if entry else math.inf

    def set(self, key: Key, due: float) -> None:
        self._token += 1
        self._current[key] = (due, self._token)
        heapq.heappush(self._heap, (due, self._token, key))
        self._next = None
        if len(self._heap) > 2 * len(self._current) + 64:
            self._compact()

    def set_earlier(self, key: Key, due: float) -> None:
        """Move a deadline forward in time, never back."""
        if due < self.due(key):
            self.set(key, due)

    def cancel(self, key: Key) -> None:
        if self._current.pop(key, None) is not None:
            self._next = None

    @property
    def next(self) -> float:
        """When the earliest current deadline is due; infinity when there is none."""
        if self._next is None:
            self._next = self._look()
        return self._next

    def pop(self, now: float) -> Key | None:
        """Take the earliest key that is due, or None. Ties fire in the order they were set."""
        if self.next > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._current[key]
        self._next = None
        return key

    def _look(self) -> float:
        heap, current = self._heap, self._current
        while heap:
            due, token, key = heap[0]
            entry = current.get(key)
            if entry is not None and entry[1] == token:
                return due
            heapq.heappop(heap)
        return math.inf

    def _compact(self) -> None:
        self._heap = [(due, token, key) for key, (due, token) in self._current.items()]
        heapq.heapify(self._heap)
