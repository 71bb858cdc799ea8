"""How loaded is this node: healthy, busy, stressed or overloaded (A-24, fixed per T-6).

The state is the worst of four signals: latency against its own baseline, latency against absolute
bounds, CPU and memory, queue depth. Latency is that of local processing; a round trip over a wide
area is no load of ours and must not be fed in.

*A baseline that cannot be talked into the overload.* The newest samples form the fast window. A
sample reaches the baseline only after it has left the fast window, in blocks, and only if the
node was healthy and the fast window still is. Windows never overlap, so a step is compared with
what was before it for as long as it lasts. One exception: a level that has lasted for
`relearn_after_s` while every other signal is healthy is no overload but what work costs now.

*Outliers.* Fast window and blocks are trimmed means, resources medians of three: one reading
unlike the others changes nothing.

*Hysteresis.* Worse is believed at once, better one step at a time after `recovery_s` of
uninterrupted improvement, and a limit once crossed is left only below `leave_share` of it.

*Trend.* Excess latency that rises steadily over seconds counts one step worse than its level.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from hyperscale.cluster.overload.priority import LoadLevel

Limits = tuple[float, float, float]
"""Strictly above the first is busy, the second stressed, the third overloaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadSettings:
    fast_samples: int = 10
    fast_age_s: float = 10.0
    """Older samples say nothing about now; a node without work is healthy."""

    samples_min: int = 3
    """Fewer are not judged."""

    trimmed_share: float = 0.2
    """Cut off at each end of a window: two of ten."""

    baseline_alpha: float = 0.1
    """Weight of a block of `fast_samples` in the baseline: a memory of about 100 samples."""

    baseline_floor_s: float = 0.005
    """A lower baseline counts as this much: twice 1 ms is noise, and nobody waits for it."""

    excess_limits: Limits = (0.2, 0.5, 1.0)
    """(latency - baseline) / baseline."""

    latency_limits_s: Limits = (0.2, 0.5, 2.0)
    cpu_limits: Limits = (0.70, 0.85, 0.95)
    memory_limits: Limits = (0.70, 0.85, 0.95)
    queue_limits: Limits = (0.70, 0.85, 0.95)
    """Share of the queue's capacity."""

    trend_points: int = 12
    trend_step_s: float = 0.4
    """Points are no closer than this: one per assessment, however often samples come."""

    trend_span_s: float = 5.0
    """A slope over less time than this is no trend."""

    trend_limit_per_s: float = 0.1
    """Excess gained per second."""

    recovery_s: float = 5.0
    leave_share: float = 0.9
    relearn_after_s: float = 600.0

    def __post_init__(self) -> None:
        for name in ("excess", "latency", "cpu", "memory", "queue"):
            limits = getattr(self, f"{name}_limits" + ("_s" if name == "latency" else ""))
            if not 0 < limits[0] < limits[1] < limits[2]:
                raise ValueError(f"limits of {name} must be positive and rising, not {limits}")
        if not 1 <= self.samples_min <= self.fast_samples:
            raise ValueError("samples_min must be between 1 and fast_samples")
        if not 0 <= self.trimmed_share < 0.5:
            raise ValueError("trimmed_share must be at least 0 and below one half")
        if not 0 < self.leave_share <= 1 or not 0 < self.baseline_alpha <= 1:
            raise ValueError("leave_share and baseline_alpha must be above 0 and at most 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Shares between 0 and 1; None is unknown. A worker leaves out `cpu`: its cores are meant to
    be full, and the count of free ones is its admission control."""

    cpu: float | None = None
    memory: float | None = None
    queue: float | None = None


@dataclass(frozen=True, slots=True)
class Assessment:
    """Why the state is what it is, for logs and metrics."""

    load: LoadLevel
    excess: LoadLevel
    latency: LoadLevel
    resources: LoadLevel
    current_s: float | None
    baseline_s: float | None


def trimmed_mean(samples: Sequence[float], share: float) -> float:
    cut = int(len(samples) * share)
    if cut == 0 and len(samples) >= 3 and share > 0:
        cut = 1
    ordered = sorted(samples)
    return fmean(ordered[cut : len(ordered) - cut])


def level(value: float, limits: Limits, held: LoadLevel, leave_share: float) -> LoadLevel:
    """The highest limit exceeded; those of a state that is held are a little lower."""
    found = LoadLevel.HEALTHY
    for step, limit in zip(
        (LoadLevel.BUSY, LoadLevel.STRESSED, LoadLevel.OVERLOADED), limits, strict=True
    ):
        if value > (limit * leave_share if held >= step else limit):
            found = step
    return found


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Least squares, per second."""
    middle_t = fmean(at for at, _ in points)
    middle_v = fmean(value for _, value in points)
    spread = sum((at - middle_t) ** 2 for at, _ in points)
    if spread == 0.0:
        return 0.0
    return sum((at - middle_t) * (value - middle_v) for at, value in points) / spread


class OverloadDetector:
    def __init__(self, settings: OverloadSettings | None = None) -> None:
        self._settings = settings or OverloadSettings()
        self._fast: deque[tuple[float, float]] = deque()
        self._block: list[float] = []
        self._baseline_s: float | None = None
        self._trend: deque[tuple[float, float]] = deque(maxlen=self._settings.trend_points)
        self._readings: dict[str, deque[float]] = {}
        self._load = LoadLevel.HEALTHY
        self._better_since: float | None = None
        self._only_excess_since: float | None = None

    @property
    def load(self) -> LoadLevel:
        return self._load

    def record(self, now: float, latency_s: float) -> None:
        """The local processing of one message took this long."""
        self._fast.append((now, latency_s))
        if len(self._fast) > self._settings.fast_samples:
            self._block.append(self._fast.popleft()[1])
            if len(self._block) == self._settings.fast_samples:
                self._learn()

    def assess(self, now: float, resources: Resources | None = None) -> Assessment:
        """Call every half second or so; `load` keeps what it says in between."""
        current_s = self._current(now)
        excess = self._excess_level(now, current_s)
        latency = LoadLevel.HEALTHY
        if current_s is not None:
            latency = self._level(current_s, self._settings.latency_limits_s)
        strain = self._resource_level(resources or Resources())
        if self._relearned(now, current_s, excess, max(latency, strain)):
            excess = LoadLevel.HEALTHY
        self._settle(now, max(excess, latency, strain))
        return Assessment(self._load, excess, latency, strain, current_s, self._baseline_s)

    # -- latency -----------------------------------------------------------------------------

    def _current(self, now: float) -> float | None:
        oldest = now - self._settings.fast_age_s
        while self._fast and self._fast[0][0] < oldest:
            self._fast.popleft()
        if len(self._fast) < self._settings.samples_min:
            return None
        return trimmed_mean([value for _, value in self._fast], self._settings.trimmed_share)

    def _excess(self, current_s: float) -> float:
        if self._baseline_s is None:
            return 0.0
        return current_s / max(self._baseline_s, self._settings.baseline_floor_s) - 1.0

    def _excess_level(self, now: float, current_s: float | None) -> LoadLevel:
        if current_s is None:
            self._trend.clear()
            return LoadLevel.HEALTHY
        excess = self._excess(current_s)
        if not self._trend or now - self._trend[-1][0] >= self._settings.trend_step_s:
            self._trend.append((now, excess))
        found = self._level(excess, self._settings.excess_limits)
        if found > LoadLevel.HEALTHY and self._rising():
            return LoadLevel(min(found + 1, LoadLevel.OVERLOADED))
        return found

    def _rising(self) -> bool:
        """In both halves of the time looked back on: a step rises in one of them only."""
        points = list(self._trend)
        if len(points) < 6 or points[-1][0] - points[0][0] < self._settings.trend_span_s:
            return False
        half = len(points) // 2
        limit = self._settings.trend_limit_per_s
        return slope(points[:half]) > limit and slope(points[half:]) > limit

    def _learn(self) -> None:
        block, self._block = self._block, []
        settings = self._settings
        seen_s = trimmed_mean(block, settings.trimmed_share)
        if self._baseline_s is None:
            self._baseline_s = seen_s
            return
        fast_s = trimmed_mean([value for _, value in self._fast], settings.trimmed_share)
        if self._load is LoadLevel.HEALTHY and self._excess(fast_s) <= settings.excess_limits[0]:
            self._baseline_s += settings.baseline_alpha * (seen_s - self._baseline_s)

    def _relearned(
        self, now: float, current_s: float | None, excess: LoadLevel, others: LoadLevel
    ) -> bool:
        if excess is LoadLevel.HEALTHY or others is not LoadLevel.HEALTHY or current_s is None:
            self._only_excess_since = None
            return False
        if self._only_excess_since is None:
            self._only_excess_since = now
        if now - self._only_excess_since < self._settings.relearn_after_s:
            return False
        self._only_excess_since = None
        self._baseline_s = current_s
        self._trend.clear()
        return True

    # -- resources and the state as a whole -----------------------------------------------------

    def _resource_level(self, resources: Resources) -> LoadLevel:
        settings = self._settings
        return max(
            self._reading_level("cpu", resources.cpu, settings.cpu_limits),
            self._reading_level("memory", resources.memory, settings.memory_limits),
            self._reading_level("queue", resources.queue, settings.queue_limits),
        )

    def _reading_level(self, name: str, reading: float | None, limits: Limits) -> LoadLevel:
        if reading is None:
            self._readings.pop(name, None)
            return LoadLevel.HEALTHY
        recent = self._readings.setdefault(name, deque(maxlen=3))
        recent.append(reading)
        return self._level(median(recent) if len(recent) == 3 else min(recent), limits)

    def _level(self, value: float, limits: Limits) -> LoadLevel:
        return level(value, limits, self._load, self._settings.leave_share)

    def _settle(self, now: float, seen: LoadLevel) -> None:
        if seen >= self._load:
            self._load = seen
            self._better_since = None
            return
        if self._better_since is None:
            self._better_since = now
        if now - self._better_since >= self._settings.recovery_s:
            self._load = LoadLevel(self._load - 1)
            self._better_since = now if seen < self._load else None
