"""The last seconds of a run: the rate from totals seen now and then, the latest latency."""

from __future__ import annotations

from collections import deque

from hyperscale.metrics.results import WorkflowResult


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
    def is_open(self) -> bool:
        """There are two moments to compare."""
        return len(self._seen) > 1

    @property
    def per_second(self) -> float:
        if not self.is_open:
            return 0.0
        (start, before), (end, after) = self._seen[0], self._seen[-1]
        return (after - before) / (end - start) if end > start else 0.0


def recent_p95_ms(workflow: WorkflowResult) -> float | None:
    """Of the last interval in which something was answered."""
    for point in reversed(workflow.series):
        if point.requests > point.failed or point.p95_ms:
            return point.p95_ms
    return None
