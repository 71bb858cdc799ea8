"""How long a job may take (E-16 to E-26), on the clock of whoever leads.

Time passes for a job while it has workers and is not paused: waiting in the queue has a limit of
its own. Ages travel in records, clocks do not, so a job is as old under a new leader as it was
under the last. A job is stuck when tests of it run and no counter moves; work without counters,
and preparing, have their own limits.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.cluster.jobs.lifecycle import State
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.cluster.jobs.state import JobState, WorkflowState


@dataclass(slots=True)
class JobClock:
    """Of one manager: never replicated."""

    born: float
    progress_at: float

    def learn(self, now: float, age_s: float) -> None:
        """A record says how old the job was at least."""
        self.born = min(self.born, now - age_s)

    def age_s(self, now: float) -> float:
        return max(0.0, now - self.born)


def paused_s(job: JobState, age_s: float) -> float:
    return job.paused_s + (max(0.0, age_s - job.paused_age_s) if job.paused else 0.0)


def elapsed_s(job: JobState, age_s: float) -> float:
    """Seconds that count against the job's time."""
    if job.dispatched_age_s is None:
        return 0.0
    return max(0.0, age_s - job.dispatched_age_s - paused_s(job, age_s))


def overall_deadline(job: JobState, clock: JobClock) -> float | None:
    if job.dispatched_age_s is None or job.paused:
        return None
    limit_s = job.submitted.timeout_s + job.extension_s
    return clock.born + job.dispatched_age_s + job.paused_s + limit_s


def overall_reason(job: JobState, age_s: float) -> str:
    base, extra = job.submitted.timeout_s, job.extension_s
    spent = elapsed_s(job, age_s)
    limit = f"base {base:.1f}s + extensions {extra:.1f}s"
    return f"timed out: {spent:.1f}s > {base + extra:.1f}s ({limit})"


def stuck_deadline(job: JobState, clock: JobClock, settings: JobSettings) -> float | None:
    if job.paused:
        return None
    running = [workflow for workflow in job.workflows.values() if workflow.live()]
    if not running or not all(_counts(workflow) for workflow in running):
        return None
    begun = clock.born + min(map(job.load_age_s, running))
    return max(clock.progress_at, begun) + settings.stuck_s


def stuck_reason(clock: JobClock, now: float, settings: JobSettings) -> str:
    idle = now - clock.progress_at
    return f"stuck: no progress for {idle:.1f}s > {settings.stuck_s:.1f}s"


def limit_deadline(
    job: JobState, workflow: WorkflowState, clock: JobClock, settings: JobSettings
) -> float | None:
    """When a workflow that should have been ended by its workers is failed from here (C-48)."""
    if workflow.lifecycle.state is not State.RUNNING or job.paused:
        return None
    began = max(workflow.started_age_s, workflow.dispatched_age_s)
    pauses = job.paused_s - workflow.started_paused_s
    return clock.born + began + pauses + workflow.needs.limit_s + settings.limit_grace_s


def _counts(workflow: WorkflowState) -> bool:
    return workflow.needs.is_test and workflow.lifecycle.state is State.RUNNING
