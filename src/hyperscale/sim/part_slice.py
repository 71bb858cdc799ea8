"""What one simulated generator process runs of a part: iterations at a steady pace."""

from __future__ import annotations

from functools import cache
from typing import Final

from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.metrics.histogram import LATENCY, Sparse
from hyperscale.workload.load import ArrivalRate, Load, RampingRate

ITERATIONS_PER_VU_S: Final = 5.0
LATENCY_S: Final = 0.02
FAILED_SHARE: Final = 0.01


class SimSlice:
    """One core: iterations at a steady pace, one request per step and iteration."""

    def __init__(self, load: Load, core: int) -> None:
        self.load = load
        self.core = core
        self.vus = load.peak_vus
        self._left = load.planned_iterations
        self._owed = 0.0
        self._seq = 0

    @property
    def done(self) -> bool:
        return self._left == 0

    @property
    def rate(self) -> float:
        if isinstance(self.load, ArrivalRate):
            return self.load.rate
        if isinstance(self.load, RampingRate):
            return max(stage.target for stage in self.load.stages) / 2
        return self.vus * ITERATIONS_PER_VU_S

    def hang(self) -> Delta:
        """All users wait for something that never comes; the process itself lives."""
        self._seq += 1
        return Delta(seq=self._seq, vus=self.vus, lag=latencies_of(1, 0.001))

    def make(
        self, since_s: float, until_s: float, steps: list[str], luck: float, cpu: float
    ) -> Delta | None:
        self._owed += self.rate * (until_s - since_s)
        count = int(self._owed)
        if self._left is not None:
            count = min(count, self._left)
            self._left -= count
        self._owed = 0.0 if self.done else self._owed - count
        offered = float(count)
        if self._left is None:
            offered = self.load.load_until(until_s) - self.load.load_until(since_s)
        if not count and not offered:
            return None
        self._seq += 1
        if not count:
            return Delta(seq=self._seq, vus=self.vus, offered=offered)
        failed = int(count * FAILED_SHARE + luck)
        latencies = latencies_of(count, LATENCY_S * (0.5 + round(luck, 1)))
        return Delta(
            seq=self._seq,
            vus=0 if self.done else self.vus,
            iteration=latencies,
            requests=[
                RequestDelta(
                    RequestKey(name), count=count, failed=min(failed, count), service=latencies
                )
                for name in steps
            ],
            cpu=cpu,
            offered=offered,
        )


@cache
def latencies_of(count: int, seconds: float) -> Sparse:
    import numpy as np

    (bucket,) = LATENCY.buckets(np.array([seconds])).tolist()
    total = seconds * count
    return Sparse.of([bucket], [count], seconds, seconds, total, seconds * total)
