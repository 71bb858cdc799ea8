"""From prepared to settled: the start barrier, ends that are held, teardown, results."""

from __future__ import annotations

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import invariant
from hyperscale.cluster.jobs.effects import Acknowledge, Command, MakeResults, Start, Teardown
from hyperscale.cluster.jobs.events import Ended, Prepared, ResultsMade, TeardownEnded
from hyperscale.cluster.jobs.leader_state import LeaderState, Watch, token
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.losing import lose
from hyperscale.cluster.jobs.records import (
    Failed,
    Finished,
    Part,
    PartEnded,
    PartLost,
    Placement,
    Started,
    ToldLate,
    TornDown,
)
from hyperscale.cluster.jobs.state import JobState, PartState, WorkflowState


def prepared(leader: LeaderState, now: float, event: Prepared) -> bool:
    leader.answer(leader.leading)
    if leader.leading:
        mark_prepared(leader, event.part, event.fence, event.context)
    return leader.leading


def mark_prepared(leader: LeaderState, part: Part, fence: Fence, context: bytes) -> None:
    placement = leader.replicated.placement(part)
    if placement is None or placement.fence != fence:
        return
    watch = leader.watches[part.job_id]
    if (part, fence) not in watch.prepared:
        watch.prepared[part, fence] = context
        watch.is_ready(part, fence)
        workflow = leader.replicated.jobs[part.job_id].workflows[part.workflow]
        if workflow.started or watch.may_start(workflow):  # else it waits for the others
            leader.touch(part.job_id)


def open_barrier(
    leader: LeaderState, now: float, job: JobState, watch: Watch, workflow: WorkflowState
) -> float | None:
    """Start what is ready; returns when to look again."""
    if job.paused or workflow.is_winding_down:
        return None
    live = [p for p in workflow.live() if not watch.is_leaving(p)]
    fresh = [p for p in live if token(p) not in watch.started]
    waiting = [p for p in fresh if token(p) not in watch.prepared]
    if workflow.lifecycle.state is LifecycleState.RUNNING:
        for placement in fresh:
            if token(placement) in watch.prepared:
                _start(leader, now, job, watch, workflow, placement)
    elif workflow.lifecycle.state is LifecycleState.DISPATCHED and live:
        if job.is_held or now < watch.begins_at:
            later = None if job.is_held else watch.begins_at
            hurry = _hurry(leader, now, job, watch, workflow, waiting)
            return min((at for at in (later, hurry) if at is not None), default=None)
        _declare_started(leader, now, job, watch, workflow, live)
    return _hurry(leader, now, job, watch, workflow, waiting)


def is_prepared(job: JobState, watch: Watch) -> bool:
    """All that was placed of a held job waits for the word to begin."""
    if not job.is_held or job.ending:
        return False
    awaited = [one for one in job.workflows.values() if _is_awaited(one)]
    return bool(awaited) and all(_is_ready(watch, one) for one in awaited)


def _declare_started(
    leader: LeaderState,
    now: float,
    job: JobState,
    watch: Watch,
    workflow: WorkflowState,
    live: list[Placement],
) -> None:
    """Once for all parts of all workflows that were placed together: what one does before its load
    must not disturb the load of another. A part that comes later does not wait for others again."""
    if workflow.started:
        if not any(token(p) in watch.prepared or token(p) in watch.started for p in live):
            return
        context = workflow.context
    else:
        if not all(_is_ready(watch, one) for one in job.workflows.values() if _is_awaited(one)):
            return
        first = next((token(p) for p in live if p.part.number == 0), None)
        context = watch.prepared.get(first, b"") if first else b""
    age = leader.age_s(now, job.job_id)
    leader.append(now, Started(job.job_id, age, workflow.needs.name, context))


def _is_awaited(workflow: WorkflowState) -> bool:
    return (
        workflow.lifecycle.state is LifecycleState.DISPATCHED
        and not workflow.started
        and not workflow.is_winding_down
    )


def _is_ready(watch: Watch, workflow: WorkflowState) -> bool:
    if not watch.may_start(workflow):
        return False
    there = [p for p in workflow.live() if not watch.is_leaving(p)]
    ready = [p for p in there if token(p) in watch.prepared or token(p) in watch.started]
    return len(ready) == len(workflow.parts)


def _hurry(
    leader: LeaderState,
    now: float,
    job: JobState,
    watch: Watch,
    workflow: WorkflowState,
    waiting: list[Placement],
) -> float | None:
    """Preparing takes too long: the workflow fails, or a part that came later loses its worker.
    A leader counts from when it sent the part, or first heard of it."""
    limit_s = leader.settings.prepare_s
    due = {p: watch.sent[token(p)] + limit_s for p in waiting if token(p) in watch.sent}
    late = [placement for placement, at in due.items() if now >= at]
    if late and not workflow.started:
        workers = ", ".join(sorted({placement.worker for placement in late}))
        why = f"was not ready within {limit_s:g} s on {workers}"
        age = leader.age_s(now, job.job_id)
        leader.append(now, Failed(job.job_id, age, workflow.needs.name, why))
        return None
    for placement in late:
        why = f"worker {placement.worker} was not ready within {limit_s:g} s"
        leader.emit(Command(placement, "cancel", reason=why))
        lose(leader, now, placement, why)
    return min((at for at in due.values() if at > now), default=None)


def _start(
    leader: LeaderState,
    now: float,
    job: JobState,
    watch: Watch,
    workflow: WorkflowState,
    placement: Placement,
) -> None:
    invariant(workflow.started, "no part is started before the start is recorded")
    watch.started.add(token(placement))
    run_age_s = job.run_age_s(leader.age_s(now, job.job_id))
    leader.emit(Start(placement, workflow.context, run_age_s))
    for action, amount in workflow.steered.items():
        leader.emit(Command(placement, action, amount))


# -- ends ----------------------------------------------------------------------------------------


def ended(leader: LeaderState, now: float, end: Ended) -> bool:
    leader.answer(leader.leading and _end(leader, now, end))
    return leader.leading


def _end(leader: LeaderState, now: float, end: Ended) -> bool:
    """True when the worker may forget it: held by a quorum, or of no use to anybody."""
    job = leader.replicated.jobs.get(end.part.job_id)
    if job is None or job.is_over:
        return True
    workflow = job.workflows.get(end.part.workflow)
    part = workflow.parts.get(end.part.number) if workflow else None
    if part is None:
        return True
    if part.holding is not None and part.holding.fence == end.fence:
        return False
    if part.live is None or part.live.fence != end.fence:
        return not _tell_late(leader, now, job, part, end)
    watch = leader.watches[job.job_id]
    watch.untold.pop((end.part, end.fence), None)
    if (end.part, end.fence) not in watch.being_lost:
        leader.append(
            now,
            PartEnded(
                job.job_id, leader.age_s(now, job.job_id), end.part, end.fence, end.worker,
                end.outcome, end.measured_s, end.result, end.error, end.iterations, end.lost,
            ),
        )  # fmt: skip
    return False


def _tell_late(leader: LeaderState, now: float, job: JobState, part: PartState, end: Ended) -> bool:
    """It was taken for lost, and has a word to say all the same. False: which helps nobody."""
    if part.awaited(end.fence) is None or job.is_settled:
        return False
    age_s = leader.age_s(now, job.job_id)
    told = ToldLate(job.job_id, age_s, end.part, end.fence, end.worker, end.iterations, end.result)
    leader.append(now, told)
    return True


def acknowledge(leader: LeaderState, record: PartEnded | PartLost | ToldLate) -> None:
    """The end is recorded, or came too late: but one part stays for teardown."""
    job = leader.replicated.jobs.get(record.job_id)
    workflow = job.workflows.get(record.part.workflow) if job else None
    holder = workflow.holder() if workflow else None
    if holder is None or token(holder) != (record.part, record.fence):
        leader.emit(Acknowledge(record.worker, record.part, record.fence))


def release(leader: LeaderState, before: list[Placement], workflow: WorkflowState) -> None:
    """Those that were kept for teardown and are not any more."""
    holder = workflow.holder()
    for placement in before:
        if placement != holder:
            leader.emit(Acknowledge(placement.worker, placement.part, placement.fence))


def held(workflow: WorkflowState) -> list[Placement]:
    if not workflow.needs.tears_down:
        return []
    return [part.holding for part in workflow.parts.values() if part.holding is not None]


# -- teardown and results ------------------------------------------------------------------------


def tear_down(
    leader: LeaderState, now: float, job: JobState, watch: Watch, workflow: WorkflowState
) -> float | None:
    if not workflow.is_over or workflow.is_live or not workflow.needs_teardown:
        return None
    holder = workflow.holder()
    age = leader.age_s(now, job.job_id)
    if holder is None:
        why = "teardown() did not run: no worker that could run it is left"
        leader.append(now, TornDown(job.job_id, age, workflow.needs.name, why))
        return None
    asked_at = watch.teardown.get(token(holder))
    if asked_at is None:
        watch.teardown[token(holder)] = asked_at = now
        leader.emit(Teardown(holder))
    deadline = asked_at + leader.settings.teardown_s
    if now < deadline:
        return deadline
    why = f"teardown() did not end within {leader.settings.teardown_s:g} s on {holder.worker}"
    leader.append(now, TornDown(job.job_id, age, workflow.needs.name, why))
    return None


def torn_down(leader: LeaderState, now: float, event: TeardownEnded) -> bool:
    leader.answer(leader.leading and _tear_down_ended(leader, now, event))
    return leader.leading


def _tear_down_ended(leader: LeaderState, now: float, event: TeardownEnded) -> bool:
    part = event.part
    job = leader.replicated.jobs.get(part.job_id)
    workflow = job.workflows.get(part.workflow) if job else None
    holder = workflow.holder() if workflow else None
    if job is None or holder is None or token(holder) != (part, event.fence):
        return True
    age = leader.age_s(now, job.job_id)
    leader.append(now, TornDown(job.job_id, age, part.workflow, event.warning, event.requests))
    return False


def make_results(leader: LeaderState, now: float, job: JobState, watch: Watch) -> None:
    if not watch.making_results and not leader.is_under_way(now, ("job", job.job_id)):
        watch.making_results = True
        status, reason = job.outcome()
        leader.emit(MakeResults(job.job_id, status, reason))


def results_made(leader: LeaderState, now: float, event: ResultsMade) -> bool:
    job_id = event.job_id
    job = leader.replicated.jobs.get(job_id) if leader.leading else None
    watch = leader.watches.get(job_id)
    if job is not None and watch is not None and not job.is_over and watch.making_results:
        invariant(job.is_settled, "nothing of a job whose results are made runs any more")
        age_s = leader.age_s(now, job_id)
        record = Finished(job_id, age_s, event.status, event.reason, event.results, event.states)
        if not leader.append(now, record):
            watch.making_results = False
    return True
