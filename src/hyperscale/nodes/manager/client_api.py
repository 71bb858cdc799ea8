"""The clients' side of a manager: submissions, commands, questions, streams of updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from hyperscale.cluster.jobs.events import Rejected, Steer, Submit
from hyperscale.cluster.jobs.queries import JobQueries
from hyperscale.cluster.jobs.state import JobState
from hyperscale.errors import HyperscaleError
from hyperscale.nodes.manager.client_queries import ClientQueries
from hyperscale.nodes.manager.effect_runner import EffectRunner
from hyperscale.nodes.manager.job_log import JobLog
from hyperscale.nodes.manager.leadership import Leadership
from hyperscale.nodes.manager.retrying_sender import RetryingSender
from hyperscale.nodes.manager.submissions import record_of
from hyperscale.nodes.manager.watching import Watching
from hyperscale.nodes.member.access import NO_OPERATOR, Access, asker
from hyperscale.nodes.member.long_work import LongWork
from hyperscale.nodes.member.passing_on import ASK_AGAIN_S
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.protocol.jobs import (
    AskJob,
    AskJobs,
    AskResults,
    AskWorkers,
    DrainAck,
    DrainWorker,
    JobAck,
    JobResults,
    JobView,
    JobViews,
    SteerAck,
    SteerJob,
    SubmitJob,
    WatchJob,
    WorkerViews,
)
from hyperscale.nodes.protocol.keys import InvalidKey, check_key
from hyperscale.nodes.protocol.parts import DrainAnswer, DrainOrder
from hyperscale.nodes.protocol.sealing import Sealing
from hyperscale.wire.errors import Reason, Refused, WireError
from hyperscale.wire.serving import Call

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

ANOTHER_TEST_HINT = (
    "a new test needs a new key; a test whose values are made by chance or from the clock when its "
    "module is loaded is a new one each time"
)
# A worker answers at once, or is not there.
DRAIN_S = 3.0


class ClientApi:
    def __init__(
        self,
        node: NodeSettings,
        access: Access,
        jobs: JobQueries,
        effects: EffectRunner,
        job_log: JobLog,
        leadership: Leadership,
        long_work: LongWork,
        workers: RetryingSender,
        queries: ClientQueries,
        watching: Watching,
        log: FilteringBoundLogger,
    ) -> None:
        self._node = node
        self._access = access
        self._jobs = jobs
        self._effects = effects
        self._job_log = job_log
        self._leadership = leadership
        self._long_work = long_work
        self._workers = workers
        self._queries = queries
        self._watching = watching
        self._log = log
        self._sealing = Sealing(node.secret, node.previous_secret)
        # Submissions, by what became of them.
        self.accepted = 0
        self.repeated = 0
        self.refused = 0

    def handlers(self) -> dict[type[msgspec.Struct], Callable[[Call, Any], Any]]:
        on_leader, queries = self._leadership.on_leader, self._queries
        return {
            SubmitJob: on_leader(JobAck, self.submit),
            SteerJob: on_leader(SteerAck, self.steer),
            AskJob: on_leader(JobView, queries.job),
            AskJobs: on_leader(JobViews, queries.jobs),
            AskResults: on_leader(JobResults, queries.results),
            AskWorkers: on_leader(WorkerViews, queries.workers),
            DrainWorker: on_leader(DrainAck, self.drain),
            WatchJob: self._watching.watch,
        }

    async def submit(self, call: Call, ask: SubmitJob) -> JobAck:
        try:
            if ask.idempotency_key:
                check_key(ask.idempotency_key)
        except InvalidKey as error:
            self.refused += 1
            return JobAck(job_id=ask.job_id, accepted=False, error=error.message, hint=error.hint)
        if ask.datacenters and set(ask.datacenters) != {self._node.dc}:
            self.refused += 1
            where = ", ".join(ask.datacenters)
            error_text = f"it is to run in {where}, and this is a manager of {self._node.dc} alone"
            hint = "name a gate with --manager; without --dc it runs where it is submitted"
            return JobAck(job_id=ask.job_id, accepted=False, error=error_text, hint=hint)
        try:
            making = record_of(ask, self._sealing, asker(call, ask))
            record = await self._long_work.run(making)
        except (msgspec.MsgspecError, ValueError, HyperscaleError) as error:
            return self._refuse(ask, Rejected(f"it cannot be read: {error}"))
        if not self._leadership.leads():
            raise Refused(call.kind.name, self._leadership.waits_for(), ASK_AGAIN_S)
        answer = self._effects.ask(Submit(record))
        if isinstance(answer, Rejected):
            return self._refuse(ask, answer)
        try:
            if self._jobs.job(answer.job_id) is None:
                await self._job_log.held(answer.record)
        except HyperscaleError as error:
            raise Refused(call.kind.name, error.message, 1.0) from None
        self.repeated += answer.duplicate
        self.accepted += not answer.duplicate
        return JobAck(
            job_id=answer.job_id,
            accepted=True,
            position=self._jobs.position(answer.job_id),
            leader=self._node.id,
            idempotency_key=ask.idempotency_key,
            was_duplicate=answer.duplicate,
            original_job_id=answer.job_id if answer.duplicate else "",
            durability="quorum" if len(self._node.voters) > 1 else "local",
        )

    def _refuse(self, ask: SubmitJob, answer: Rejected) -> JobAck:
        """Nothing of it is remembered: a refusal for good follows from what was submitted, so the
        same is refused again with the same words, and its key is free for the test once mended."""
        self.refused += 1
        return JobAck(
            job_id=ask.job_id,
            accepted=False,
            error=answer.reason,
            hint=ANOTHER_TEST_HINT if answer.conflict else "",
            retry_after_s=answer.retry_after_s,
            idempotency_key=ask.idempotency_key,
        )

    async def steer(self, call: Call, ask: SteerJob) -> SteerAck:
        """Answered when a quorum holds it: what was accepted outlives this manager."""
        who = asker(call, ask)
        job = self._queries.known(call, ask, ask.job_id)
        if not self._access.may_steer(who, job):
            return SteerAck(job_id=ask.job_id, accepted=False, error=self._access.denial(who, job))
        by = who.signed(ask.by)
        answer = self._effects.ask(
            Steer(ask.job_id, ask.action, ask.amount, by, ask.reason, ask.workflow, ask.command_id)
        )
        if answer.again:
            raise Refused(call.kind.name, answer.error, ASK_AGAIN_S, Reason.OVERLOADED)
        if answer.record is not None:
            try:
                await self._job_log.held(answer.record)
            except HyperscaleError as error:
                why = error.message
                raise Refused(call.kind.name, why, ASK_AGAIN_S, Reason.OVERLOADED) from None
        if answer.accepted and ask.action in ("cancel", "stop") and not _is_ending(job):
            why = "its end is being written"
            raise Refused(call.kind.name, why, ASK_AGAIN_S, Reason.OVERLOADED)
        return SteerAck(
            job_id=ask.job_id,
            accepted=answer.accepted,
            workflows=answer.workflows,
            error=answer.error,
        )

    async def drain(self, call: Call, ask: DrainWorker) -> DrainAck:
        """Not recorded: the worker remembers it, and tells every leader."""
        name, who = ask.worker, asker(call, ask)
        if not self._access.may_drain(who):
            return DrainAck(worker=name, accepted=False, error=f"{who.name} {NO_OPERATOR}")
        peer = self._workers.peer(name)
        if peer is None:
            return DrainAck(worker=name, accepted=False, error=f"no worker {name!r} is known here")
        by = who.signed(ask.by)
        order = DrainOrder(term=self._leadership.term, undo=ask.undo, by=by)
        try:
            answer = await peer.request(order, DrainAnswer, DRAIN_S)
        except (WireError, OSError) as error:
            return DrainAck(worker=name, accepted=False, error=f"{name} does not answer: {error}")
        self._log.info("worker drained", worker=name, undo=ask.undo, by=by, obeyed=answer.obeyed)
        return DrainAck(
            worker=name, accepted=answer.obeyed, parts=answer.parts, error=answer.reason
        )


def _is_ending(job: JobState) -> bool:
    return bool(job.ending) or job.is_over
