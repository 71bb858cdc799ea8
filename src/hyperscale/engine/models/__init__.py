"""The load models, one file each; `make_pace` picks the one that carries out a load."""

from __future__ import annotations

import random
from typing import Any

from hyperscale.engine.clock import LoadClock
from hyperscale.engine.models.arrivals import ArrivalPace
from hyperscale.engine.models.closed import ClosedPace
from hyperscale.engine.models.iterations import PerVUIterationsPace, SharedIterationsPace
from hyperscale.engine.models.ramping import RampingPace
from hyperscale.engine.models.shape import Shape, ShapedPace
from hyperscale.engine.pace import Pace
from hyperscale.engine.population import Population
from hyperscale.metrics.recorder import WorkflowRecorder
from hyperscale.workload.load import (
    ArrivalRate,
    ClosedVUs,
    Load,
    PerVUIterations,
    RampingRate,
    RampingVUs,
    ShapedVUs,
    SharedIterations,
)

_PACES: dict[type, type[Pace[Any]]] = {
    ClosedVUs: ClosedPace,
    RampingVUs: RampingPace,
    ShapedVUs: ShapedPace,
    ArrivalRate: ArrivalPace,
    RampingRate: ArrivalPace,
    SharedIterations: SharedIterationsPace,
    PerVUIterations: PerVUIterationsPace,
}


def make_pace(
    load: Load,
    clock: LoadClock,
    population: Population,
    recorder: WorkflowRecorder,
    rng: random.Random,
    shape: Shape | None = None,
) -> Pace[Any]:
    """`shape` is the workflow's own, for the load that follows it."""
    pace = _PACES[type(load)](load, clock, population, recorder, rng)
    if isinstance(pace, ShapedPace):
        assert shape is not None, "a load by shape() comes from a workflow that has one"
        pace.shape = shape
    return pace
