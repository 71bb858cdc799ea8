"""Records of steering: pause, resume, scale, more time, and the three ways to end a job early."""

from __future__ import annotations

from hyperscale.cluster.jobs.apply_ending import close
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.records import Aged, Extended, Judged, Steered, TimedOut
from hyperscale.cluster.jobs.state import Ending, JobState, ReplicatedState

# A copy of a command arrives within seconds of it: nobody gives as many meanwhile.
COMMANDS_KEPT = 200

# In the words of a run on one machine.
_MARKS = {
    "pause": "paused",
    "resume": "resumed",
    "cancel": "cancelled",
    "stop": "stopped",
    "scale": "scaled to {} VUs",
    "rate": "rate changed to {} % of the plan",
}


def steered(replicated: ReplicatedState, job: JobState, record: Steered) -> bool:
    if record.action in ("cancel", "stop"):
        return _bring_to_end(job, record.action, record)
    if job.ending:
        return False
    if record.action == "begin":
        if job.begun_age_s is None:
            job.begun_age_s = record.age_s
        return True
    _remember(job, record.command_id)
    if record.action in ("pause", "resume") and job.paused == (record.action == "pause"):
        return True  # it is so already
    if record.action == "pause":
        job.paused, job.paused_age_s = True, record.age_s
    elif record.action == "resume":
        _unpause(job, record.age_s)
    else:
        for name, workflow in job.workflows.items():
            if record.workflow in ("", name) and workflow.needs.is_test:
                workflow.steered[record.action] = record.amount
    _mark(job, record)
    return True


def _remember(job: JobState, command_id: str) -> None:
    if command_id:
        job.command_ids[command_id] = None
        if len(job.command_ids) > COMMANDS_KEPT:
            del job.command_ids[next(iter(job.command_ids))]


def _bring_to_end(job: JobState, ending: Ending, record: Steered) -> bool:
    if job.ending in ("cancel", "timeout") or job.ending == ending:
        return False
    _unpause(job, record.age_s)
    job.ending, job.by = ending, record.by
    job.reason = record.reason or (f"cancelled by {record.by}" if record.by else "cancelled")
    _mark(job, record)
    _wind_down(job, job.reason, record.age_s, spare_running=ending == "stop")
    return True


def timed_out(replicated: ReplicatedState, job: JobState, record: TimedOut) -> bool:
    if job.ending in ("cancel", "timeout"):
        return False
    _unpause(job, record.age_s)
    job.ending, job.reason = "timeout", record.reason
    _wind_down(job, record.reason, record.age_s, spare_running=False)
    return True


def _wind_down(job: JobState, reason: str, age_s: float, *, spare_running: bool) -> None:
    for workflow in job.workflows.values():
        state = workflow.lifecycle.state
        waits = state is LifecycleState.FAILED_READY_FOR_RETRY
        if spare_running and (state is LifecycleState.RUNNING or (waits and workflow.started)):
            for part in workflow.unplaced():
                part.given_up = reason
        elif waits:
            workflow.lifecycle.transition(state, LifecycleState.CANCELLED, reason, age_s)
        elif not workflow.is_over:
            workflow.lifecycle.transition(
                workflow.lifecycle.state, LifecycleState.CANCELLING, reason, age_s
            )
        close(workflow, age_s)


def extended(replicated: ReplicatedState, job: JobState, record: Extended) -> bool:
    job.extended[record.worker] = job.extended.get(record.worker, 0.0) + max(0.0, record.seconds)
    return True


def judged(replicated: ReplicatedState, job: JobState, record: Judged) -> bool:
    if record.workflow not in job.workflows:
        return False
    job.judged[record.workflow, record.number] = (record.bad_since_s, record.crossing)
    return True


def aged(replicated: ReplicatedState, job: JobState, record: Aged) -> bool:
    return True


def _unpause(job: JobState, age_s: float) -> None:
    if job.paused:
        job.paused = False
        job.paused_s += max(0.0, age_s - job.paused_age_s)


def _mark(job: JobState, record: Steered) -> None:
    text = _MARKS[record.action].format(record.amount)
    for workflow in sorted(record.at_s):
        job.mark(workflow, record.at_s[workflow], text)
