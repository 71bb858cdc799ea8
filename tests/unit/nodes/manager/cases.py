"""A workflow, parts of it on workers, and what they report, without any code of a user."""

from __future__ import annotations

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part, Placement, Submitted
from hyperscale.engine.results import aggregate_of
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.metrics.packed import pack
from hyperscale.nodes.manager.client_api import submitting
from hyperscale.nodes.manager.live import Live
from hyperscale.nodes.protocol.jobs import SubmitJob
from hyperscale.nodes.protocol.parts import PartEnd, Progress
from hyperscale.nodes.protocol.sealing import UNSEALED, Sealing
from hyperscale.workload.facts import StepFacts, WorkflowFacts
from hyperscale.workload.hooks import HookType
from hyperscale.workload.load import ClosedVUs

FACTS = WorkflowFacts(
    name="Shop",
    is_test=True,
    priority="auto",
    load=ClosedVUs(vus=10, duration_s=60.0),
    steps=(StepFacts(name="buy", hook_type=HookType.TEST),),
)
JOB = "j1"


def placement(number: int = 0, attempt: int = 1, worker: str = "") -> Placement:
    return Placement(
        Part(JOB, FACTS.name, number),
        Fence(1, 1, attempt),
        worker or f"w{number}",
        1,
        first_core=number * 2,
        cores=2,
    )


def delta(seq: int, requests: int, failed: int = 0, vus: int = 5) -> Delta:
    return Delta(
        seq=seq, vus=vus, requests=[RequestDelta(RequestKey("buy"), count=requests, failed=failed)]
    )


def progress(where: Placement, elapsed_s: float, *deltas: Delta) -> Progress:
    return Progress(
        part=where.part,
        fence=where.fence,
        state="running",
        elapsed_s=elapsed_s,
        deltas=tuple(pack(delta) for delta in deltas),
    )


def state(requests: int, failed: int = 0, elapsed_s: float = 1.0, *, offered: float = 0.0) -> bytes:
    aggregate = aggregate_of(FACTS)
    told = msgspec.structs.replace(delta(1, requests, failed), offered=offered)
    aggregate.apply(0, told, elapsed_s)
    return aggregate.export()


def end(where: Placement, requests: int, **facts: object) -> PartEnd:
    return PartEnd(
        part=where.part,
        fence=where.fence,
        worker=where.worker,
        **({"outcome": "completed", "state": state(requests)} | facts),  # type: ignore[arg-type]
    )


def hear(live: Live, told: Progress) -> bool:
    """A report by the worker that `placement` puts the part on."""
    return live.heard(told, f"w{told.part.number}")


def submitted(ask: SubmitJob, sealing: Sealing = UNSEALED) -> Submitted:
    """The record of a submission, made in one go."""
    steps = submitting(ask, sealing)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            record: Submitted = end.value
            return record
