"""The clients' side of a gate: the same questions that managers answer, for all datacenters.

Any gate can be asked. What concerns a job is passed on to the gate that owns it, once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from hyperscale.cluster.routing import NOT_NAMED, Decision
from hyperscale.errors import HyperscaleError
from hyperscale.nodes.gate.events import Asked, Commanded, Completed, Created
from hyperscale.nodes.gate.job_ledger import JobLedger, answered, job_id_of
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.nodes.gate.owner import Owner
from hyperscale.nodes.gate.routing import Router
from hyperscale.nodes.gate.settings import GateSettings
from hyperscale.nodes.gate.shares import body_in, in_place, vus_in
from hyperscale.nodes.gate.views import JobViewer
from hyperscale.nodes.member.access import NOT_OWNER, Access, asker
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.member.passing_on import (
    ASK_AGAIN_S,
    PASS_ON_TIMEOUT_S,
    passed_on,
    passing_on,
)
from hyperscale.nodes.protocol.jobs import (
    UNKNOWN_JOB,
    AskJob,
    AskJobs,
    AskResults,
    Body,
    JobAck,
    JobResults,
    JobUpdate,
    JobView,
    JobViews,
    Snapshot,
    SteerAck,
    SteerJob,
    SubmitJob,
    WatchJob,
    Window,
)
from hyperscale.nodes.protocol.keys import InvalidKey, check_key
from hyperscale.nodes.protocol.submission_limits import check_sizes, check_texts
from hyperscale.nodes.protocol.where import check_where
from hyperscale.runtime.host import Host
from hyperscale.wire.errors import Reason, Refused, WireError
from hyperscale.wire.peer import Peer
from hyperscale.wire.serving import Call

A = TypeVar("A")
ANOTHER_TEST = "its key was used for another test"
ANOTHER_TEST_HINT = "a new test needs a new key"
NOWHERE_HINT = "hyperscale datacenters shows how they are"
NOWHERE_AGAIN_S = 2.0  # a probe later
JOBS_LISTED_MAX = 1_000
LISTED_S = 2.0  # an owner that takes longer is told of as it was


class GateApi:
    def __init__(
        self,
        host: Host,
        settings: GateSettings,
        node: Node,
        ledger: JobLedger,
        owner: Owner,
        router: Router,
    ) -> None:
        self._clock, self._random = host.clock, host.random
        self._settings = settings
        self._node = node
        self._ledger = ledger
        self._owner = owner
        self._router = router
        self._views = JobViewer(host.clock, owner)
        ledger.on_forgotten.append(self._views.forget)
        self._access = Access(settings.jobs_of_others, settings.node.credentials is not None)
        self.answers = Counter({"accepted": 0, "repeated": 0, "refused": 0})

    def handlers(self) -> dict[type[msgspec.Struct], Callable[[Call, Any], Any]]:
        return {
            SubmitJob: self.submit,
            SteerJob: self._on_owner(SteerAck, self.steer),
            AskJob: self._on_owner(JobView, self.job),
            AskJobs: self.jobs,
            AskResults: self._on_owner(JobResults, self.results),
            WatchJob: self.watch,
        }

    # -- whose it is to answer -----------------------------------------------------------------

    async def _elsewhere(self, call: Call, ask: Any, job_id: str) -> Peer:
        """The owner of the job. Raises Refused."""
        self._node.check_started(call)
        if self._ledger.is_being_forgotten(job_id) and isinstance(ask, SubmitJob):
            why = f"job {job_id}, which had the same key, is over and about to be forgotten"
            raise Refused(call.kind.name, why, ASK_AGAIN_S, Reason.OVERLOADED)
        is_found = isinstance(ask, SubmitJob) or not self._ledger.is_unheard_of(job_id)
        if not is_found and await answered(call, self._ledger.is_nowhere(job_id)):
            raise _unknown(call, ask)
        if not is_found and self._ledger.is_unheard_of(job_id):
            return await self._who_knows(call, ask, job_id)
        owner = self._ledger.owner(job_id)
        if not ask.passed_on and owner != self._ledger.me:
            peer = self._ledger.peer(owner)
            if peer is not None:
                return peer
        why = f"gate {owner}, which owns job {job_id}, does not answer; another takes it over"
        raise Refused(call.kind.name, why, ASK_AGAIN_S, Reason.OVERLOADED)

    async def _who_knows(self, call: Call, ask: Any, job_id: str) -> Peer:
        """A gate of its group that owns the job, which was made while this one was away. Raises
        Refused: a majority that has not heard of it knows that there is none."""
        members = self._ledger.members(job_id)
        peers = [self._ledger.peer(name) for name in members if name != self._ledger.me]
        if ask.passed_on:
            raise _unknown(call, ask)
        unheard = 1
        for peer in peers:
            try:
                if peer is not None:
                    question = AskJob(job_id=job_id, passed_on=True)
                    await peer.request(passed_on(call, question), JobView, LISTED_S)
                    return peer
            except Refused as refusal:
                unheard += refusal.code == UNKNOWN_JOB
            except (WireError, OSError):
                continue
        if unheard > len(members) // 2:
            raise _unknown(call, ask)
        why = f"too few gates answer to say whether there is a job {job_id}"
        raise Refused(call.kind.name, why, ASK_AGAIN_S, Reason.OVERLOADED)

    def _count(self, call: Call, ask: Any) -> None:
        """What another gate passed on is of whoever asked that gate. Raises Refused when it is one
        too many of theirs."""
        if call.peer.role == "gate" and ask.asked_by:
            denial = self._node.admission.counts_for(call.kind, ask.asked_by)
            if denial is not None:
                raise Refused(call.kind.name, *denial)

    def _on_owner(
        self, answer: type[A], handler: Callable[[Call, Any], Awaitable[A]]
    ) -> Callable[[Call, Any], Awaitable[A]]:
        async def handle(call: Call, ask: Any) -> A:
            self._count(call, ask)
            job_id = self._job_id(ask)
            if self._ledger.owns(job_id):
                return await handler(call, ask)
            peer = await self._elsewhere(call, ask, job_id)
            with passing_on(call):
                return await peer.request(passed_on(call, ask), answer, PASS_ON_TIMEOUT_S)

        return handle

    def _job_id(self, ask: Any) -> str:
        key = getattr(ask, "idempotency_key", "")
        return job_id_of(key) if key else str(ask.job_id)

    def _known(self, call: Call, ask: Any) -> GateJob:
        job_id = self._job_id(ask)
        job = self._ledger.jobs.job(job_id)
        if job is None and self._ledger.is_nothing(job_id):
            raise _unknown(call, ask)
        if job is None:  # not yet: we own it, and find out what was committed
            why = f"this gate has just taken over job {job_id}"
            raise Refused(call.kind.name, why, ASK_AGAIN_S, Reason.OVERLOADED)
        who = asker(call, ask)
        if not self._access.may_read(who, job):
            raise Refused(call.kind.name, self._access.denial(who, job), code=NOT_OWNER)
        return job

    # -- jobs ----------------------------------------------------------------------------------

    async def submit(self, call: Call, ask: SubmitJob) -> JobAck:
        self._count(call, ask)
        job_id = self._job_id(ask)
        try:
            if ask.idempotency_key:
                check_key(ask.idempotency_key)
            check_sizes(ask.body)
            body = msgspec.msgpack.decode(ask.body, type=Body)
            check_texts(ask, body)
            asked = Asked(ask.datacenters, ask.datacenter_count, ask.policy)
            self._check_asked(body, asked)
        except InvalidKey as error:
            return self._refuse(ask, error.message, error.hint)
        except (msgspec.MsgspecError, ValueError, HyperscaleError) as error:
            return self._refuse(ask, f"it cannot be taken: {error}", getattr(error, "hint", ""))
        digest = body.digest()
        await answered(call, self._ledger.begin(job_id))
        if not self._ledger.owns(job_id):
            peer = await self._elsewhere(call, ask, job_id)
            with passing_on(call):
                return await peer.request(passed_on(call, ask), JobAck, PASS_ON_TIMEOUT_S)
        known = self._ledger.jobs.job(job_id)
        datacenters = dict(ask.datacenters)
        if known is None:
            decision = await self._router.choose(
                job_id,
                count=asked.count or len(datacenters),
                named=tuple(datacenters),
                policy=asked.policy if datacenters else "any",
                body=body,
            )
            if decision.error:
                return self._nowhere(ask, decision.error)
            datacenters = self._ordered(in_place(datacenters, decision.chosen))
            body = self._with_warnings(body, decision)
        who = asker(call, ask)
        created = Created(
            name=body.name or ", ".join(facts.name for facts in body.workflows)[:200],
            body=msgspec.msgpack.encode(self._ledger.sealing.seal_body(body)),
            datacenters=datacenters,
            digest=digest,
            idempotency_key=ask.idempotency_key,
            requested_by=ask.requested_by,
            correlation_id=ask.correlation_id or job_id,
            owner=who.owner,
            groups=who.groups if who.owner else (),
            asked=asked,
        )
        if known is None:
            await answered(call, self._ledger.append(job_id, created))
            known = self._ledger.jobs.job(job_id)
            duplicate = False
        else:
            duplicate = True
        if known is None or not _is_same(known.submitted, created):
            return self._refuse(ask, ANOTHER_TEST, ANOTHER_TEST_HINT)
        self.answers["repeated" if duplicate else "accepted"] += 1
        return JobAck(
            job_id=job_id,
            accepted=True,
            leader=self._ledger.me,
            idempotency_key=ask.idempotency_key,
            was_duplicate=duplicate or job_id != ask.job_id,
            original_job_id=job_id,
            durability="global",
        )

    def _refuse(self, ask: SubmitJob, error: str, hint: str = "") -> JobAck:
        self.answers["refused"] += 1
        return JobAck(
            job_id=ask.job_id,
            accepted=False,
            error=error,
            hint=hint,
            idempotency_key=ask.idempotency_key,
        )

    def _check_asked(self, body: Body, asked: Asked) -> None:
        """Raises ValueError."""
        known = self._settings.datacenters
        for name in asked.datacenters:
            if name not in known:
                raise ValueError(f"there is no datacenter {name!r}, only {', '.join(known)}")
        check_where(asked.datacenters, asked.count, asked.policy)
        if asked.count > len(known):
            raise ValueError(f"it needs {asked.count} datacenters, and there are {len(known)}")
        for name in asked.datacenters:
            body_in(body, asked.datacenters, name)

    def _ordered(self, shares: Mapping[str, int]) -> dict[str, int]:
        """As they are configured: rows of data are divided in an order that does not change."""
        return {name: shares[name] for name in self._settings.datacenters if name in shares}

    @staticmethod
    def _with_warnings(body: Body, decision: Decision) -> Body:
        """Load that comes from fewer places than there are is other load: its results say so."""
        told = [
            f"datacenter {one.name} was left out: {one.reason}"
            for one in decision.scored
            if not one.rank and one.reason != NOT_NAMED
        ]
        return msgspec.structs.replace(body, warnings=(*body.warnings, *told)) if told else body

    def _nowhere(self, ask: SubmitJob, why: str) -> JobAck:
        """Who is not known to be out of reach may be back in a moment: the client asks again."""
        refusal = self._refuse(ask, f"no datacenter can run it: {why}", NOWHERE_HINT)
        if self._router.is_hopeless(ask.datacenters if ask.policy == "strict" else ()):
            return refusal
        return msgspec.structs.replace(refusal, retry_after_s=NOWHERE_AGAIN_S)

    async def steer(self, call: Call, ask: SteerJob) -> SteerAck:
        """Accepted once it is committed: every datacenter is told until it has answered."""
        job, who = self._known(call, ask), asker(call, ask)
        if not self._access.may_steer(who, job):
            return SteerAck(job_id=ask.job_id, accepted=False, error=self._access.denial(who, job))
        if job.is_over:
            return SteerAck(job_id=ask.job_id, accepted=False, error="the job is over")
        if ask.action == "begin":
            why = "gates say themselves when it begins"
            return SteerAck(job_id=ask.job_id, accepted=False, error=why)
        if ask.action == "scale":
            try:
                vus_in(ask.amount, job.submitted.datacenters)
            except ValueError as error:
                return SteerAck(job_id=ask.job_id, accepted=False, error=str(error))
        told = SteerJob(
            job_id=job.job_id,
            action=ask.action,
            amount=ask.amount,
            by=who.signed(ask.by),
            reason=ask.reason,
            workflow=ask.workflow,
            command_id=ask.command_id or f"{self._random.getrandbits(64):016x}",
        )
        await answered(call, self._ledger.append(job.job_id, Commanded(told)))
        workflows = 1 if ask.workflow else len(job.body.workflows)
        return SteerAck(job_id=job.job_id, accepted=True, workflows=workflows)

    async def job(self, call: Call, ask: AskJob) -> JobView:
        return self._views.of(self._known(call, ask))

    async def jobs(self, call: Call, ask: AskJobs) -> JobViews:
        self._node.check_started(call)
        who = asker(call, ask)
        newest = [job for job in self._ledger.jobs.jobs()[::-1] if self._access.may_read(who, job)]
        newest = newest[: min(max(ask.limit, 0), JOBS_LISTED_MAX)]
        views = await asyncio.gather(*map(self._view_of_owner, newest))
        return JobViews(jobs=tuple(views), leader=self._ledger.me)

    async def _view_of_owner(self, job: GateJob) -> JobView:
        """Only the owner of a job that runs knows its numbers."""
        peer = None
        if not job.is_over and not self._ledger.owns(job.job_id):
            peer = self._ledger.peer(self._ledger.owner(job.job_id))
        if peer is not None:
            with suppress(WireError, OSError):
                ask = AskJob(job_id=job.job_id, passed_on=True)
                return await peer.request(ask, JobView, LISTED_S)
        return self._views.of(job)

    async def results(self, call: Call, ask: AskResults) -> JobResults:
        job = self._known(call, ask)
        done = job.completed
        return JobResults(
            job_id=job.job_id,
            known=True,
            status=self._views.of(job).status,
            results=done.results if done is not None else b"",
        )

    async def watch(self, call: Call, ask: WatchJob) -> AsyncIterator[JobUpdate]:
        self._count(call, ask)
        if not self._ledger.owns(ask.job_id):
            peer = await self._elsewhere(call, ask, ask.job_id)
            with passing_on(call):
                async with await peer.subscribe(passed_on(call, ask), JobUpdate) as updates:
                    async for passed in updates:
                        yield passed
            return
        job = self._known(call, ask)
        yield JobUpdate(outline=job.body.outline(), view=self._views.of(job))
        index: int | None = None
        told: JobView | None = None
        while self._ledger.owns(ask.job_id):
            if job.completed is not None:
                yield self._last(job, job.completed)
                return
            owned = self._owner.owned(ask.job_id)
            windows: list[Window] = []
            snapshots: list[Snapshot] = []
            if owned is not None and ask.live:
                windows, snapshots, index = owned.since(index)
            view = self._views.of(job)
            if windows or snapshots or view != told:
                told = view
                yield JobUpdate(view=view, windows=tuple(windows), snapshots=tuple(snapshots))
            await self._clock.sleep(self._settings.window_s)

    def _last(self, job: GateJob, completed: Completed) -> JobUpdate:
        return JobUpdate(view=self._views.of(job), results=completed.results, final=True)


def _unknown(call: Call, ask: Any) -> Refused:
    what = getattr(ask, "idempotency_key", "") or ask.job_id
    return Refused(call.kind.name, f"no job {what!r} is known here", code=UNKNOWN_JOB)


def _is_same(one: Created, other: Created) -> bool:
    """What was asked for; where that was possible is another question."""
    return (one.digest, one.asked) == (other.digest, other.asked)
