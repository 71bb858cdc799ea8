"""Load models: how many virtual users or arrivals, when, and for how long.

A model is plain data that travels to the processes that carry it out, each of which gets a share
of it (`load.split`). Durations are seconds and say so in their names.

Closed models (`ClosedVUs`, `RampingVUs`, iterations) start a virtual user's next iteration when
the last one ended. Open models (`ArrivalRate`, `RampingRate`) start iterations on a schedule,
whatever the latency, with as many virtual users as that takes up to `max_vus`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from hyperscale.errors import BadInput
from hyperscale.workload.durations import format_duration

GRACEFUL_STOP_S = 30.0  # as k6: iterations under way at the end may finish for this long
MAX_DURATION_S = 600.0  # as k6: a run by iterations ends here when the target hangs

# Default cap of virtual users for an open model: enough for iterations of ten seconds, which is
# long for a healthy target; the upper bound keeps a typo in `rate` from taking the machine down.
_CAP_ITERATION_S = 10.0
_CAP_MIN, _CAP_MAX = 100, 10_000


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

    @property
    def planned_seconds(self) -> float | None:
        """Measured time, warm-up left out; None when the load ends by iterations."""
        return None

    @property
    def planned_iterations(self) -> int | None:
        return None

    @property
    def open_model(self) -> bool:
        return False

    @property
    def start_vus(self) -> int:
        raise NotImplementedError

    @property
    def peak_vus(self) -> int:
        raise NotImplementedError

    def describe(self) -> str:
        raise NotImplementedError

    def rate_words(self, factor: float) -> str:
        """The rate of an open model that was changed while it runs."""
        return f"{_number(100 * factor)} % of the plan"


class ClosedVUs(LoadModel, frozen=True, tag="closed"):
    """`vus` users, each repeating the workflow until `duration_s` is over."""

    vus: int
    duration_s: float

    def __post_init__(self) -> None:
        _at_least("vus", self.vus, 1)
        _positive("duration", self.duration_s)

    @property
    def planned_seconds(self) -> float:
        return self.duration_s

    @property
    def start_vus(self) -> int:
        return self.vus

    @property
    def peak_vus(self) -> int:
        return self.vus

    def describe(self) -> str:
        return f"{_vus(self.vus)} for {format_duration(self.duration_s)}"


class RampingVUs(LoadModel, frozen=True, tag="ramping-vus"):
    """Users added and removed along straight lines through the `stages`."""

    stages: tuple[Stage, ...]
    start: int = 0

    def __post_init__(self) -> None:
        _check_stages(self.stages, "VUs")
        _at_least("vus", self.start, 0)
        if any(stage.target != int(stage.target) for stage in self.stages):
            raise BadInput("a stage has a part of a VU as its target", "use whole numbers")
        if self.peak_vus < 1:
            raise BadInput("the stages never reach one VU", "give a stage a target of at least 1")
        if self.warmup_s and self.start < 1:
            raise BadInput(
                "warmup runs at the level the stages start from, which is 0 VUs",
                "set vus to the level to start from",
            )

    @property
    def planned_seconds(self) -> float:
        return math.fsum(stage.duration_s for stage in self.stages)

    @property
    def start_vus(self) -> int:
        return self.start

    @property
    def peak_vus(self) -> int:
        return int(max(self.start, *(stage.target for stage in self.stages)))

    def vus_at(self, elapsed_s: float) -> int:
        """Users that should be running `elapsed_s` after the load began."""
        began_s, level = 0.0, float(self.start)
        for duration_s, target in self.stages:
            if elapsed_s < began_s + duration_s:
                return math.floor(
                    level + (target - level) * (elapsed_s - began_s) / duration_s + 0.5
                )
            began_s, level = began_s + duration_s, target
        return int(level)

    def describe(self) -> str:
        return f"{_ramp(self.start, self.stages)} VUs over {format_duration(self.planned_seconds)}"


class ArrivalRate(LoadModel, frozen=True, tag="arrival-rate"):
    """`rate` iterations started each second for `duration_s`, on schedule."""

    rate: float
    duration_s: float
    max_vus: int
    vus: int = 0  # users made ready before the first arrival
    phase: float = 0.0  # of this share's own interval: shares interleave into one even schedule

    def __post_init__(self) -> None:
        _positive("rate", self.rate)
        _positive("duration", self.duration_s)
        _check_caps(self.vus, self.max_vus)

    @property
    def planned_seconds(self) -> float:
        return self.duration_s

    @property
    def open_model(self) -> bool:
        return True

    @property
    def start_vus(self) -> int:
        return self.vus

    @property
    def peak_vus(self) -> int:
        return self.max_vus

    def at_rate(self, factor: float, at_s: float) -> ArrivalRate:
        """Faster or slower from `at_s` on: the part of an interval that has passed is kept."""
        phase = _phase_after(self.rate * at_s, self.phase, factor)
        return msgspec.structs.replace(self, rate=self.rate * factor, phase=phase)

    def rate_words(self, factor: float) -> str:
        return f"{_number(self.rate * factor)}/s"

    def arrivals(self, from_s: float = 0.0) -> Iterator[float]:
        """When each iteration is due, in seconds since the load began; none before `from_s`."""
        number = max(0, math.ceil(from_s * self.rate - self.phase))
        last = _without_end(self.rate * self.duration_s)
        while number + self.phase < last:
            yield (number + self.phase) / self.rate
            number += 1

    def describe(self) -> str:
        return (
            f"{_number(self.rate)}/s for {format_duration(self.duration_s)}, "
            f"up to {_vus(self.max_vus)}"
        )


class RampingRate(LoadModel, frozen=True, tag="ramping-rate"):
    """Iterations started on a schedule whose rate follows straight lines through the `stages`."""

    stages: tuple[Stage, ...]
    max_vus: int
    start: float = 0.0
    vus: int = 0
    phase: float = 0.0

    def __post_init__(self) -> None:
        _check_stages(self.stages, "arrivals")
        if self.start < 0:
            raise BadInput(f"rate is {_number(self.start)}/s but a rate cannot be negative")
        if max(self.start, *(stage.target for stage in self.stages)) <= 0:
            raise BadInput("the stages never start an iteration", "give a stage a rate above 0")
        if self.warmup_s and self.start <= 0:
            raise BadInput(
                "warmup runs at the rate the stages start from, which is 0/s",
                "set rate to the level to start from",
            )
        _check_caps(self.vus, self.max_vus)

    @property
    def planned_seconds(self) -> float:
        return math.fsum(stage.duration_s for stage in self.stages)

    @property
    def open_model(self) -> bool:
        return True

    @property
    def start_vus(self) -> int:
        return self.vus

    @property
    def peak_vus(self) -> int:
        return self.max_vus

    def at_rate(self, factor: float, at_s: float) -> RampingRate:
        """As `ArrivalRate.at_rate`, for all stages."""
        return msgspec.structs.replace(
            self,
            start=self.start * factor,
            stages=tuple(Stage(stage.duration_s, stage.target * factor) for stage in self.stages),
            phase=_phase_after(self._area(at_s), self.phase, factor),
        )

    def arrivals(self, from_s: float = 0.0) -> Iterator[float]:
        """When each iteration is due: where the area under the rate reaches the next number."""
        levels = [self.start, *(stage.target for stage in self.stages)]
        areas = [
            stage.duration_s * (before + after) / 2
            for stage, (before, after) in zip(self.stages, pairwise(levels), strict=True)
        ]
        last = _without_end(math.fsum(areas))
        began_s, area, rate = 0.0, 0.0, self.start
        number = max(0, math.ceil(self._area(from_s) - self.phase))
        for (duration_s, target), stage_area in zip(self.stages, areas, strict=True):
            slope = (target - rate) / duration_s if duration_s else 0.0
            while (wanted := number + self.phase) < last and (
                missing := wanted - area
            ) < stage_area:
                # root of rate*x + slope*x²/2 = missing, in the form that loses no digits
                root = rate + math.sqrt(max(0.0, rate * rate + 2 * slope * missing))
                yield began_s + (2 * missing / root if root else 0.0)
                number += 1
            began_s, area, rate = began_s + duration_s, area + stage_area, target

    def _area(self, until_s: float) -> float:
        """Iterations due until then."""
        began_s, area, rate = 0.0, 0.0, self.start
        for duration_s, target in self.stages:
            span_s = min(duration_s, until_s - began_s)
            if span_s < 0:
                break
            if duration_s:
                area += span_s * (rate + (target - rate) * span_s / duration_s / 2)
            began_s, rate = began_s + duration_s, target
        return area

    def describe(self) -> str:
        return (
            f"{_ramp(self.start, self.stages)}/s over {format_duration(self.planned_seconds)}, "
            f"up to {_vus(self.max_vus)}"
        )


class SharedIterations(LoadModel, frozen=True, tag="shared-iterations"):
    """`iterations` in all, taken by `vus` users as each becomes free."""

    vus: int
    iterations: int
    max_duration_s: float = MAX_DURATION_S

    def __post_init__(self) -> None:
        _at_least("vus", self.vus, 1)
        _at_least("iterations", self.iterations, 1)
        _positive("max_duration", self.max_duration_s)

    @property
    def planned_iterations(self) -> int:
        return self.iterations

    @property
    def start_vus(self) -> int:
        return self.vus

    @property
    def peak_vus(self) -> int:
        return self.vus

    def describe(self) -> str:
        noun = "iteration" if self.iterations == 1 else "iterations"
        return (
            f"{self.iterations:,} {noun} by {_vus(self.vus)}, "
            f"at most {format_duration(self.max_duration_s)}"
        )


class PerVUIterations(LoadModel, frozen=True, tag="per-vu-iterations"):
    """`iterations` by each of `vus` users."""

    vus: int
    iterations: int
    max_duration_s: float = MAX_DURATION_S

    def __post_init__(self) -> None:
        _at_least("vus", self.vus, 1)
        _at_least("iterations_per_vu", self.iterations, 1)
        _positive("max_duration", self.max_duration_s)

    @property
    def planned_iterations(self) -> int:
        return self.vus * self.iterations

    @property
    def start_vus(self) -> int:
        return self.vus

    @property
    def peak_vus(self) -> int:
        return self.vus

    def describe(self) -> str:
        noun = "iteration" if self.iterations == 1 else "iterations"
        return (
            f"{self.iterations:,} {noun} by each of {_vus(self.vus)}, "
            f"at most {format_duration(self.max_duration_s)}"
        )


Load = ClosedVUs | RampingVUs | ArrivalRate | RampingRate | SharedIterations | PerVUIterations


def default_max_vus(peak_rate: float) -> int:
    return max(_CAP_MIN, min(_CAP_MAX, math.ceil(peak_rate * _CAP_ITERATION_S)))


def _phase_after(due: float, phase: float, factor: float) -> float:
    """Of a schedule that runs `factor` times as fast after so many iterations were `due`: the
    next one is as much of an interval away as it was."""
    missing = (phase - due) % 1.0
    return (due * factor + missing) % 1.0


def _without_end(arrivals: float) -> float:
    """An arrival due at the very end is not started, also when rounding puts it just before."""
    return arrivals - 1e-9 - arrivals * 1e-12


def _at_least(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{name} is {value!r} but must be a whole number")
    if value < least:
        raise BadInput(f"{name} is {value} but must be at least {least}")


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise BadInput(f"{name} is {_number(value)} but must be above 0")


def _check_caps(vus: int, max_vus: int) -> None:
    _at_least("vus", vus, 0)
    _at_least("max_vus", max_vus, 1)
    if vus > max_vus:
        raise BadInput(f"vus is {vus} but max_vus only allows {max_vus}")


def _check_stages(stages: Sequence[Stage], noun: str) -> None:
    if not stages:
        raise BadInput("stages is empty", "write stages such as [('30s', 100), ('1m', 100)]")
    for stage in stages:
        if stage.target < 0 or not math.isfinite(stage.target):
            raise BadInput(f"a stage has {_number(stage.target)} {noun} as its target")
    if sum(stage.duration_s for stage in stages) <= 0:
        raise BadInput("the stages take no time", "give a stage a duration above 0s")


def _ramp(start: float, stages: Sequence[Stage]) -> str:
    levels = [start, *(stage.target for stage in stages)]
    if len(levels) > 5:
        levels = [start, max(levels), levels[-1]]
    return " → ".join(_number(level) for level in levels)


def _vus(count: int) -> str:
    return f"{count:,} VU" if count == 1 else f"{count:,} VUs"


def _number(value: float) -> str:
    text = f"{value:,.3f}"
    return text.rstrip("0").rstrip(".")
