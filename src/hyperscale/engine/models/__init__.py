"""The load models, one file each; `make_pace` picks the one that carries out a load."""

from __future__ import annotations

import random
from typing import Any

from hyperscale.engine.clock import LoadClock
from hyperscale.engine.models.arrivals import ArrivalPace
from hyperscale.engine.models.closed import ClosedPace
from hyperscale.engine.models.iterations import PerVUIterationsPace, SharedIterationsPace
from hyperscale.engine.models.ramping import RampingPace
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
    SharedIterations,
)

_PACES: dict[type, type[Pace[Any]]] = {
    ClosedVUs: ClosedPace,
    RampingVUs: RampingPace,
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
) -> Pace[Any]:
    return _PACES[type(load)](load, clock, population, recorder, rng)
