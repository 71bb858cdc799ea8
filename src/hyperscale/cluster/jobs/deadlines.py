"""When to look again: one deadline per concern, the earliest first."""

from __future__ import annotations

import heapq

Concern = tuple[str, ...]


class Deadlines:
    """A heap with replaced entries left in it until they come up, at most as many as live ones."""

    def __init__(self) -> None:
        self._at: dict[Concern, float] = {}
        self._heap: list[tuple[float, Concern]] = []

    def set(self, concern: Concern, at: float | None) -> None:
        if at is None:
            self._at.pop(concern, None)
        elif self._at.get(concern) != at:
            self._at[concern] = at
            heapq.heappush(self._heap, (at, concern))
            if len(self._heap) > 64 + 2 * len(self._at):
                self._heap = [(when, what) for what, when in self._at.items()]
                heapq.heapify(self._heap)

    def due(self, now: float) -> list[Concern]:
        """What has come due; each is forgotten, whoever looks sets it again."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, concern = heapq.heappop(self._heap)
            if self._at.get(concern) == at:
                del self._at[concern]
                found.append(concern)
        return found

    def next(self) -> float | None:
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def clear(self) -> None:
        self._at.clear()
        self._heap.clear()
