"""What every load model has, and the checks and words they share.

Durations are seconds and say so in their names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from hyperscale.errors import BadInput
from hyperscale.workload.durations import format_duration

GRACEFUL_STOP_S = 30.0  # as k6: iterations under way at the end may finish for this long


class Stage(NamedTuple):
    """A straight line from the level before to `target` within `duration_s`; 0 s is a jump."""

    duration_s: float
    target: float


class LoadModel(msgspec.Struct, frozen=True, kw_only=True):
    """What every model has."""

    start_time_s: float = 0.0  # wait before the load begins
    warmup_s: float = 0.0  # run at the starting level before the clock starts, not counted
    graceful_stop_s: float = GRACEFUL_STOP_S
    think_time_s: tuple[float, float] | None = None  # (shortest, longest) pause between iterations
    pacing_s: float = 0.0  # least time from one iteration's start to the next, per virtual user
    rps: float = 0.0  # most requests per second of all virtual users together; 0: no limit

    @property
    def planned_seconds(self) -> float | None:
        """Measured time, warm-up left out; None when the load ends by iterations."""
        return None

    @property
    def planned_iterations(self) -> int | None:
        return None

    @property
    def planned_load(self) -> float | None:
        """All of it: arrivals, iterations or seconds of users; None when only its end tells."""
        return None

    def load_until(self, elapsed_s: float) -> float:
        """What of the planned load is due by then, of a model by time."""
        raise NotImplementedError

    @property
    def open_model(self) -> bool:
        return False

    @property
    def start_vus(self) -> int:
        raise NotImplementedError

    @property
    def peak_vus(self) -> int:
        raise NotImplementedError

    @property
    def level_text(self) -> str:
        """How many of what, and for how long."""
        raise NotImplementedError

    def rate_words(self, factor: float) -> str:
        """The rate of an open model that was changed while it runs."""
        return f"{number_text(100 * factor)} % of the plan"

    def describe(self) -> str:
        """The load in words, as the plan and the results show it."""
        limit = f", at most {number_text(self.rps)} requests/s" if self.rps else ""
        start = f", from {format_duration(self.start_time_s)} on" if self.start_time_s else ""
        return f"{self.level_text}{limit}{start}"


def at_least(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{name} is {value!r} but must be a whole number")
    if value < least:
        raise BadInput(f"{name} is {value} but must be at least {least}")


def positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise BadInput(f"{name} is {number_text(value)} but must be above 0")


def check_stages(stages: Sequence[Stage], noun: str) -> None:
    if not stages:
        raise BadInput("stages is empty", "write stages such as [('30s', 100), ('1m', 100)]")
    for stage in stages:
        if stage.target < 0 or not math.isfinite(stage.target):
            raise BadInput(f"a stage has {number_text(stage.target)} {noun} as its target")
    if sum(stage.duration_s for stage in stages) <= 0:
        raise BadInput("the stages take no time", "give a stage a duration above 0s")


def area_under(start: float, stages: Sequence[Stage], until_s: float) -> float:
    """Of the straight lines through the stages, up to that time."""
    began_s, area, level = 0.0, 0.0, start
    for duration_s, target in stages:
        span_s = min(duration_s, until_s - began_s)
        if span_s < 0:
            break
        if duration_s:
            area += span_s * (level + (target - level) * span_s / duration_s / 2)
        began_s, level = began_s + duration_s, target
    return area


def ramp_text(start: float, stages: Sequence[Stage]) -> str:
    levels = [start, *(stage.target for stage in stages)]
    if len(levels) > 5:
        levels = [start, max(levels), levels[-1]]
    return " → ".join(number_text(level) for level in levels)


def vus_text(count: int) -> str:
    return f"{count:,} VU" if count == 1 else f"{count:,} VUs"


def number_text(value: float) -> str:
    text = f"{value:,.3f}"
    return text.rstrip("0").rstrip(".")
