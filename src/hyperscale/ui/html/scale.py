"""Axes: where a value falls in a chart and which values get a label.

A position is a share of the axis, 0 at its start and 1 at its end, so a chart can be drawn at any
size. Pure arithmetic, no markup.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hyperscale.metrics import ranges

# Round steps for a clock, in seconds; above the last one, whole hours.
_TIME_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_MICROSECOND_MS = 0.001
# From here on the small values of a linear axis could not be told from zero.
_LOG_FROM_RATIO = 25


class Scale:
    def __init__(
        self,
        low: float,
        high: float,
        ticks: Sequence[float],
        *,
        log: bool = False,
        warp: Callable[[float], float] | None = None,
    ) -> None:
        self.low = low
        self.high = high
        self.ticks = list(ticks)
        self.log = log
        self._warp = warp or (math.log10 if log else float)
        self._start = self._warp(low)
        self._length = (self._warp(high) - self._start) or 1.0

    def position(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        return (self._warp(value) - self._start) / self._length


def linear(high: float, count: int = 4) -> Scale:
    """From zero to a round number at or above `high`, with about `count` steps."""
    if not math.isfinite(high) or high <= 0:
        return Scale(0, 1, [0, 1])
    step = _nice(high / count)
    steps = math.ceil(round(high / step, 9))
    return Scale(0, steps * step, [index * step for index in range(steps + 1)])


def whole(high: float, count: int = 3) -> Scale:
    """A linear scale for things that are counted: no tick at half a virtual user."""
    scale = linear(high, count)
    if len(scale.ticks) > 1 and scale.ticks[1] < 1:
        top = max(1, math.ceil(high))
        return Scale(0, top, list(range(top + 1)))
    return scale


def logarithmic(low: float, high: float, count: int = 11) -> Scale:
    """Over the powers of ten around the values, ending at 1, 2 or 5 of the last decade."""
    low = max(low, _MICROSECOND_MS)
    high = max(high, low * 1.01)
    start, stop = _below(low), _above(high)
    candidates = [
        factor * 10.0**power
        for power in range(math.floor(math.log10(start)) - 1, math.ceil(math.log10(stop)) + 1)
        for factor in (1, 2, 5)
    ]
    ticks = [tick for tick in candidates if start * 0.999 <= tick <= stop * 1.001]
    if len(ticks) > count:
        ticks = [tick for tick in ticks if f"{tick:e}"[0] == "1"]
    while len(ticks) > count:
        ticks = ticks[::2]
    return Scale(start, stop, ticks, log=True)


def ranged(first: int, last: int) -> Scale:
    """Over ranges of latency, each as high as any other; the last one is on it too."""
    low, high = ranges.lower_ms(first), ranges.lower_ms(last + 1)
    ticks = [tick for tick in logarithmic(low, high, 9).ticks if low <= tick <= high]
    return Scale(low, high, ticks, warp=ranges.place)


def fitting(low: float, high: float) -> Scale:
    """Linear where that shows all values, else logarithmic. Values are positive."""
    return logarithmic(low, high) if high / low > _LOG_FROM_RATIO else linear(high)


def time(high: float, count: int = 8) -> tuple[Scale, float]:
    """The run from its start to exactly `high` seconds, and the step between two labels."""
    high = high if math.isfinite(high) and high > 0 else 1.0
    step = next(
        (step for step in _TIME_STEPS if high / step <= count),
        math.ceil(high / 3600 / count) * 3600.0,
    )
    ticks = [index * step for index in range(math.floor(high / step + 1e-9) + 1)]
    return Scale(0, high, ticks), step


def _nice(step: float) -> float:
    magnitude = 10.0 ** math.floor(math.log10(step))
    fraction = round(step / magnitude, 9)
    return next(nice for nice in (1, 2, 2.5, 5, 10) if fraction <= nice) * magnitude


def _below(value: float) -> float:
    magnitude = 10.0 ** math.floor(math.log10(value))
    return next(
        (step for step in (5 * magnitude, 2 * magnitude, magnitude) if step <= value * 1.0001),
        magnitude,
    )


def _above(value: float) -> float:
    magnitude = 10.0 ** math.floor(math.log10(value))
    return next(
        step
        for step in (magnitude, 2 * magnitude, 5 * magnitude, 10 * magnitude)
        if step >= value * 0.9999
    )
