"""Records of placing: workers are chosen, give a part back, and the barrier opens."""

from __future__ import annotations

from dataclasses import replace

from hyperscale.cluster.jobs.apply_ending import close, vacate
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.records import Dispatched, Placement, Returned, Started
from hyperscale.cluster.jobs.state import JobState, PartState, ReplicatedState, WorkflowState

_PLACED = (LifecycleState.DISPATCHED, LifecycleState.RUNNING, LifecycleState.FAILED_READY_FOR_RETRY)


def dispatched(replicated: ReplicatedState, job: JobState, record: Dispatched) -> bool:
    workflow = job.workflows.get(record.workflow)
    placements = record.placements
    if workflow is None or job.ending or not placements:
        return False
    if any((p.part.job_id, p.part.workflow) != (job.job_id, record.workflow) for p in placements):
        return False
    epoch = placements[0].fence.epoch
    if epoch <= workflow.epoch or len({p.part for p in placements}) != len(placements):
        return False
    place = _replaced if record.replaces else _placed
    if not place(job, workflow, record):
        return False
    for placement in placements:
        replicated.occupy(placement)
    workflow.epoch = epoch
    workflow.dispatched_age_s = record.age_s
    workflow.returned = ""
    job.epoch = max(job.epoch, epoch)
    job.slots = max(job.slots, *(1 + slot for p in placements for slot in (-1, *p.slots)))
    if job.dispatched_age_s is None:
        job.dispatched_age_s = record.age_s
    return True


def _placed(job: JobState, workflow: WorkflowState, record: Dispatched) -> bool:
    if any(p.fence.attempt != workflow.tries + 1 for p in record.placements):
        return False
    workers = ", ".join(sorted({p.worker for p in record.placements}))
    if not workflow.lifecycle.transition(
        LifecycleState.PENDING, LifecycleState.DISPATCHED, f"to {workers}", record.age_s
    ):
        return False
    workflow.parts = {
        p.part.number: PartState(
            p.part.number, p.first_core, p.cores, p.fence.attempt, live=p, slots=p.slots
        )
        for p in record.placements
    }
    workflow.total_cores = record.total_cores
    return True


def _replaced(job: JobState, workflow: WorkflowState, record: Dispatched) -> bool:
    """Parts are placed anew. One that found no single worker with enough cores comes back as
    itself with fewer cores and as new parts with the others."""
    if workflow.lifecycle.state not in _PLACED:
        return False
    known = [p for p in record.placements if p.part.number in workflow.parts]
    if not known:
        return False
    for placement in known:
        part = workflow.parts[placement.part.number]
        if not part.is_unplaced or placement.fence.attempt != part.attempts + 1:
            return False
    if workflow.started and workflow.needs.is_test:
        _mark_take_over(job, workflow, record)
    if not workflow.live():
        _again(workflow, record)
    origin = workflow.parts[known[0].part.number]
    for placement in record.placements:
        number = placement.part.number
        if number in workflow.parts:
            origin = workflow.parts[number]
        else:
            workflow.parts[number] = _piece(origin, placement)
        part = workflow.parts[number]
        part.first_core, part.cores = placement.first_core, placement.cores
        part.attempts = placement.fence.attempt
        part.iterations_done = placement.iterations_done
        part.left_out = part.made_up = placement.left_out
        part.slots = placement.slots
        part.live = placement
        if part.losses:
            part.losses[-1].resumed_at_s = placement.resume_at_s
    return True


def _piece(origin: PartState, placement: Placement) -> PartState:
    """A new part with some cores of another one, and with its part in the loss: what had been
    reported is counted with the first piece."""
    piece = PartState(placement.part.number, placement.first_core, placement.cores)
    if origin.losses:
        loss = origin.losses[-1]
        loss.cores = max(0, loss.cores - placement.cores)
        piece.losses = [
            replace(loss, cores=placement.cores, iterations=0, unheard=0, result=b"", fence=None)
        ]
    return piece


def _mark_take_over(job: JobState, workflow: WorkflowState, record: Dispatched) -> None:
    """On the timeline: who goes on, and whether on cores of its own."""
    used = {
        (placement.worker, slot)
        for other in job.workflows.values()
        for placement in other.live()
        for slot in placement.slots
    }
    for beside in (False, True):
        workers = {
            p.worker: p
            for p in record.placements
            if beside == any((p.worker, slot) in used for slot in p.slots)
        }
        if not workers:
            continue
        names = ", ".join(sorted(workers))
        at_s = max(p.resume_at_s for p in workers.values())
        if not at_s:  # what goes by iterations has no load time to resume at
            at_s = max(0.0, record.age_s - job.load_age_s(workflow) - job.paused_s)
        text = f"lost load taken over by {names}"
        job.mark(workflow.needs.name, at_s, f"{text}, sharing cores" if beside else text)


def _again(workflow: WorkflowState, record: Dispatched) -> None:
    """Nothing of it was running: its life goes back to the start."""
    life = workflow.lifecycle
    why = workflow.returned or "again"
    life.transition(life.state, LifecycleState.PENDING, why, record.age_s)
    workers = ", ".join(sorted({p.worker for p in record.placements}))
    life.transition(
        LifecycleState.PENDING, LifecycleState.DISPATCHED, f"to {workers}", record.age_s
    )


def returned(replicated: ReplicatedState, job: JobState, record: Returned) -> bool:
    workflow = job.workflows.get(record.workflow)
    if workflow is None or workflow.is_winding_down:
        return False
    if record.parts:
        parts = [workflow.parts.get(number) for number in sorted(set(record.parts))]
        if any(part is None or part.live is None for part in parts):
            return False
        for part in parts:
            if part is not None:
                vacate(replicated, part)
                part.attempts -= 1
                if part.losses:
                    part.losses[-1].resumed_at_s = None
        workflow.returned = record.reason
        close(workflow, record.age_s)
        return True
    waits = workflow.lifecycle.state is LifecycleState.FAILED_READY_FOR_RETRY
    expected = LifecycleState.FAILED_READY_FOR_RETRY if waits else LifecycleState.DISPATCHED
    if workflow.started or not workflow.lifecycle.transition(
        expected, LifecycleState.PENDING, record.reason, record.age_s
    ):
        return False
    for part in workflow.parts.values():
        used = part.attempts - (part.live is not None)
        workflow.tries = max(workflow.tries, used)
        vacate(replicated, part)
    workflow.parts = {}
    workflow.total_cores = 0
    return True


def started(replicated: ReplicatedState, job: JobState, record: Started) -> bool:
    workflow = job.workflows.get(record.workflow)
    if workflow is None or not workflow.lifecycle.transition(
        LifecycleState.DISPATCHED, LifecycleState.RUNNING, "all parts are ready", record.age_s
    ):
        return False
    if not workflow.started:
        workflow.started = True
        workflow.context = record.context
        workflow.started_age_s = record.age_s
        workflow.started_paused_s = job.paused_s
    return True
