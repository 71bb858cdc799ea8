"""Load models: how many virtual users or arrivals, when, and for how long.

A model is plain data that travels to the processes that carry it out, each of which gets a share
of it (`load.split`). Closed models, here, start a virtual user's next iteration when the last one
ended; the open ones are in `arrival_models`.
"""

from __future__ import annotations

import math

from hyperscale.errors import BadInput
from hyperscale.workload.arrival_models import ArrivalRate, RampingRate
from hyperscale.workload.durations import format_duration
from hyperscale.workload.load_model import (
    LoadModel,
    Stage,
    area_under,
    at_least,
    check_stages,
    positive,
    ramp_text,
    vus_text,
)

MAX_DURATION_S = 600.0  # as k6: a run by iterations ends here when the target hangs
SHAPE_MAX_VUS = 1_000  # unless `max_vus` says otherwise: a slip in shape() takes no machine down
SHAPE_LIMIT_S = 86_400.0  # a shape without a duration that never returns None ends after a day


class ClosedVUs(LoadModel, frozen=True, tag="closed"):
    """`vus` users, each repeating the workflow until `duration_s` is over."""

    vus: int
    duration_s: float

    def __post_init__(self) -> None:
        at_least("vus", self.vus, 1)
        positive("duration", self.duration_s)

    @property
    def planned_seconds(self) -> float:
        return self.duration_s

    @property
    def planned_load(self) -> float:
        return self.load_until(self.duration_s)

    def load_until(self, elapsed_s: float) -> float:
        return self.vus * min(elapsed_s, self.duration_s)

    @property
    def start_vus(self) -> int:
        return self.vus

    @property
    def peak_vus(self) -> int:
        return self.vus

    @property
    def level_text(self) -> str:
        return f"{vus_text(self.vus)} for {format_duration(self.duration_s)}"


class RampingVUs(LoadModel, frozen=True, tag="ramping-vus"):
    """Users added and removed along straight lines through the `stages`."""

    stages: tuple[Stage, ...]
    start: int = 0

    def __post_init__(self) -> None:
        check_stages(self.stages, "VUs")
        at_least("vus", self.start, 0)
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
    def planned_load(self) -> float:
        return self.load_until(self.planned_seconds)

    def load_until(self, elapsed_s: float) -> float:
        return area_under(self.start, self.stages, elapsed_s)

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

    @property
    def level_text(self) -> str:
        return (
            f"{ramp_text(self.start, self.stages)} VUs over {format_duration(self.planned_seconds)}"
        )


class ShapedVUs(LoadModel, frozen=True, tag="shaped-vus"):
    """As many users as the workflow's `shape(elapsed)` says, until it says None.

    Every core asks its own copy of the same function for the whole number and takes its share.
    """

    max_vus: int = SHAPE_MAX_VUS  # of the whole load
    duration_s: float = 0.0  # ends the load before the shape does; 0: the shape alone ends it
    share: int = 0  # which of `shares` this is
    shares: int = 1

    def __post_init__(self) -> None:
        at_least("max_vus", self.max_vus, 1)
        if self.duration_s:
            positive("duration", self.duration_s)
        if self.warmup_s:
            raise BadInput(
                "warmup runs at the level a load starts from, which only shape() knows",
                "let shape() begin with it, or leave warmup out",
            )

    @property
    def planned_seconds(self) -> float | None:
        return self.duration_s or None

    @property
    def planned_load(self) -> float | None:
        return self.load_until(self.duration_s) if self.duration_s else None

    def load_until(self, elapsed_s: float) -> float:
        """Every moment counts the same: how many users it will have, only shape() knows."""
        return min(elapsed_s, self.duration_s or elapsed_s) / self.shares

    @property
    def start_vus(self) -> int:
        return 0

    @property
    def peak_vus(self) -> int:
        return self.vus_of(self.max_vus)

    def vus_of(self, wanted: int) -> int:
        """This share of the users wanted; one more or less moves no user to another core."""
        return (min(wanted, self.max_vus) + self.shares - 1 - self.share) // self.shares

    @property
    def level_text(self) -> str:
        limit = f" for {format_duration(self.duration_s)}" if self.duration_s else ""
        return f"VUs by shape(){limit}, up to {vus_text(self.max_vus)}"


class SharedIterations(LoadModel, frozen=True, tag="shared-iterations"):
    """`iterations` in all, taken by `vus` users as each becomes free."""

    vus: int
    iterations: int
    max_duration_s: float = MAX_DURATION_S

    def __post_init__(self) -> None:
        at_least("vus", self.vus, 1)
        at_least("iterations", self.iterations, 1)
        positive("max_duration", self.max_duration_s)

    @property
    def planned_iterations(self) -> int:
        return self.iterations

    @property
    def planned_load(self) -> float:
        return self.planned_iterations

    @property
    def start_vus(self) -> int:
        return self.vus

    @property
    def peak_vus(self) -> int:
        return self.vus

    @property
    def level_text(self) -> str:
        noun = "iteration" if self.iterations == 1 else "iterations"
        return (
            f"{self.iterations:,} {noun} by {vus_text(self.vus)}, "
            f"at most {format_duration(self.max_duration_s)}"
        )


class PerVUIterations(LoadModel, frozen=True, tag="per-vu-iterations"):
    """`iterations` by each of `vus` users."""

    vus: int
    iterations: int
    max_duration_s: float = MAX_DURATION_S

    def __post_init__(self) -> None:
        at_least("vus", self.vus, 1)
        at_least("iterations_per_vu", self.iterations, 1)
        positive("max_duration", self.max_duration_s)

    @property
    def planned_iterations(self) -> int:
        return self.vus * self.iterations

    @property
    def planned_load(self) -> float:
        return self.planned_iterations

    @property
    def start_vus(self) -> int:
        return self.vus

    @property
    def peak_vus(self) -> int:
        return self.vus

    @property
    def level_text(self) -> str:
        noun = "iteration" if self.iterations == 1 else "iterations"
        return (
            f"{self.iterations:,} {noun} by each of {vus_text(self.vus)}, "
            f"at most {format_duration(self.max_duration_s)}"
        )


Load = (
    ClosedVUs
    | RampingVUs
    | ShapedVUs
    | ArrivalRate
    | RampingRate
    | SharedIterations
    | PerVUIterations
)
