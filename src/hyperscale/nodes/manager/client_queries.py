"""What clients ask about jobs and workers. Changes nothing."""

from __future__ import annotations

from typing import Any

from hyperscale.cluster.jobs.queries import JobQueries
from hyperscale.cluster.jobs.state import JobState
from hyperscale.nodes.manager.live import Live
from hyperscale.nodes.manager.views import job_view
from hyperscale.nodes.manager.worker_table import ABSENT, WorkerTable
from hyperscale.nodes.member.access import NOT_OWNER, Access, asker
from hyperscale.nodes.member.endings import Endings
from hyperscale.nodes.protocol.jobs import (
    UNKNOWN_JOB,
    AskJob,
    AskJobs,
    AskResults,
    AskWorkers,
    JobResults,
    JobView,
    JobViews,
    WorkerView,
    WorkerViews,
)
from hyperscale.nodes.protocol.submission_limits import TEXT_CHARS_MAX
from hyperscale.runtime.host import Clock
from hyperscale.wire.errors import Refused
from hyperscale.wire.serving import Call

JOBS_LISTED_MAX = 1_000


class ClientQueries:
    def __init__(
        self,
        clock: Clock,
        node_id: str,
        access: Access,
        jobs: JobQueries,
        live: Live,
        endings: Endings,
        table: WorkerTable,
    ) -> None:
        self._clock = clock
        self._node_id = node_id
        self._access = access
        self._jobs = jobs
        self._live = live
        self._endings = endings
        self._table = table

    async def job(self, call: Call, ask: AskJob) -> JobView:
        if not ask.idempotency_key:
            return self.view(self.known(call, ask, ask.job_id))
        job = self._jobs.job_of_key(ask.idempotency_key)
        if job is None:
            what = f"no job with the key {ask.idempotency_key[:TEXT_CHARS_MAX]!r} is known here"
            raise Refused(call.kind.name, what, code=UNKNOWN_JOB)
        return self.view(self.known(call, ask, job.job_id))

    async def jobs(self, call: Call, ask: AskJobs) -> JobViews:
        who, known = asker(call, ask), self._jobs.jobs()[::-1]
        newest = [job for job in known if self._access.may_read(who, job)]
        newest = newest[: min(max(ask.limit, 0), JOBS_LISTED_MAX)]
        return JobViews(jobs=tuple(self.view(job) for job in newest), leader=self._node_id)

    async def results(self, call: Call, ask: AskResults) -> JobResults:
        if self._jobs.job(ask.job_id) is None:
            return JobResults(job_id=ask.job_id, known=False)
        job = self.known(call, ask, ask.job_id)
        end = job.finished
        return JobResults(
            job_id=ask.job_id,
            known=True,
            status=job.status,
            results=b"" if end is None else end.results,
        )

    async def workers(self, call: Call, ask: AskWorkers) -> WorkerViews:
        if ask.job_id:
            self.known(call, ask, ask.job_id)
        who = asker(call, ask)
        rows: list[WorkerView] = self._table.views(
            ask.job_id, lambda job: self._access.may_read(who, job)
        )
        return WorkerViews(
            workers=tuple(rows),
            leader=self._node_id,
            total_cores=sum(row.total_cores for row in rows if row.state not in ABSENT),
            free_cores=sum(row.free_cores for row in rows),
        )

    def known(self, call: Call, ask: Any, job_id: str) -> JobState:
        """A job that whoever asks may read. Raises Refused."""
        job = self._jobs.job(job_id)
        if job is None:
            raise Refused(call.kind.name, f"no job {job_id!r} is known here", code=UNKNOWN_JOB)
        who = asker(call, ask)
        if not self._access.may_read(who, job):
            raise Refused(call.kind.name, self._access.denial(who, job), code=NOT_OWNER)
        return job

    def view(self, job: JobState) -> JobView:
        return job_view(self._jobs, self._live, self._endings, self._clock.now(), job)
