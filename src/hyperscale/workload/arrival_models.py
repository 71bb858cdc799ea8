"""Open models: iterations start on a schedule, whatever the latency.

They take as many virtual users as that needs, up to `max_vus`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from hyperscale.errors import BadInput
from hyperscale.workload.durations import format_duration
from hyperscale.workload.load_model import (
    LoadModel,
    Stage,
    area_under,
    at_least,
    check_stages,
    number_text,
    positive,
    ramp_text,
    vus_text,
)

# Default cap of virtual users for an open model: enough for iterations of ten seconds, which is
# long for a healthy target; the upper bound keeps a typo in `rate` from taking the machine down.
_CAP_ITERATION_S = 10.0
_CAP_MIN, _CAP_MAX = 100, 10_000


class ArrivalRate(LoadModel, frozen=True, tag="arrival-rate"):
    """`rate` iterations started each second for `duration_s`, on schedule."""

    rate: float
    duration_s: float
    max_vus: int
    vus: int = 0  # users made ready before the first arrival
    phase: float = 0.0  # of this share's own interval: shares interleave into one even schedule

    def __post_init__(self) -> None:
        positive("rate", self.rate)
        positive("duration", self.duration_s)
        _check_caps(self.vus, self.max_vus)

    @property
    def planned_seconds(self) -> float:
        return self.duration_s

    @property
    def planned_load(self) -> float:
        return self.load_until(self.duration_s)

    def load_until(self, elapsed_s: float) -> float:
        return self.rate * min(elapsed_s, self.duration_s)

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
        return f"{number_text(self.rate * factor)}/s"

    def arrivals(self, from_s: float = 0.0) -> Iterator[float]:
        """When each iteration is due, in seconds since the load began; none before `from_s`."""
        number = max(0, math.ceil(from_s * self.rate - self.phase))
        last = _without_end(self.rate * self.duration_s)
        while number + self.phase < last:
            yield (number + self.phase) / self.rate
            number += 1

    @property
    def level_text(self) -> str:
        return (
            f"{number_text(self.rate)}/s for {format_duration(self.duration_s)}, "
            f"up to {vus_text(self.max_vus)}"
        )


class RampingRate(LoadModel, frozen=True, tag="ramping-rate"):
    """Iterations started on a schedule whose rate follows straight lines through the `stages`."""

    stages: tuple[Stage, ...]
    max_vus: int
    start: float = 0.0
    vus: int = 0
    phase: float = 0.0

    def __post_init__(self) -> None:
        check_stages(self.stages, "arrivals")
        if self.start < 0:
            raise BadInput(f"rate is {number_text(self.start)}/s but a rate cannot be negative")
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
    def planned_load(self) -> float:
        return self.load_until(self.planned_seconds)

    def load_until(self, elapsed_s: float) -> float:
        return area_under(self.start, self.stages, elapsed_s)

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
            phase=_phase_after(self.load_until(at_s), self.phase, factor),
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
        number = max(0, math.ceil(self.load_until(from_s) - self.phase))
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

    @property
    def level_text(self) -> str:
        return (
            f"{ramp_text(self.start, self.stages)}/s over {format_duration(self.planned_seconds)}, "
            f"up to {vus_text(self.max_vus)}"
        )


def default_max_vus(peak_rate: float) -> int:
    return max(_CAP_MIN, min(_CAP_MAX, math.ceil(peak_rate * _CAP_ITERATION_S)))


def _without_end(arrivals: float) -> float:
    """An arrival due at the very end is not started, also when rounding puts it just before."""
    return arrivals - 1e-9 - arrivals * 1e-12


def _phase_after(due: float, phase: float, factor: float) -> float:
    """Of a schedule that runs `factor` times as fast after so many iterations were `due`: the
    next one is as much of an interval away as it was."""
    missing = (phase - due) % 1.0
    return (due * factor + missing) % 1.0


def _check_caps(vus: int, max_vus: int) -> None:
    at_least("vus", vus, 0)
    at_least("max_vus", max_vus, 1)
    if vus > max_vus:
        raise BadInput(f"vus is {vus} but max_vus only allows {max_vus}")
