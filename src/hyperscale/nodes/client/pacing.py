"""How often a program is told of progress: at most 20 times a second, and never of old news.

Windows that would come too fast are put together per workflow, so the sum of what is told is the
sum of what happened. The last one is always told. Pure: the clock is the caller's.
"""

from __future__ import annotations

from hyperscale.nodes.client.pushes import WindowedStatsPush, together

PER_SECOND = 20.0
BURST = 5.0
EPSILON = 1e-9  # sums of waits differ from one second by rounding


class Pacing:
    def __init__(self, per_second: float = PER_SECOND, burst: float = BURST) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._at: float | None = None
        self._waiting: dict[str, WindowedStatsPush] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def offer(self, push: WindowedStatsPush) -> None:
        waiting = self._waiting.get(push.workflow_id)
        self._waiting[push.workflow_id] = push if waiting is None else together(waiting, push)

    def take(self, now: float) -> WindowedStatsPush | None:
        """The workflow that waits longest, if it is time."""
        self._refill(now)
        if not self._waiting or self._tokens < 1.0 - EPSILON:
            return None
        self._tokens -= 1.0
        return self._waiting.pop(next(iter(self._waiting)))

    def wait_s(self, now: float) -> float | None:
        """Until `take` gives something; None: until something is offered."""
        if not self._waiting:
            return None
        self._refill(now)
        return max(0.0, (1.0 - self._tokens) / self._per_second)

    def last(self, workflow: str) -> WindowedStatsPush | None:
        """What is still to be told of a workflow that has ended, at once."""
        return self._waiting.pop(workflow, None)

    def rest(self) -> list[WindowedStatsPush]:
        waiting, self._waiting = list(self._waiting.values()), {}
        return waiting

    def _refill(self, now: float) -> None:
        if self._at is not None:
            earned = max(0.0, now - self._at) * self._per_second
            self._tokens = min(self._burst, self._tokens + earned)
        self._at = now
