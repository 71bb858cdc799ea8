"""For how long a part has not moved, though nothing explains it.

The worker judges that, beside the work and by its own clock: a leader that hears nothing of a part
knows nothing of it. Time in which this process itself did not look (it was suspended, its machine
slept) says nothing of the generators and does not count.
"""

from __future__ import annotations

from typing import Final

# A worker looks once a second at least, with each report.
LOOK_S_MAX: Final = 3.0


class Silence:
    def __init__(self, now: float) -> None:
        self.moved = 0
        """Events of the part's own so far: iterations, calls, runs of steps."""
        self._idle_s = 0.0
        self._looked_at = now

    def move(self, amount: int) -> None:
        if amount > 0:
            self.moved += amount
            self._idle_s = 0.0

    def idle_s(self, now: float, *, runs: bool, quiet_s: float) -> float:
        """`runs`: it is to make load. `quiet_s`: for so long from now it need not move, as its
        generators say."""
        passed_s = min(now - self._looked_at, LOOK_S_MAX)
        self._looked_at = now
        if not runs or quiet_s > 0.0:
            self._idle_s = 0.0
        else:
            self._idle_s += max(0.0, passed_s)
        return self._idle_s
