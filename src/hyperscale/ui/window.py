"""The rate over the last seconds, from totals seen now and then."""

from __future__ import annotations

from collections import deque


class RateWindow:
    """Fed with (time, running total); keeps just enough of them to look `span_s` back."""

    def __init__(self, span_s: float = 3.0) -> None:
        self.span_s = span_s
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, now: float, total: int) -> None:
        seen = self._seen
        if seen and total < seen[-1][1]:
            seen.clear()  # the end of a warm-up starts the count anew
        if seen and now <= seen[-1][0]:
            seen.pop()
        seen.append((now, total))
        while len(seen) > 2 and now - seen[1][0] >= self.span_s:
            seen.popleft()

    @property
    def per_second(self) -> float:
        if len(self._seen) < 2:
            return 0.0
        (start, before), (end, after) = self._seen[0], self._seen[-1]
        return (after - before) / (end - start) if end > start else 0.0
