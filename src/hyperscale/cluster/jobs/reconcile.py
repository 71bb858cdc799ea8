"""What each record, deadline and change of leadership calls for: from what is to what should be."""

from __future__ import annotations

from collections import deque

from hyperscale.cluster.jobs import ending, losing, placing, steering, workers
from hyperscale.cluster.jobs.apply import apply
from hyperscale.cluster.jobs.deadlines import Concern
from hyperscale.cluster.jobs.effects import Command
from hyperscale.cluster.jobs.leader_state import LeaderState, Watch
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.records import (
    Dispatched,
    Extended,
    Failed,
    Finished,
    JobRecord,
    JobStatus,
    Part,
    PartEnded,
    PartLost,
    Placement,
    Returned,
    Steered,
    Submitted,
    ToldLate,
)
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.cluster.jobs.state import JobState, WorkflowState


def keep_s(settings: JobSettings, status: JobStatus) -> float:
    kept_s = settings.completed_kept_s if status == "completed" else settings.failed_kept_s
    return max(kept_s, settings.key_kept_s)


# -- leadership ----------------------------------------------------------------------------------


def take_over(leader: LeaderState, now: float, term: int) -> None:
    stand_back(leader)
    leader.leading, leader.term, leader.lead_at = True, term, now
    leader.led.look(now, led=True)
    for held in leader.replicated.by_worker.values():
        for placement in held.values():
            leader.pool.expect(now, placement.worker, placement.incarnation)
    leader.hear_first(now)
    for name in sorted(leader.pool.workers):
        workers.check_worker(leader, now, leader.pool.workers[name])
    for job_id, job in leader.replicated.jobs.items():
        if not job.is_over:
            leader.watches[job_id].patient_since = now
            leader.touch(job_id)


def stand_back(leader: LeaderState) -> None:
    leader.stop_leading()


# -- records -------------------------------------------------------------------------------------


def applied(leader: LeaderState, now: float, record: JobRecord) -> bool:
    """True when the record took effect."""
    leader.arrived(record)
    job = leader.replicated.jobs.get(record.job_id)
    before = _snapshot(job, record)
    took_effect = apply(leader.replicated, record)
    job = leader.replicated.jobs.get(record.job_id)
    if job is None:
        return False
    refused = sum(workflow.lifecycle.refused for workflow in job.workflows.values())
    leader.transitions_refused += refused - before.refused
    watch = leader.watch(now, record.job_id)
    if took_effect:
        leader.learn_age(now, watch, record.age_s)
        if isinstance(record, Extended):
            watch.patient_since = now
        if isinstance(record, Finished):
            watch.reset()
            leader.queue.leave(now, record.job_id)
            leader.unplaced_jobs.discard(record.job_id)
            leader.deadlines.set(("job", record.job_id), None)
        _note_moves(leader, job, before)
    if leader.leading:
        _follow_up(leader, now, job, record, took_effect, before)
        if not (took_effect and _changes_nothing_else(job, record)):
            leader.touch(record.job_id)
        leader.placement_due = True
    return took_effect


def _changes_nothing_else(job: JobState, record: JobRecord) -> bool:
    """A part of a workflow ended like those before it, and others still run: nothing but its cores
    is to be had. Looking at all parts at the end of each is looking at a million of a thousand."""
    if not isinstance(record, PartEnded):
        return False
    workflow = job.workflows[record.part.workflow]
    part = workflow.parts[record.part.number]
    return workflow.lifecycle.state is LifecycleState.RUNNING and part.ended is record


class _Before:
    """What a record may do away with, noted before it is applied."""

    __slots__ = ("held", "live", "moves", "refused")

    def __init__(self) -> None:
        self.live: list[Placement] = []
        self.held: list[Placement] = []
        self.moves: dict[str, int] = {}
        self.refused = 0


def _snapshot(job: JobState | None, record: JobRecord) -> _Before:
    before = _Before()
    if job is None:
        return before
    for name, workflow in job.workflows.items():
        before.moves[name] = workflow.lifecycle.moves.total()
        before.refused += workflow.lifecycle.refused
        before.held += ending.held(workflow)
    if isinstance(record, Returned):
        returned = job.workflows.get(record.workflow)
        before.live = returned.live() if returned else []
    return before


def _note_moves(leader: LeaderState, job: JobState, before: _Before) -> None:
    for name, workflow in job.workflows.items():
        life = workflow.lifecycle
        fresh = life.moves.total() - before.moves.get(name, 0)
        for step in list(life.history)[-fresh:] if fresh else ():
            leader.transitions[step.source, step.target] += 1
            if leader.leading:
                leader.log(
                    job.job_id,
                    "workflow_state_transition",
                    "debug",
                    workflow=name,
                    source=step.source.value,
                    target=step.target.value,
                    reason=step.reason,
                )


def _follow_up(
    leader: LeaderState,
    now: float,
    job: JobState,
    record: JobRecord,
    took_effect: bool,
    before: _Before,
) -> None:
    if isinstance(record, PartEnded | PartLost | ToldLate):
        ending.acknowledge(leader, record)
    if not took_effect:
        if not isinstance(record, Submitted):
            kind = type(record).__name__
            leader.log(job.job_id, "record_without_effect", "warning", kind=kind)
        return
    for workflow in job.workflows.values():
        mine = [p for p in before.held if p.part.workflow == workflow.needs.name]
        if mine:
            ending.release(leader, mine, workflow)
    if isinstance(record, Dispatched):
        for placement in record.placements:
            placing.send(leader, now, job, placement)
            worker = leader.pool.expect(now, placement.worker, placement.incarnation)
            workers.check_worker(leader, now, worker)
    elif isinstance(record, Returned):
        for placement in before.live:
            if leader.replicated.placement(placement.part) != placement:
                leader.emit(Command(placement, "cancel", reason=record.reason))
    elif isinstance(record, Steered):
        steering.steered(leader, job, record)


def failed(leader: LeaderState, now: float, record: JobRecord, maybe_written: bool) -> None:
    if maybe_written:
        leader.doubtful(now, record)
        return
    if not leader.not_written(now, record):
        return
    watch = leader.watches.get(record.job_id)
    if watch is None:
        return
    if isinstance(record, PartLost):
        watch.being_lost.pop((record.part, record.fence), None)
    elif isinstance(record, Finished):
        watch.making_results = False


def forget(leader: LeaderState, now: float, job_id: str) -> None:
    if not leader.replicated.forget(job_id):
        return
    del leader.watches[job_id]
    leader.queue.leave(now, job_id)
    leader.unplaced_jobs.discard(job_id)
    leader.dirty.pop(job_id, None)
    for concern in ("job", "wait"):
        leader.deadlines.set((concern, job_id), None)


# -- time ----------------------------------------------------------------------------------------


def due(leader: LeaderState, now: float) -> None:
    concerns = leader.deadlines.due(now)
    for concern in concerns:
        if concern[0] == "worker":
            _refresh(leader, now, concern[1])
    left = deque(concerns)
    try:
        while left:
            _look_at(leader, now, left.popleft())
    finally:  # one that cannot be dealt with must not take the others with it
        for concern in left:
            leader.deadlines.set(concern, now)


def _look_at(leader: LeaderState, now: float, concern: Concern) -> None:
    match concern:
        case ("worker", name):
            worker = leader.pool.workers.get(name)
            if worker is not None:
                workers.check_worker(leader, now, worker)
        case ("job", job_id):
            leader.touch(job_id)
        case ("wait", job_id):
            job = leader.replicated.jobs.get(job_id)
            if job is not None:
                placing.waited_too_long(leader, now, job)
        case ("again", kind, job_id, *rest):
            leader.again(concern[1:])
            leader.touch(job_id)
            if kind == "part":
                _look_after(leader, now, Part(job_id, rest[0], int(rest[1])))
        case _:
            leader.placement_due = True


def _look_after(leader: LeaderState, now: float, part: Part) -> None:
    """The end or loss of a part could not be written: if its worker is gone, it is lost again."""
    for name in sorted(leader.replicated.by_worker):
        placement = leader.replicated.by_worker[name].get(part)
        worker = leader.pool.workers.get(name)
        if placement is not None and worker is None:
            losing.lose(leader, now, placement, f"worker {name} left")
        elif placement is not None and worker is not None:
            workers.check_worker(leader, now, worker)


def _refresh(leader: LeaderState, now: float, name: str) -> None:
    """All that are due together are known to be failing before the first of them is judged."""
    worker = leader.pool.workers.get(name)
    if worker is not None:
        leader.health.update(now, name, leader.pool.signals(now, worker))


# -- one job -------------------------------------------------------------------------------------


def settle(leader: LeaderState, now: float) -> None:
    if not leader.leading:
        return
    while leader.dirty:
        job_id = next(iter(leader.dirty))
        del leader.dirty[job_id]
        job = leader.replicated.jobs.get(job_id)
        if job is not None and not job.is_over:
            reconcile_job(leader, now, job, leader.watches[job_id])
    if leader.placement_due:
        placing.place(leader, now)


def reconcile_job(leader: LeaderState, now: float, job: JobState, watch: Watch) -> None:
    steering.insist(leader, now, job, watch)
    if job.is_settled:
        leader.queue.leave(now, job.job_id)
        leader.unplaced_jobs.discard(job.job_id)
        leader.deadlines.set(("job", job.job_id), None)
        ending.make_results(leader, now, job, watch)
        return
    leader.time_checks += 1
    again = [steering.check_time(leader, now, job, watch)]
    placing.take_back(leader, now, job, watch)
    for workflow in job.workflows.values():
        _fail_hopeless(leader, now, job, watch, workflow)
        again += (
            steering.wind_down(leader, now, job, watch, workflow),
            ending.tear_down(leader, now, job, watch, workflow),
            ending.open_barrier(leader, now, job, watch, workflow),
            losing.check_unplaced(leader, now, job, watch, workflow),
        )
    if watch.unplaced_since:
        leader.unplaced_jobs.add(job.job_id)
        leader.placement_due = True
    else:
        leader.unplaced_jobs.discard(job.job_id)
    placing.enqueue(leader, now, job, watch)
    later = [at for at in again if at is not None and at > now]
    leader.deadlines.set(("job", job.job_id), min(later, default=None))


def _fail_hopeless(
    leader: LeaderState, now: float, job: JobState, watch: Watch, workflow: WorkflowState
) -> None:
    """What it depends on did not succeed, or no worker could be sent it: it is not run, and the job
    goes on without it."""
    if workflow.lifecycle.state is not LifecycleState.PENDING:
        return
    failed = [
        f"{other} {job.workflows[other].lifecycle.public}"
        for other in workflow.needs.depends
        if job.workflows[other].is_over and not job.workflows[other].lifecycle.succeeded
    ]
    why = watch.unsendable.get(workflow.needs.name) or (failed[0] if failed else "")
    if why:
        age = leader.age_s(now, job.job_id)
        leader.append(now, Failed(job.job_id, age, workflow.needs.name, f"not run, because {why}"))
