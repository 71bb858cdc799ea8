"""The load models, and how one load is shared by several cores.

Each core gets a load of the same model; together they are exactly the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TypeVar

import msgspec

from hyperscale.workload.apportion import apportion
from hyperscale.workload.arrival_models import ArrivalRate, RampingRate
from hyperscale.workload.load_model import LoadModel, Stage
from hyperscale.workload.load_models import (
    SHAPE_LIMIT_S,
    ClosedVUs,
    Load,
    PerVUIterations,
    RampingVUs,
    ShapedVUs,
    SharedIterations,
)

__all__ = [
    "ArrivalRate",
    "ClosedVUs",
    "Load",
    "PerVUIterations",
    "RampingRate",
    "RampingVUs",
    "ShapedVUs",
    "SharedIterations",
    "Stage",
    "left_over",
    "longest_s",
    "split",
    "split_by",
    "split_vus",
]

L = TypeVar("L", bound=LoadModel)


def split_vus(vus: int, cores: int) -> list[int]:
    """Equal shares, the last also takes the remainder: 2000 over 6 is five times 333 and 335."""
    share = vus // cores
    return [share] * (cores - 1) + [vus - share * (cores - 1)]


def split(load: Load, cores: int) -> list[Load]:
    """One share per core, together exactly `load`; fewer shares when there are fewer users."""
    shares = _split(load, max(1, min(cores, load.peak_vus)))
    return [_replace(share, rps=load.rps / len(shares)) for share in shares] if load.rps else shares


def split_by(load: Load, shares: Sequence[int]) -> list[Load]:
    """In proportion to `shares`, together exactly `load`. Raises ValueError where somebody would
    get nothing."""
    whole = sum(shares)
    if isinstance(load, ShapedVUs):
        raise ValueError("a load whose shape is code cannot be split by share")

    def amounts(total: int) -> list[int]:
        return apportion(total, shares)

    _refuse_nothing(amounts(load.peak_vus), shares, f"{load.peak_vus} virtual users")
    changes: list[dict[str, object]] = [
        {"rps": load.rps * share / whole} if load.rps else {} for share in shares
    ]
    parts = _amounts(load, amounts)
    if isinstance(load, SharedIterations):
        _refuse_nothing(parts["vus"], shares, f"{load.iterations} iterations")
    for name, several in parts.items():
        for change, amount in zip(changes, several, strict=True):
            change[name] = amount
    if isinstance(load, (ArrivalRate, RampingRate)):
        for change, share, before in zip(changes, shares, accumulate([0, *shares]), strict=False):
            change |= _rates(load, share / whole)
            change["phase"] = (load.phase + before) / whole  # not all at one instant
    if isinstance(load, RampingVUs):
        targets = [amounts(int(stage.target)) for stage in load.stages]
        for number, change in enumerate(changes):
            change["stages"] = tuple(
                Stage(stage.duration_s, several[number])
                for stage, several in zip(load.stages, targets, strict=True)
            )
    return [_replace(load, **change) for change in changes]


def _refuse_nothing(parts: Sequence[int], shares: Sequence[int], what: str) -> None:
    if min(parts) < 1:
        raise ValueError(
            f"{what} split as {' to '.join(map(str, shares))} leave nothing for one of them"
        )


def _amounts(load: Load, amounts: Callable[[int], list[int]]) -> dict[str, list[int]]:
    match load:
        case RampingVUs():
            return {"start": amounts(load.start)}
        case SharedIterations():
            several = amounts(load.iterations)
            vus = amounts(min(load.vus, load.iterations))
            return {"vus": [*map(min, vus, several)], "iterations": several}
        case ArrivalRate() | RampingRate():
            return {"vus": amounts(load.vus), "max_vus": amounts(load.max_vus)}
    return {"vus": amounts(load.peak_vus)}


def _rates(load: ArrivalRate | RampingRate, share: float) -> dict[str, object]:
    if isinstance(load, ArrivalRate):
        return {"rate": load.rate * share}
    stages = tuple(Stage(stage.duration_s, stage.target * share) for stage in load.stages)
    return {"start": load.start * share, "stages": stages}


def _split(load: Load, cores: int) -> list[Load]:
    if isinstance(load, (ClosedVUs, PerVUIterations)):
        return [_replace(load, vus=vus) for vus in split_vus(load.vus, cores)]
    if isinstance(load, RampingVUs):
        return _split_ramp(load, cores)
    if isinstance(load, SharedIterations):
        return _split_iterations(load, cores)
    if isinstance(load, ShapedVUs):
        return [_replace(load, share=core, shares=cores) for core in range(cores)]
    return _split_arrivals(load, cores)


def longest_s(load: Load) -> float:
    """Seconds from its start, pauses left out, after which a load must be over."""
    planned_s = load.planned_seconds
    if isinstance(load, (SharedIterations, PerVUIterations)):
        planned_s = load.max_duration_s
    elif planned_s is None:
        planned_s = SHAPE_LIMIT_S
    return load.start_time_s + load.warmup_s + planned_s + load.graceful_stop_s


def left_over(shares: Sequence[Load], iterations_done: int) -> list[Load | None]:
    """The shares of a load that goes on elsewhere: None for one that has nothing left to do.

    Models by time are the same as before, they begin later. Of models by iterations it is only
    known how many were done in all, so what is left is spread evenly; users that had a number of
    iterations each now share what is left of them.
    """
    planned = [share.planned_iterations for share in shares]
    if any(iterations is None for iterations in planned):
        return list(shares)
    left = max(0, sum(filter(None, planned)) - iterations_done)
    several = split_vus(left, len(shares)) if left >= len(shares) else [1] * left
    several += [0] * (len(shares) - len(several))
    return [
        _rest(share, iterations) if iterations else None
        for share, iterations in zip(shares, several, strict=True)
    ]


def _rest(share: Load, iterations: int) -> Load:
    assert isinstance(share, (SharedIterations, PerVUIterations))
    common = {name: getattr(share, name) for name in LoadModel.__struct_fields__}
    return SharedIterations(
        min(share.vus, iterations), iterations, max_duration_s=share.max_duration_s, **common
    )


def _split_ramp(load: RampingVUs, cores: int) -> list[Load]:
    starts = split_vus(load.start, cores)
    targets = [split_vus(int(stage.target), cores) for stage in load.stages]
    return [
        _replace(
            load,
            start=starts[core],
            stages=tuple(
                Stage(stage.duration_s, shares[core])
                for stage, shares in zip(load.stages, targets, strict=True)
            ),
        )
        for core in range(cores)
    ]


def _split_iterations(load: SharedIterations, cores: int) -> list[Load]:
    vus = min(load.vus, load.iterations)
    shares = split_vus(vus, min(cores, vus))
    ends = [0]
    for share in shares:
        ends.append(ends[-1] + share)
    bounds = [load.iterations * end // vus for end in ends]
    return [
        _replace(load, vus=share, iterations=end - begin)
        for share, (begin, end) in zip(shares, pairwise(bounds), strict=True)
    ]


def _split_arrivals(load: ArrivalRate | RampingRate, cores: int) -> list[Load]:
    """Arrival number n goes to core n % cores: each share runs at a part of the rate, shifted."""
    shares: list[Load] = []
    caps = split_vus(load.max_vus, cores)
    ready = split_vus(load.vus, cores)
    if ready[-1] > caps[-1]:  # the rest of few users is more than one core may have
        ready = apportion(load.vus, [1] * cores)
    for core in range(cores):
        phase = (core + load.phase) / cores
        if isinstance(load, ArrivalRate):
            shares.append(
                _replace(
                    load, rate=load.rate / cores, phase=phase, vus=ready[core], max_vus=caps[core]
                )
            )
        else:
            stages = tuple(Stage(stage.duration_s, stage.target / cores) for stage in load.stages)
            shares.append(
                _replace(
                    load,
                    stages=stages,
                    start=load.start / cores,
                    phase=phase,
                    vus=ready[core],
                    max_vus=caps[core],
                )
            )
    return shares


def _replace(load: L, **changes: object) -> L:
    return msgspec.structs.replace(load, **changes)
