"""Whether a worker's report is current, and what it does to the job (S-47, T-14).

The lease is not asked: work that came late but that nobody took over is good work. Only the token
decides.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hyperscale.scheduler.model.job import Job, JobState
from hyperscale.scheduler.model.reports import (
    LOG_CHARS_MAX,
    Accepted,
    Answer,
    Beat,
    Completed,
    Failed,
    Refusal,
    Refused,
    Released,
    Report,
    Started,
)
from hyperscale.scheduler.policies import lifecycle
from hyperscale.scheduler.policies.lifecycle import Step


class Judgement(NamedTuple):
    answer: Answer
    step: Step | None = None
    """To be written; None when nothing changes."""


_LAST: Final[dict[type[Report], str]] = {
    Completed: lifecycle.COMPLETED,
    Failed: lifecycle.FAILED,
    Released: lifecycle.RELEASED,
}


def judge(job: Job | None, report: Report, now: int) -> Judgement:
    if job is None:
        return _refuse(report, Refusal.UNKNOWN_JOB)
    if not job.held:
        if report.token == job.token and job.last_report == _LAST.get(type(report), "none"):
            return Judgement(Accepted(job, repeated=True))
        return _refuse(report, Refusal.NOT_HELD)
    if report.worker != job.worker:
        return _refuse(report, Refusal.OTHER_WORKER)
    if report.token != job.token:
        return _refuse(report, Refusal.STALE_TOKEN)
    if isinstance(report, Started) and job.state is JobState.EXECUTING:
        return Judgement(Accepted(job, repeated=True))
    if isinstance(report, Completed) and job.state is JobState.CLAIMED:
        return _refuse(report, Refusal.NOT_STARTED)
    step = _step(job, report, now)
    return Judgement(Accepted(step.job), step)


def _step(job: Job, report: Report, now: int) -> Step:
    if isinstance(report, Started):
        return Step(lifecycle.started(job, now, report.lease_s))
    if isinstance(report, Beat):
        return Step(lifecycle.beaten(job, now, report.lease_s, report.progress))
    if isinstance(report, Released):
        return lifecycle.released(job, now)
    exit_code, log = report.exit_code, report.log[-LOG_CHARS_MAX:]
    if isinstance(report, Completed):
        return lifecycle.completed(job, now, exit_code, log)
    return lifecycle.failed(job, report.failure, report.error, now, exit_code, log)


def _refuse(report: Report, reason: Refusal) -> Judgement:
    return Judgement(Refused(report.job_id, reason))
