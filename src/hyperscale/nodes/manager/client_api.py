"""The clients' side of a manager: submissions, questions, commands, streams of updates."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from hyperscale.cluster.jobs.effects import Append
from hyperscale.cluster.jobs.inputs import Rejected
from hyperscale.cluster.jobs.records import Needs, Steered, Submitted
from hyperscale.cluster.jobs.state import JobState
from hyperscale.errors import HyperscaleError
from hyperscale.nodes.manager import dispatch, views
from hyperscale.nodes.manager.access import NO_OPERATOR, NOBODY, NOT_OWNER, Access, Asker, asker
from hyperscale.nodes.manager.leadership import ASK_AGAIN_S, passed_on, passing_on
from hyperscale.nodes.manager.submission_limits import check_sizes
from hyperscale.nodes.manager.worker_api import ABSENT
from hyperscale.nodes.protocol.jobs import (
    UNKNOWN_JOB,
    AskJob,
    AskJobs,
    AskResults,
    AskWorkers,
    Body,
    DrainAck,
    DrainWorker,
    JobAck,
    JobResults,
    JobUpdate,
    JobView,
    JobViews,
    Outline,
    Snapshot,
    SteerAck,
    SteerJob,
    SubmitJob,
    WatchJob,
    Window,
    WorkerView,
    WorkerViews,
    WorkflowDone,
)
from hyperscale.nodes.protocol.keys import InvalidKey, check_key
from hyperscale.nodes.protocol.parts import DrainAnswer, DrainOrder
from hyperscale.nodes.protocol.sealing import UNSEALED, Sealing
from hyperscale.wire.errors import Reason, Refused, WireError
from hyperscale.wire.serving import Call

if TYPE_CHECKING:
    from hyperscale.nodes.manager.manager import Manager

ID_CHARS_MAX = 128
TEXT_CHARS_MAX = 1_000  # names and the like; they are in every listing
JOBS_LISTED_MAX = 1_000
ANOTHER_TEST_HINT = (
    "a new test needs a new key; a test whose values are made by chance or from the clock when its "
    "module is loaded is a new one each time"
)
# How long a watcher may know no more than what a job is at: who was lost, how much is covered.
VIEW_S = 0.5
# A worker answers at once, or is not there.
DRAIN_S = 3.0


class ClientApi:
    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        node = manager.settings.node
        self._access = Access(manager.settings.jobs_of_others, node.credentials is not None)
        self._sealing = Sealing(node.secret, node.previous_secret)
        # Submissions, by what became of them.
        self.accepted = 0
        self.repeated = 0
        self.refused = 0

    def handlers(self) -> dict[type[msgspec.Struct], Callable[[Call, Any], Any]]:
        on_leader = self._manager.leadership.on_leader
        return {
            SubmitJob: on_leader(JobAck, self.submit),
            SteerJob: on_leader(SteerAck, self.steer),
            AskJob: on_leader(JobView, self.job),
            AskJobs: on_leader(JobViews, self.jobs),
            AskResults: on_leader(JobResults, self.results),
            AskWorkers: on_leader(WorkerViews, self.workers),
            DrainWorker: on_leader(DrainAck, self.drain),
            WatchJob: self.watch,
        }

    # -- submitting --------------------------------------------------------------------------

    async def submit(self, call: Call, ask: SubmitJob) -> JobAck:
        manager = self._manager
        try:
            if ask.idempotency_key:
                check_key(ask.idempotency_key)
        except InvalidKey as error:
            self.refused += 1
            return JobAck(job_id=ask.job_id, accepted=False, error=error.message, hint=error.hint)
        try:
            making = submitting(ask, self._sealing, asker(call, ask))
            record = await manager.long_work.run(making)
        except (msgspec.MsgspecError, ValueError, HyperscaleError) as error:
            return self._refuse(ask, Rejected(f"it cannot be read: {error}"))
        if not manager.leadership.leads():
            raise Refused(call.kind.name, manager.leadership.waits_for(), ASK_AGAIN_S)
        verdict, effects = manager.jobs.submit(manager.now(), record)
        if isinstance(verdict, Rejected):
            return self._refuse(ask, verdict)
        held = manager.accepting(verdict.job_id)
        manager.carry_out(effects)
        try:
            await held
        except HyperscaleError as error:
            raise Refused(call.kind.name, error.message, 1.0) from None
        self.repeated += verdict.duplicate
        self.accepted += not verdict.duplicate
        return JobAck(
            job_id=verdict.job_id,
            accepted=True,
            position=manager.jobs.position(verdict.job_id),
            leader=manager.id,
            idempotency_key=ask.idempotency_key,
            was_duplicate=verdict.duplicate,
            original_job_id=verdict.job_id if verdict.duplicate else "",
            durability=manager.durability,
        )

    def _refuse(self, ask: SubmitJob, verdict: Rejected) -> JobAck:
        """Nothing of it is remembered: a refusal for good follows from what was submitted, so the
        same is refused again with the same words, and its key is free for the test once mended."""
        self.refused += 1
        return JobAck(
            job_id=ask.job_id,
            accepted=False,
            error=verdict.reason,
            hint=ANOTHER_TEST_HINT if verdict.conflict else "",
            retry_after_s=verdict.retry_after_s,
            idempotency_key=ask.idempotency_key,
        )

    async def steer(self, call: Call, ask: SteerJob) -> SteerAck:
        """Answered when a quorum holds it: what was accepted outlives this manager."""
        manager = self._manager
        who = asker(call, ask)
        job = self._known(call, ask, ask.job_id)
        if not self._access.may_steer(who, job):
            return SteerAck(job_id=ask.job_id, accepted=False, error=self._access.denial(who, job))
        by = who.signed(ask.by)
        steering, effects = manager.jobs.steer(
            manager.now(), ask.job_id, ask.action, ask.amount, by, ask.reason, ask.workflow
        )
        if steering.again:
            raise Refused(call.kind.name, steering.error, ASK_AGAIN_S, Reason.OVERLOADED)
        written = [one.record for one in effects if isinstance(one, Append)]
        outcomes = [manager.job_log.outcome(one) for one in written if isinstance(one, Steered)]
        manager.carry_out(effects)
        for outcome in outcomes:
            if (error := await outcome) is not None:
                raise Refused(call.kind.name, error.message, ASK_AGAIN_S, Reason.OVERLOADED)
        if steering.accepted and ask.action in ("cancel", "stop") and not _is_ending(job):
            why = "its end is being written"
            raise Refused(call.kind.name, why, ASK_AGAIN_S, Reason.OVERLOADED)
        return SteerAck(
            job_id=ask.job_id,
            accepted=steering.accepted,
            workflows=steering.workflows,
            error=steering.error,
        )

    # -- asking ------------------------------------------------------------------------------

    async def job(self, call: Call, ask: AskJob) -> JobView:
        if not ask.idempotency_key:
            return self._view(self._known(call, ask, ask.job_id))
        job = self._manager.jobs.job_of_key(ask.idempotency_key)
        if job is None:
            what = f"no job with the key {ask.idempotency_key[:TEXT_CHARS_MAX]!r} is known here"
            raise Refused(call.kind.name, what, code=UNKNOWN_JOB)
        return self._view(self._known(call, ask, job.job_id))

    async def jobs(self, call: Call, ask: AskJobs) -> JobViews:
        who, known = asker(call, ask), self._manager.jobs.jobs()[::-1]
        newest = [job for job in known if self._access.may_read(who, job)]
        newest = newest[: min(max(ask.limit, 0), JOBS_LISTED_MAX)]
        return JobViews(jobs=tuple(self._view(job) for job in newest), leader=self._manager.id)

    async def results(self, call: Call, ask: AskResults) -> JobResults:
        if self._manager.jobs.job(ask.job_id) is None:
            return JobResults(job_id=ask.job_id, known=False)
        job = self._known(call, ask, ask.job_id)
        end = job.finished
        return JobResults(
            job_id=ask.job_id,
            known=True,
            status=job.status,
            results=b"" if end is None else end.results,
        )

    async def workers(self, call: Call, ask: AskWorkers) -> WorkerViews:
        if ask.job_id:
            self._known(call, ask, ask.job_id)
        who = asker(call, ask)
        rows: list[WorkerView] = self._manager.worker_api.views(
            ask.job_id, lambda job: self._access.may_read(who, job)
        )
        return WorkerViews(
            workers=tuple(rows),
            leader=self._manager.id,
            total_cores=sum(row.total_cores for row in rows if row.state not in ABSENT),
            free_cores=sum(row.free_cores for row in rows),
        )

    async def drain(self, call: Call, ask: DrainWorker) -> DrainAck:
        """Not recorded: the worker remembers it, and tells every leader."""
        manager, name, who = self._manager, ask.worker, asker(call, ask)
        if not self._access.may_drain(who):
            return DrainAck(worker=name, accepted=False, error=f"{who.name} {NO_OPERATOR}")
        peer = manager.commands.sender.peer(name)
        if peer is None:
            return DrainAck(worker=name, accepted=False, error=f"no worker {name!r} is known here")
        by = who.signed(ask.by)
        order = DrainOrder(term=manager.leadership.term, undo=ask.undo, by=by)
        try:
            answer = await peer.request(order, DrainAnswer, DRAIN_S)
        except (WireError, OSError) as error:
            return DrainAck(worker=name, accepted=False, error=f"{name} does not answer: {error}")
        manager.log.info("worker drained", worker=name, undo=ask.undo, by=by, obeyed=answer.obeyed)
        return DrainAck(
            worker=name, accepted=answer.obeyed, parts=answer.parts, error=answer.reason
        )

    def _known(self, call: Call, ask: Any, job_id: str) -> JobState:
        """A job that whoever asks may read. Raises Refused."""
        job = self._manager.jobs.job(job_id)
        if job is None:
            raise Refused(call.kind.name, f"no job {job_id!r} is known here", code=UNKNOWN_JOB)
        who = asker(call, ask)
        if not self._access.may_read(who, job):
            raise Refused(call.kind.name, self._access.denial(who, job), code=NOT_OWNER)
        return job

    def _view(self, job: JobState) -> JobView:
        manager = self._manager
        return views.job_view(manager.jobs, manager.live, manager.endings, manager.now(), job)

    # -- watching ----------------------------------------------------------------------------

    async def watch(self, call: Call, ask: WatchJob) -> AsyncIterator[JobUpdate]:
        manager = self._manager
        if not manager.leadership.leads():
            peer = manager.leadership.elsewhere(call, ask)
            with passing_on(call):
                async with await peer.subscribe(passed_on(call, ask), JobUpdate) as updates:
                    async for passed in updates:
                        yield passed
            return
        manager.leadership.count(call, ask)
        job = self._known(call, ask, ask.job_id)
        seen = _Seen(since=manager.now())
        while manager.leadership.leads():
            update = self._update(job, seen, ask.live)
            if update is not None:
                yield update
                if update.final:
                    return
            await manager.host.clock.sleep(manager.settings.window_s)
            if manager.jobs.job(ask.job_id) is None:
                return

    def _update(self, job: JobState, seen: _Seen, live: bool) -> JobUpdate | None:
        manager = self._manager
        body = manager.body_of(job)
        outline = None if seen.outlined else _outline(body)
        seen.outlined = True
        view = self._changed_view(job, seen)
        snapshots: list[Snapshot] = []
        windows: list[Window] = []
        done: list[WorkflowDone] = []
        for facts in body.workflows:
            workflow = job.workflows[facts.name]
            if workflow.is_settled:
                if facts.name not in seen.done and (told := manager.merging.done(job, facts.name)):
                    seen.done.add(facts.name)
                    done.append(told)
            elif live and not job.is_over:
                self._news(job, facts.name, seen, snapshots, windows)
        marks = tuple((m.workflow, m.at_s, m.text) for m in job.marks[seen.marks :])
        seen.marks = len(job.marks)
        final = job.finished
        if not (outline or view or snapshots or windows or done or marks or final):
            return None
        return JobUpdate(
            outline=outline,
            view=view,
            snapshots=tuple(snapshots),
            windows=tuple(windows),
            done=tuple(done),
            marks=marks,
            results=final.results if final is not None else b"",
            final=final is not None,
        )

    def _changed_view(self, job: JobState, seen: _Seen) -> JobView | None:
        """None: the watcher knows it. A view of a thousand parts takes milliseconds, so while the
        job stands where it stood it is not made for every window."""
        now = self._manager.now()
        standing = (job.status, job.paused, *(w.lifecycle.state for w in job.workflows.values()))
        if standing == seen.standing and now < seen.viewed_at + VIEW_S:
            return None
        seen.standing, seen.viewed_at = standing, now
        view = self._view(job)
        told = msgspec.structs.replace(view, age_s=0.0, workflows=_without_numbers(view))
        if told == seen.view:
            return None
        seen.view = told
        return view

    def _news(
        self,
        job: JobState,
        name: str,
        seen: _Seen,
        snapshots: list[Snapshot],
        windows: list[Window],
    ) -> None:
        manager = self._manager
        patient = manager.now() - seen.since < manager.settings.snapshot_wait_s
        news = manager.live.since(job.job_id, name, seen.index.get(name), whole=patient)
        if isinstance(news, Snapshot):
            snapshots.append(news)
            seen.index[name] = news.index
        elif news:
            windows.extend(news)
            seen.index[name] = news[-1].index


@dataclass(slots=True)
class _Seen:
    """What one watcher has been told."""

    since: float
    outlined: bool = False
    view: JobView | None = None
    viewed_at: float = 0.0
    standing: tuple[object, ...] = ()
    index: dict[str, int] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    marks: int = 0


def submitting(
    ask: SubmitJob, sealing: Sealing = UNSEALED, who: Asker = NOBODY
) -> Generator[None, None, Submitted]:
    """The record of a submission, in steps. Raises MsgspecError, ValueError or HyperscaleError for
    one that makes no sense, or too much of it."""
    if not 0 < len(ask.job_id) <= ID_CHARS_MAX or not ask.job_id.isprintable():
        raise ValueError(f"a job's id has 1 to {ID_CHARS_MAX} characters")
    check_sizes(ask.body)
    yield
    body = msgspec.msgpack.decode(ask.body, type=Body)
    for what, text in (
        ("name", body.name),
        ("correlation id", ask.correlation_id),
        ("requester", ask.requested_by),
    ):
        if len(text) > TEXT_CHARS_MAX:
            raise ValueError(f"a job's {what} has at most {TEXT_CHARS_MAX} characters")
    yield from dispatch.check_judges(body)
    needs: tuple[Needs, ...] = tuple(dispatch.needs_of(facts) for facts in body.workflows)
    return Submitted(
        job_id=ask.job_id,
        age_s=0.0,
        name=body.name or ", ".join(facts.name for facts in body.workflows)[:200],
        workflows=needs,
        timeout_s=dispatch.timeout_s(body, needs),
        body=msgspec.msgpack.encode(sealing.seal_body(body)),
        idempotency_key=ask.idempotency_key,
        digest=_digest(body),
        requested_by=ask.requested_by,
        correlation_id=ask.correlation_id or ask.job_id,
        lost_load=body.lost_load,
        owner=who.owner,
        groups=who.groups if who.owner else (),
    )


def _digest(body: Body) -> str:
    """Of what a job is; when and how it was asked for makes no other job of it."""
    source = b"" if body.identity else body.source
    same = msgspec.structs.replace(body, started_at="", command="", source=source)
    return hashlib.blake2b(msgspec.msgpack.encode(same), digest_size=16).hexdigest()


def _is_ending(job: JobState) -> bool:
    return bool(job.ending) or job.is_over


def _outline(body: Body) -> Outline:
    return Outline(
        workflows=body.workflows,
        name=body.name,
        started_at=body.started_at,
        command=body.command,
        tags=body.tags,
        warnings=body.warnings,
    )


def _without_numbers(view: JobView) -> tuple[Any, ...]:
    """A view without what moves all the time: only other changes are worth telling."""
    return tuple(
        msgspec.structs.replace(workflow, elapsed_s=0.0, requests=0, failed=0)
        for workflow in view.workflows
    )
