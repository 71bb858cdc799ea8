"""Going through the desk: what each record, deadline and change of leadership calls for."""

from __future__ import annotations

from collections import deque

from hyperscale.cluster.jobs import ending, losing, placing, steering
from hyperscale.cluster.jobs.deadlines import Concern
from hyperscale.cluster.jobs.desk import Desk, Watch
from hyperscale.cluster.jobs.effects import Command
from hyperscale.cluster.jobs.fold import apply
from hyperscale.cluster.jobs.lifecycle import State
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
from hyperscale.cluster.jobs.snatching import lose
from hyperscale.cluster.jobs.state import JobState, WorkflowState


def keep_s(settings: JobSettings, status: JobStatus) -> float:
    kept_s = settings.completed_kept_s if status == "completed" else settings.failed_kept_s
    return max(kept_s, settings.key_kept_s)


# -- leadership ----------------------------------------------------------------------------------


def take_over(desk: Desk, now: float, term: int) -> None:
    stand_back(desk)
    desk.leading, desk.term, desk.lead_at = True, term, now
    desk.led.look(now, led=True)
    for held in desk.book.by_worker.values():
        for placement in held.values():
            desk.pool.expect(now, placement.worker, placement.incarnation)
    desk.hear_first(now)
    for name in sorted(desk.pool.workers):
        losing.review_worker(desk, now, desk.pool.workers[name])
    for job_id, job in desk.book.jobs.items():
        if not job.is_over:
            desk.watches[job_id].patient_since = now
            desk.touch(job_id)


def stand_back(desk: Desk) -> None:
    desk.stop_leading()


# -- records -------------------------------------------------------------------------------------


def applied(desk: Desk, now: float, record: JobRecord) -> bool:
    """True when the record took effect."""
    desk.arrived(record)
    job = desk.book.jobs.get(record.job_id)
    before = _snapshot(job, record)
    took_effect = apply(desk.book, record)
    job = desk.book.jobs.get(record.job_id)
    if job is None:
        return False
    refused = sum(workflow.lifecycle.refused for workflow in job.workflows.values())
    desk.transitions_refused += refused - before.refused
    watch = desk.watch(now, record.job_id)
    if took_effect:
        desk.learn_age(now, watch, record.age_s)
        if isinstance(record, Extended):
            watch.patient_since = now
        if isinstance(record, Finished):
            watch.reset()
            desk.queue.leave(now, record.job_id)
            desk.displaced.discard(record.job_id)
            desk.deadlines.set(("job", record.job_id), None)
        _note_moves(desk, job, before)
    if desk.leading:
        _follow_up(desk, now, job, record, took_effect, before)
        if not (took_effect and _changes_nothing_else(job, record)):
            desk.touch(record.job_id)
        desk.hungry = True
    return took_effect


def _changes_nothing_else(job: JobState, record: JobRecord) -> bool:
    """A part of a workflow ended like those before it, and others still run: nothing but its cores
    is to be had. Looking at all parts at the end of each is looking at a million of a thousand."""
    if not isinstance(record, PartEnded):
        return False
    workflow = job.workflows[record.part.workflow]
    part = workflow.parts[record.part.number]
    return workflow.lifecycle.state is State.RUNNING and part.ended is record


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


def _note_moves(desk: Desk, job: JobState, before: _Before) -> None:
    for name, workflow in job.workflows.items():
        life = workflow.lifecycle
        fresh = life.moves.total() - before.moves.get(name, 0)
        for step in list(life.history)[-fresh:] if fresh else ():
            desk.transitions[step.source, step.target] += 1
            if desk.leading:
                desk.tell(
                    job.job_id,
                    "workflow_state_transition",
                    "debug",
                    workflow=name,
                    source=step.source.value,
                    target=step.target.value,
                    reason=step.reason,
                )


def _follow_up(
    desk: Desk, now: float, job: JobState, record: JobRecord, took_effect: bool, before: _Before
) -> None:
    if isinstance(record, PartEnded | PartLost | ToldLate):
        ending.acknowledge(desk, record)
    if not took_effect:
        if not isinstance(record, Submitted):
            kind = type(record).__name__
            desk.tell(job.job_id, "record_without_effect", "warning", kind=kind)
        return
    for workflow in job.workflows.values():
        mine = [p for p in before.held if p.part.workflow == workflow.needs.name]
        if mine:
            ending.release(desk, mine, workflow)
    if isinstance(record, Dispatched):
        for placement in record.placements:
            placing.send(desk, now, job, placement)
            worker = desk.pool.expect(now, placement.worker, placement.incarnation)
            losing.review_worker(desk, now, worker)
    elif isinstance(record, Returned):
        for placement in before.live:
            if desk.book.placement(placement.part) != placement:
                desk.emit(Command(placement, "cancel", reason=record.reason))
    elif isinstance(record, Steered):
        steering.steered(desk, job, record)


def failed(desk: Desk, now: float, record: JobRecord, maybe_written: bool) -> None:
    if maybe_written:
        desk.doubtful(now, record)
        return
    if not desk.not_written(now, record):
        return
    watch = desk.watches.get(record.job_id)
    if watch is None:
        return
    if isinstance(record, PartLost):
        watch.snatched.pop((record.part, record.fence), None)
    elif isinstance(record, Finished):
        watch.concluding = False


def forget(desk: Desk, now: float, job_id: str) -> None:
    if not desk.book.forget(job_id):
        return
    del desk.watches[job_id]
    desk.queue.leave(now, job_id)
    desk.displaced.discard(job_id)
    desk.dirty.pop(job_id, None)
    for concern in ("job", "wait"):
        desk.deadlines.set((concern, job_id), None)


# -- time ----------------------------------------------------------------------------------------


def due(desk: Desk, now: float) -> None:
    concerns = desk.deadlines.due(now)
    for concern in concerns:
        if concern[0] == "worker":
            _refresh(desk, now, concern[1])
    left = deque(concerns)
    try:
        while left:
            _look_at(desk, now, left.popleft())
    finally:  # one that cannot be dealt with must not take the others with it
        for concern in left:
            desk.deadlines.set(concern, now)


def _look_at(desk: Desk, now: float, concern: Concern) -> None:
    match concern:
        case ("worker", name):
            worker = desk.pool.workers.get(name)
            if worker is not None:
                losing.review_worker(desk, now, worker)
        case ("job", job_id):
            desk.touch(job_id)
        case ("wait", job_id):
            job = desk.book.jobs.get(job_id)
            if job is not None:
                placing.waited_too_long(desk, now, job)
        case ("again", kind, job_id, *rest):
            desk.again(concern[1:])
            desk.touch(job_id)
            if kind == "part":
                _look_after(desk, now, Part(job_id, rest[0], int(rest[1])))
        case _:
            desk.hungry = True


def _look_after(desk: Desk, now: float, part: Part) -> None:
    """The end or loss of a part could not be written: if its worker is gone, it is lost again."""
    for name in sorted(desk.book.by_worker):
        placement = desk.book.by_worker[name].get(part)
        worker = desk.pool.workers.get(name)
        if placement is not None and worker is None:
            lose(desk, now, placement, f"worker {name} left")
        elif placement is not None and worker is not None:
            losing.review_worker(desk, now, worker)


def _refresh(desk: Desk, now: float, name: str) -> None:
    """All that are due together are known to be failing before the first of them is judged."""
    worker = desk.pool.workers.get(name)
    if worker is not None:
        desk.health.update(now, name, desk.pool.signals(now, worker))


# -- one job -------------------------------------------------------------------------------------


def settle(desk: Desk, now: float) -> None:
    if not desk.leading:
        return
    while desk.dirty:
        job_id = next(iter(desk.dirty))
        del desk.dirty[job_id]
        job = desk.book.jobs.get(job_id)
        if job is not None and not job.is_over:
            review_job(desk, now, job, desk.watches[job_id])
    if desk.hungry:
        placing.place(desk, now)


def review_job(desk: Desk, now: float, job: JobState, watch: Watch) -> None:
    steering.insist(desk, now, job, watch)
    if job.is_settled:
        desk.queue.leave(now, job.job_id)
        desk.displaced.discard(job.job_id)
        desk.deadlines.set(("job", job.job_id), None)
        ending.conclude(desk, now, job, watch)
        return
    desk.time_checks += 1
    again = [steering.check_time(desk, now, job, watch)]
    placing.take_back(desk, now, job, watch)
    for workflow in job.workflows.values():
        _fail_hopeless(desk, now, job, watch, workflow)
        again += (
            steering.wind_down(desk, now, job, watch, workflow),
            ending.tear_down(desk, now, job, watch, workflow),
            ending.open_barrier(desk, now, job, watch, workflow),
            losing.review_homeless(desk, now, job, watch, workflow),
        )
    if watch.homeless:
        desk.displaced.add(job.job_id)
        desk.hungry = True
    else:
        desk.displaced.discard(job.job_id)
    placing.enqueue(desk, now, job, watch)
    later = [at for at in again if at is not None and at > now]
    desk.deadlines.set(("job", job.job_id), min(later, default=None))


def _fail_hopeless(
    desk: Desk, now: float, job: JobState, watch: Watch, workflow: WorkflowState
) -> None:
    """What it depends on did not succeed, or no worker could be sent it: it is not run, and the job
    goes on without it."""
    if workflow.lifecycle.state is not State.PENDING:
        return
    failed = [
        f"{other} {job.workflows[other].lifecycle.public}"
        for other in workflow.needs.depends
        if job.workflows[other].is_over and not job.workflows[other].lifecycle.succeeded
    ]
    why = watch.unsendable.get(workflow.needs.name) or (failed[0] if failed else "")
    if why:
        age = desk.age_s(now, job.job_id)
        desk.append(now, Failed(job.job_id, age, workflow.needs.name, f"not run, because {why}"))
