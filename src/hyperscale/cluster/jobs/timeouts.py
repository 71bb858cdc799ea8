"""How long a job may take, and when it counts as stuck.

Time passes for a job while it has workers, is not paused, and somebody leads: waiting in the queue
has a limit of its own. Ages travel in records, clocks do not, so a job is as old under a new leader
as it was under the last. A test is stuck when its workers say that nothing of it has moved for too
long and nothing explains it; what nobody has said is held against nobody. Work that is no test, and
preparing, have their own limits.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.cluster.jobs.state import JobState, WorkflowState

# A job's age is recorded whenever it grew by a twentieth of its time: no more than that is lost
# with all managers that knew it, and no job has more than some twenty of these records.
AGES_RECORDED = 20
AGE_RECORDED_S_MIN = 5.0


@dataclass(frozen=True, slots=True)
class Idle:
    """What a worker said of a part: for so long nothing has moved, and nothing explains it."""

    told_at: float
    idle_s: float

    def since(self, moment: float) -> float:
        """No more than what has passed since then, and nothing for what was not heard of."""
        return max(0.0, min(self.idle_s, self.told_at - moment))


def paused_s(job: JobState, age_s: float) -> float:
    return job.paused_s + (max(0.0, age_s - job.paused_age_s) if job.paused else 0.0)


def elapsed_s(job: JobState, age_s: float) -> float:
    """Seconds that count against the job's time."""
    if job.dispatched_age_s is None:
        return 0.0
    since_s = max(job.dispatched_age_s, job.begun_age_s or 0.0)
    return max(0.0, age_s - since_s - paused_s(job, age_s))


def overall_left_s(job: JobState, age_s: float) -> float | None:
    if job.dispatched_age_s is None or job.paused or job.is_held:
        return None
    return job.submitted.timeout_s + job.extension_s - elapsed_s(job, age_s)


def held_left_s(job: JobState, age_s: float, settings: JobSettings) -> float | None:
    """Until a job that no gate begins gives back the cores it holds."""
    if job.dispatched_age_s is None or job.paused or not job.is_held:
        return None
    return job.dispatched_age_s + settings.held_s + paused_s(job, age_s) - age_s


def held_reason(settings: JobSettings) -> str:
    return f"no gate said within {settings.held_s:g} s that its load begins"


def overall_reason(job: JobState, age_s: float) -> str:
    base, extra = job.submitted.timeout_s, job.extension_s
    spent = elapsed_s(job, age_s)
    limit = f"base {base:.1f}s + extensions {extra:.1f}s"
    return f"timed out: {spent:.1f}s > {base + extra:.1f}s ({limit})"


def limit_left_s(
    job: JobState, workflow: WorkflowState, age_s: float, settings: JobSettings
) -> float | None:
    """Until a workflow that should have been ended by its workers is failed from here."""
    if workflow.lifecycle.state is not LifecycleState.RUNNING or job.paused:
        return None
    began = max(workflow.started_age_s, workflow.dispatched_age_s)
    pauses = job.paused_s - workflow.started_paused_s
    return began + pauses + workflow.needs.limit_s + settings.limit_grace_s - age_s


def record_left_s(job: JobState, age_s: float) -> float | None:
    """Until its age is to be recorded again."""
    if job.dispatched_age_s is None or job.paused:
        return None
    return job.age_s + max(AGE_RECORDED_S_MIN, job.submitted.timeout_s / AGES_RECORDED) - age_s


def should_move(job: JobState, workflow: WorkflowState) -> bool:
    """It is a test that runs: its workers are expected to show something, or say why not."""
    return (
        workflow.needs.is_test
        and workflow.lifecycle.state is LifecycleState.RUNNING
        and not job.paused
    )


def stuck_reason(idle_s: float, settings: JobSettings) -> str:
    return f"stuck: no progress for {idle_s:.1f}s > {settings.stuck_s:.1f}s"
