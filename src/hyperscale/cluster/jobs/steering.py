"""Cancel, stop, pause, resume, scale, change the rate; and time running out, which is a
cancellation nobody asked for.

A cancellation is recorded first: from then on nothing is placed, started or retried. Then every
part is told. A worker that does not confirm in time is reported by its name.
"""

from __future__ import annotations

from hyperscale.cluster.jobs import timeouts
from hyperscale.cluster.jobs.effects import Command
from hyperscale.cluster.jobs.events import PartReport, Steer, Steering, ThresholdMoved
from hyperscale.cluster.jobs.leader_state import LeaderState, Watch, token
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.losing import lose
from hyperscale.cluster.jobs.records import Aged, Failed, Judged, Steered, TimedOut
from hyperscale.cluster.jobs.state import JobState, WorkflowState

# Nobody is that far away.
BEGIN_MS_MAX = 30_000


def steer(leader: LeaderState, now: float, event: Steer) -> bool:
    if not leader.leading:
        leader.answer(Steering(False, error="this manager does not lead"))
        return False
    leader.answer(_steer(leader, now, event))
    return True


def _steer(leader: LeaderState, now: float, event: Steer) -> Steering:
    action, only = event.action, event.workflow
    job = leader.replicated.jobs.get(event.job_id)
    if job is None:
        return Steering(False, error=f"there is no job {event.job_id}")
    if only and only not in job.workflows:
        names = ", ".join(job.workflows)
        return Steering(False, error=f"it has no workflow {only}; it has {names}")
    concerned = [w for w in job.workflows.values() if not w.is_winding_down]
    if action in ("cancel", "stop"):
        return _end(leader, now, job, event, len(concerned))
    if job.is_over:
        return Steering(False, error=f"the job is over ({job.status})")
    if job.ending:
        return Steering(False, error="the job is being brought to its end")
    if action == "begin":
        return _begin(leader, now, job, event)
    if action in ("scale", "rate"):
        if event.amount < 1:
            least = "one virtual user" if action == "scale" else "1 % of the planned rate"
            return Steering(False, error=f"a job is scaled to at least {least}")
        concerned = [one for one in concerned if one.needs.is_test and only in ("", one.needs.name)]
    if event.command_id in job.command_ids:
        return Steering(True, len(concerned))  # others may have been obeyed since
    if not event.command_id and action in ("pause", "resume") and job.paused == (action == "pause"):
        return Steering(True, len(concerned))
    record = _record(leader, now, job, event)
    if not leader.append(now, record):
        return Steering(False, error="the same command is being written", again=True)
    return Steering(True, len(concerned), record=record)


def _begin(leader: LeaderState, now: float, job: JobState, event: Steer) -> Steering:
    """In so many milliseconds from now, whatever the time is where the gate is. The first word
    counts: another gate may repeat it with another time."""
    if not job.is_held:
        return Steering(True, len(job.workflows))
    watch = leader.watches[job.job_id]
    if not watch.begins_at:
        watch.begins_at = now + min(max(event.amount, 0), BEGIN_MS_MAX) / 1_000
    record = _record(leader, now, job, event)
    if not leader.append(now, record):
        return Steering(False, error="its beginning is being written", again=True)
    return Steering(True, len(job.workflows), record=record)


def _end(leader: LeaderState, now: float, job: JobState, event: Steer, concerned: int) -> Steering:
    if job.is_over:
        repeated = job.status == "cancelled"
        error = "" if repeated else f"the job is over ({job.status})"
        return Steering(repeated, error=error)
    watch, action = leader.watches[job.job_id], event.action
    if job.ending in ("cancel", "timeout") or job.ending == action:
        return Steering(True, concerned)
    if watch.end_wanted is None or (watch.end_wanted.action, action) == ("stop", "cancel"):
        whole = Steer(event.job_id, action, by=event.by, reason=event.reason)
        watch.end_wanted = record = _record(leader, now, job, whole)
        written = leader.append(now, record)
        return Steering(True, concerned, record=record if written else None)
    return Steering(True, concerned)


def _record(leader: LeaderState, now: float, job: JobState, event: Steer) -> Steered:
    at_s = {
        name: leader.load_s(now, job, workflow)
        for name, workflow in job.workflows.items()
        if workflow.started and not workflow.is_over and event.workflow in ("", name)
    }
    age = leader.age_s(now, job.job_id)
    return Steered(
        job.job_id, age, event.action, event.amount, event.by, event.reason, at_s,
        event.workflow, event.command_id,
    )  # fmt: skip


def threshold_moved(leader: LeaderState, now: float, event: ThresholdMoved) -> bool:
    job = leader.replicated.jobs.get(event.job_id)
    if leader.leading and job is not None and not job.is_over:
        record = Judged(
            job.job_id,
            leader.age_s(now, job.job_id),
            event.workflow,
            event.number,
            event.bad_since_s,
            event.crossing,
        )
        leader.append(now, record)
    return True


def insist(leader: LeaderState, now: float, job: JobState, watch: Watch) -> None:
    """An accepted cancellation whose record could not be written is written again."""
    if watch.end_wanted is not None:
        if job.ending in ("cancel", "timeout", watch.end_wanted.action):
            watch.end_wanted = None
        else:
            leader.append(now, watch.end_wanted)


def steered(leader: LeaderState, job: JobState, record: Steered) -> None:
    """The record is held: tell the parts that run."""
    if record.action in ("cancel", "stop", "begin"):
        return
    watch = leader.watches[job.job_id]
    if record.action == "resume":
        watch.unplaced_since.clear()  # nobody looked for a worker meanwhile
    for name, workflow in job.workflows.items():
        if record.workflow not in ("", name):
            continue
        if record.action in ("scale", "rate") and not workflow.needs.is_test:
            continue
        for placement in workflow.live():
            if token(placement) in watch.started:
                leader.emit(Command(placement, record.action, record.amount, record.reason))


def remind(leader: LeaderState, report: PartReport) -> None:
    """A part that ran under an earlier leader may have missed what was recorded since."""
    job = leader.replicated.jobs[report.part.job_id]
    placement = leader.replicated.placement(report.part)
    workflow = job.workflows[report.part.workflow]
    if placement is None or workflow.is_winding_down:
        return
    for action, amount in workflow.steered.items():
        leader.emit(Command(placement, action, amount))
    if job.paused and report.state == "running":
        leader.emit(Command(placement, "pause"))
    elif not job.paused and report.state == "paused":
        leader.emit(Command(placement, "resume"))


# -- winding down --------------------------------------------------------------------------------


def wind_down(
    leader: LeaderState, now: float, job: JobState, watch: Watch, workflow: WorkflowState
) -> float | None:
    """End what still runs of a workflow that is to end; returns when to look again."""
    if job.ending == "stop" and workflow.lifecycle.state is LifecycleState.RUNNING:
        for placement in workflow.live():
            if token(placement) not in watch.stopped:
                watch.stopped.add(token(placement))
                leader.emit(Command(placement, "stop", reason=job.reason))
    if not workflow.is_winding_down:
        return None
    again: list[float] = []
    for placement in workflow.live():
        asked_at = watch.cancelled.get(token(placement))
        if asked_at is None:
            watch.cancelled[token(placement)] = asked_at = now
            leader.emit(Command(placement, "cancel", reason=workflow.error or job.reason))
        deadline = asked_at + leader.settings.cancel_confirm_s
        if now < deadline:
            again.append(deadline)
            continue
        waited = f"{leader.settings.cancel_confirm_s:g} s"
        lose(leader, now, placement, f"worker {placement.worker} did not confirm within {waited}")
    return min(again, default=None)


# -- time ----------------------------------------------------------------------------------------


# Less than this is nothing: sums of many small times are not exact.
_NONE_S = 1e-6


def check_time(leader: LeaderState, now: float, job: JobState, watch: Watch) -> float | None:
    """Past its time, or stuck? Returns when to look again."""
    if job.ending in ("cancel", "timeout") or job.is_settled:
        return None
    if now < leader.hears_until(job):
        return leader.hears_until(job)
    age = leader.age_s(now, job.job_id)
    left_s = timeouts.overall_left_s(job, age)
    held_s = timeouts.held_left_s(job, age, leader.settings)
    lefts = [left_s, timeouts.record_left_s(job, age), held_s]
    if left_s is not None and left_s <= _NONE_S:
        leader.append(now, TimedOut(job.job_id, age, timeouts.overall_reason(job, age)))
        return None
    if held_s is not None and held_s <= _NONE_S:
        leader.append(now, TimedOut(job.job_id, age, timeouts.held_reason(leader.settings)))
        return None
    if watch.idle:
        _check_stuck(leader, now, job, age)
    for name, workflow in job.workflows.items():
        left_s = timeouts.limit_left_s(job, workflow, age, leader.settings)
        lefts.append(left_s)
        if left_s is not None and left_s <= _NONE_S:
            why = f"did not end within its limit of {workflow.needs.limit_s:g} s"
            leader.append(now, Failed(job.job_id, age, name, why))
    if lefts[1] is not None and lefts[1] <= _NONE_S:
        leader.append(now, Aged(job.job_id, age))
    return min((now + one for one in lefts if one is not None and one > _NONE_S), default=None)


def _check_stuck(leader: LeaderState, now: float, job: JobState, age: float) -> None:
    """A workflow of which nothing moves is failed; if that is all of the job that runs, the job
    is timed out."""
    running = [workflow for workflow in job.workflows.values() if workflow.live()]
    idle = {one.needs.name: min(map(leader.idle_s, one.live())) for one in running}
    stuck = {name: idle_s for name, idle_s in idle.items() if idle_s >= leader.settings.stuck_s}
    if stuck and len(stuck) == len(running):
        why = timeouts.stuck_reason(min(stuck.values()), leader.settings)
        leader.append(now, TimedOut(job.job_id, age, why))
        return
    for name, idle_s in stuck.items():
        why = timeouts.stuck_reason(idle_s, leader.settings)
        leader.append(now, Failed(job.job_id, age, name, why))
