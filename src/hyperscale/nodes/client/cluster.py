"""A cluster as its client uses it: jobs submitted, asked about, steered and followed.

Every call may be repeated: the client makes the id of a job, so a submission whose answer was lost
finds the job it made. Following a job outlives the manager that was followed: the next one begins
with all there is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from hyperscale.cluster.jobs.records import Action
from hyperscale.nodes.client.errors import (
    JobNotAccepted,
    NoManagersAvailable,
    ReconnectFailed,
)
from hyperscale.nodes.client.managers import BACKOFF, Managers, refused
from hyperscale.nodes.protocol.datacenters import (
    AskDatacenters,
    AskRoute,
    DatacenterStates,
    RouteView,
)
from hyperscale.nodes.protocol.jobs import (
    AskJob,
    AskJobs,
    AskResults,
    AskWorkers,
    DrainAck,
    DrainWorker,
    JobAck,
    JobResults,
    JobUpdate,
    JobView,
    JobViews,
    SteerAck,
    SteerJob,
    SubmitJob,
    WatchJob,
    WorkerViews,
)
from hyperscale.nodes.protocol.keys import check_key
from hyperscale.runtime.host import Host
from hyperscale.wire.errors import DeadlineExceeded, Disconnected, Refused, RemoteFailed

# With a queue that is full: long enough for a slot, short enough for a person.
FULL_QUEUE_S = 30.0


class Cluster:
    def __init__(self, host: Host, managers: Managers) -> None:
        self._host = host
        self.managers = managers

    async def submit(self, submission: SubmitJob) -> JobAck:
        """Returns when the job is held by the cluster; raises JobNotAccepted when it will not be,
        NoManagersAvailable when that is not known. A full queue is waited for."""
        clock = self._host.clock
        deadline = clock.now() + FULL_QUEUE_S
        while True:
            try:
                ack = await self.managers.ask(submission, JobAck)
            except NoManagersAvailable as error:
                if not error.maybe_done:
                    raise
                raise _undecided(submission, error) from error
            if ack.accepted:
                return ack
            if not ack.retry_after_s or clock.now() + ack.retry_after_s >= deadline:
                raise JobNotAccepted(f"the cluster does not take the job: {ack.error}", ack.hint)
            await clock.sleep(ack.retry_after_s)

    async def job(self, job_id: str, key: str = "", within_s: float | None = None) -> JobView:
        """By its id, or by the key it was submitted with. Raises UnknownJob."""
        if key:
            check_key(key)
        return await self.managers.ask(
            AskJob(job_id=job_id, idempotency_key=key), JobView, within_s
        )

    async def jobs(self, limit: int = 100, within_s: float | None = None) -> JobViews:
        return await self.managers.ask(AskJobs(limit=limit), JobViews, within_s)

    async def datacenters(self) -> DatacenterStates:
        """As the gate that answers sees them."""
        return await self.managers.ask(AskDatacenters(), DatacenterStates)

    async def route(self, question: AskRoute) -> RouteView:
        """Where the gate that answers would let a job run now."""
        return await self.managers.ask(question, RouteView)

    async def workers(self, job_id: str = "", within_s: float | None = None) -> WorkerViews:
        return await self.managers.ask(AskWorkers(job_id=job_id), WorkerViews, within_s)

    async def drain(self, worker: str, by: str = "", undo: bool = False) -> DrainAck:
        return await self.managers.ask(DrainWorker(worker=worker, by=by, undo=undo), DrainAck)

    async def results(self, job_id: str) -> JobResults:
        return await self.managers.ask(AskResults(job_id=job_id), JobResults)

    async def steer(
        self,
        job_id: str,
        action: Action,
        amount: int = 0,
        by: str = "",
        reason: str = "",
        workflow: str = "",
        command_id: str = "",
        within_s: float | None = None,
    ) -> SteerAck:
        """Accepted at once; that it happened is seen by following the job."""
        message = SteerJob(
            job_id=job_id,
            action=action,
            amount=amount,
            by=by,
            reason=reason,
            workflow=workflow,
            command_id=command_id or f"{self._host.random.getrandbits(64):016x}",
        )
        return await self.managers.ask(message, SteerAck, within_s)

    async def follow(self, job_id: str, *, live: bool = True) -> AsyncGenerator[JobUpdate, None]:
        """Updates until the job's end. After a break they begin anew with all there is."""
        clock = self._host.clock
        give_up_at: float | None = None
        heard_any, breaks = False, 0
        while True:
            wait_s, busy = 0.0, False
            try:
                watch = WatchJob(job_id=job_id, live=live)
                updates = await self.managers.subscribe(watch, JobUpdate)
            except NoManagersAvailable as error:
                if heard_any:
                    raise _lost(job_id, error.message, busy=error.busy) from error
                raise
            async with updates:
                try:
                    async for update in updates:
                        give_up_at, heard_any, breaks = None, True, 0
                        yield update
                        if update.final:
                            return
                    lost = "the manager ended the stream"
                except Refused as refusal:
                    if refusal.retry_after_s is None:
                        raise refused(self.managers.addresses[0], refusal) from refusal
                    lost, wait_s, busy = refusal.reason, refusal.retry_after_s, True
                except (Disconnected, DeadlineExceeded, RemoteFailed) as error:
                    lost = str(error)
            if give_up_at is None:  # counted from the break: a job may have no news for hours
                give_up_at = clock.now() + self.managers.patience_s
            elif clock.now() > give_up_at:
                raise _lost(job_id, lost, busy=busy)
            self.managers.next()
            await clock.sleep(max(wait_s, BACKOFF.delay_s(breaks, self._host.random)))
            breaks += 1


def _undecided(submission: SubmitJob, error: NoManagersAvailable) -> NoManagersAvailable:
    job_id = submission.job_id
    hint = f"hyperscale status {job_id} tells whether it was; submitting again makes a second job"
    if submission.idempotency_key:
        key = submission.idempotency_key
        hint = (
            f"submit again with the same idempotency key: it makes no second job; hyperscale "
            f"status --key {key} tells whether there is one"
        )
    return NoManagersAvailable(
        f"job {job_id} may have been accepted: {error.message}",
        hint,
        maybe_done=True,
        busy=error.busy,
    )


def _lost(job_id: str, why: str, *, busy: bool = False) -> ReconnectFailed:
    return ReconnectFailed(
        f"the cluster tells nothing more of job {job_id}: {why}",
        f"the job may go on; hyperscale attach {job_id} shows it again",
        busy=busy,
    )
