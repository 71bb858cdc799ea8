"""Who wants to know what happens in the store: methods named like its calls, each given the result,
the seconds it took and the arguments. Batches are told one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hyperscale.scheduler.errors import SchedulerError
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.reports import Accepted, Answer, Report
from hyperscale.scheduler.schedules.schedule import Fired
from hyperscale.scheduler.store.types import Submission, Submitted


class Listener:
    def submitted(self, job: Job, now: Instant, took_s: float) -> None:
        """A new job, by a client or by a tick."""

    def claimed(self, job: Job) -> None: ...

    def accepted(self, answer: Accepted, report: Report, now: Instant, took_s: float) -> None:
        """For the first time; a repetition changes nothing."""

    def lost(self, job: Job) -> None:
        """Taken from a worker whose lease ended."""

    def called(self, call: str, took_s: float, trouble: BaseException | None) -> None:
        """A call of the store, or of the election's lease, that has just ended."""

    # Calls of the store.

    def submit(
        self, result: Submitted, took_s: float, submission: Submission, now: Instant
    ) -> None:
        if result.created:
            self.submitted(result.job, now, took_s)

    def submit_batch(
        self,
        results: Sequence[Submitted | SchedulerError],
        took_s: float,
        submissions: Sequence[Submission],
        now: Instant,
    ) -> None:
        for result, submission in zip(results, submissions, strict=True):
            if isinstance(result, Submitted):
                self.submit(result, took_s, submission, now)

    def fire(
        self,
        results: Sequence[Fired | SchedulerError],
        took_s: float,
        firings: object,
        now: Instant,
        *_: Any,
    ) -> None:
        for result in results:
            for job in result.jobs if isinstance(result, Fired) else ():
                self.submitted(job, now, took_s)

    def claim(self, jobs: Sequence[Job], *_: Any) -> None:
        for job in jobs:
            self.claimed(job)

    def report(self, answer: Answer, took_s: float, report: Report, now: Instant) -> None:
        if isinstance(answer, Accepted) and not answer.repeated:
            self.accepted(answer, report, now, took_s)

    def report_batch(
        self, answers: Sequence[Answer], took_s: float, reports: Sequence[Report], now: Instant
    ) -> None:
        for answer, report in zip(answers, reports, strict=True):
            self.report(answer, took_s, report, now)

    def expire(self, jobs: Sequence[Job], *_: Any) -> None:
        for job in jobs:
            self.lost(job)

    recover_worker = expire
