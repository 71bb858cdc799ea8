"""Managers that follow a script: real wire servers that share one book of jobs.

A test moves a job along by hand (`job.load(...)`, `job.finish(...)`); whoever watches it through
any of the managers is told, and begins with all there is.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from hyperscale.engine.results import Course, aggregate_of, assemble
from hyperscale.errors import ExitCode
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.metrics.histogram import Histogram, Sparse
from hyperscale.metrics.results import Cut, encode
from hyperscale.nodes.client.managers import REGISTRY
from hyperscale.nodes.client.submission import outline_of
from hyperscale.nodes.member.queries import AskMembers, MemberRow, Members
from hyperscale.nodes.protocol.jobs import (
    UNKNOWN_JOB,
    AskJob,
    AskJobs,
    AskResults,
    AskWorkers,
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
    WorkerView,
    WorkerViews,
    WorkflowDone,
    WorkflowView,
)
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost
from hyperscale.wire.certificates import Credentials
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import Refused
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.server import Server
from hyperscale.wire.serving import Call

DEADLINE_S = 20.0


def latencies(count: int) -> Sparse:
    histogram = Histogram()
    for number in range(count):
        histogram.record(0.001 * (number + 1))
    sparse = histogram.sparse()
    assert sparse is not None
    return sparse


class Job:
    def __init__(self, ask: SubmitJob) -> None:
        self.ask = ask
        self.body = msgspec.msgpack.decode(ask.body, type=Body)
        self.status: Any = "submitted"
        self.reason = ""
        self.states = {facts.name: "pending" for facts in self.body.workflows}
        self.aggregates = {facts.name: aggregate_of(facts) for facts in self.body.workflows}
        self.index = dict.fromkeys(self.states, 0)
        self.done: list[WorkflowDone] = []
        self.results = b""
        self.steered: list[tuple[str, int]] = []
        self.concerned: list[str] = []  # by what was steered; "" is every workflow
        self.rate_percent = 100
        self.paused = False
        self.watchers: list[asyncio.Queue[JobUpdate]] = []

    @property
    def view(self) -> JobView:
        workflows = [
            WorkflowView(
                name=name,
                state=state,
                lifecycle=state.upper(),
                cores=2,
                workers=("w1",),
                attempts=1,
                elapsed_s=self.aggregates[name].elapsed_s,
                planned_s=10.0,
                requests=self.aggregates[name].requests,
                failed=self.aggregates[name].failed,
                rate_percent=self.rate_percent,
                history=("0.0 PENDING → RUNNING (dispatched)",),
            )
            for name, state in self.states.items()
        ]
        return JobView(
            job_id=self.ask.job_id,
            name=self.body.name,
            status=self.status,
            reason=self.reason,
            age_s=3.0,
            paused=self.paused,
            workflows=tuple(workflows),
            requested_by=self.ask.requested_by,
        )

    def whole(self) -> JobUpdate:
        return JobUpdate(
            outline=outline_of(self.body),
            view=self.view,
            snapshots=tuple(
                Snapshot(
                    workflow=name,
                    index=self.index[name],
                    elapsed_s=aggregate.elapsed_s,
                    state=aggregate.export(),
                )
                for name, aggregate in self.aggregates.items()
            ),
            done=tuple(self.done),
            results=self.results,
            final=bool(self.results),
        )

    def tell(self, update: JobUpdate) -> None:
        for watcher in self.watchers:
            watcher.put_nowait(update)

    def become(self, status: str, reason: str = "", **states: str) -> None:
        self.status, self.reason = status, reason
        self.states |= states
        self.tell(JobUpdate(view=self.view))

    def load(self, name: str, requests: int, failed: int = 0, vus: int = 5) -> None:
        """One window in which so many requests were made."""
        aggregate = self.aggregates[name]
        self.index[name] += 1
        step = next(s for w in self.body.workflows if w.name == name for s in w.steps)
        delta = Delta(
            seq=self.index[name],
            vus=vus,
            iteration=latencies(requests),
            requests=[
                RequestDelta(
                    RequestKey(step.name),
                    count=requests,
                    failed=failed,
                    service=latencies(requests),
                )
            ],
        )
        at_s = aggregate.elapsed_s + 0.1
        aggregate.apply(0, delta, at_s)
        window = Window(
            workflow=name, index=self.index[name], elapsed_s=at_s, delta=delta, workers=1
        )
        self.tell(JobUpdate(windows=(window,)))

    def end(self, name: str, status: str = "completed", error: str = "", hint: str = "") -> None:
        self.states[name] = status
        aggregate = self.aggregates[name]
        aggregate.facts.state, aggregate.facts.error = "finished", error
        done = WorkflowDone(
            workflow=name,
            status=status,
            result=msgspec.json.encode(aggregate.freeze()),
            error=error,
            hint=hint,
        )
        self.done.append(done)
        self.tell(JobUpdate(view=self.view, done=(done,)))

    def finish(
        self,
        status: str = "completed",
        reason: str = "",
        exit_code: ExitCode = ExitCode.PASSED,
        cut: Cut | None = None,
    ) -> None:
        course = Course(
            name=self.body.name,
            started_at=self.body.started_at,
            elapsed_s=3.0,
            state="finished",
            cut=cut,
            cut_reason=reason,
        )
        results = assemble(course, self.aggregates.values(), final=True)
        results.exit_code = int(exit_code)
        results.passed = exit_code == ExitCode.PASSED
        self.status, self.reason, self.results = status, reason, encode(results)
        self.tell(JobUpdate(view=self.view, results=self.results, final=True))


class Book:
    """What all managers of a test know."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.submissions: list[SubmitJob] = []
        self.by_key: dict[str, str] = {}
        self.answers: list[Callable[[SubmitJob], JobAck]] = []
        self.silent = False  # submissions are held, and not answered
        self.on_job: Callable[[Job], None] = lambda job: None
        self.on_steer: Callable[[Job, SteerJob], None] = lambda job, ask: None
        self.managers: list[ScriptedManager] = []

    @property
    def only(self) -> Job:
        (job,) = self.jobs.values()
        return job

    def submit(self, ask: SubmitJob) -> JobAck:
        self.submissions.append(ask)
        if self.answers:
            return self.answers.pop(0)(ask)
        known = self.by_key.get(ask.idempotency_key) if ask.idempotency_key else None
        job_id = known or ask.job_id
        duplicate = job_id in self.jobs
        if not duplicate:
            job = self.jobs[job_id] = Job(ask)
            if ask.idempotency_key:
                self.by_key[ask.idempotency_key] = job_id
            self.on_job(job)
        return JobAck(
            job_id=job_id,
            accepted=True,
            leader="m1",
            was_duplicate=duplicate,
            original_job_id=job_id if duplicate else "",
        )

    def known(self, call: Call, job_id: str) -> Job:
        if job_id not in self.jobs:
            raise Refused(call.kind.name, f"no job {job_id} is known", code=UNKNOWN_JOB)
        return self.jobs[job_id]

    def steer(self, ask: SteerJob, job: Job) -> SteerAck:
        job.steered.append((ask.action, ask.amount))
        job.concerned.append(ask.workflow)
        self.on_steer(job, ask)
        return SteerAck(job_id=ask.job_id, accepted=True, workflows=len(job.states))


class ScriptedManager:
    def __init__(
        self,
        book: Book,
        folder: Path,
        name: str = "m1",
        *,
        cluster: str = "default",
        environment: str = "dev",
        protocol: tuple[int, int] | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self.book = book
        self.name = name
        self.lose_answers = 0
        self.connections = 0
        self.host = RealHost(name, folder / name, report=lambda *_: None)
        identity = Identity(
            node_id=name,
            incarnation=1,
            role="manager",
            cluster_id=cluster,
            environment_id=environment,
            datacenter="eu-1" if credentials is None else "local",
        )
        more: dict[str, Any] = {} if protocol is None else {"protocol": protocol}
        self._endpoint = Endpoint(
            self.host,
            Introduction(identity, gateless=True, **more),
            REGISTRY,
            {
                SubmitJob: self._submit,
                SteerJob: lambda call, ask: book.steer(ask, book.known(call, ask.job_id)),
                AskJob: lambda call, ask: (
                    book.known(call, ask.job_id or book.by_key.get(ask.idempotency_key, "")).view
                ),
                AskJobs: lambda call, ask: JobViews(
                    jobs=tuple(job.view for job in book.jobs.values()), leader="m1"
                ),
                AskResults: self._results,
                AskWorkers: lambda call, ask: WorkerViews(
                    workers=(
                        WorkerView(
                            worker="w1",
                            address="127.0.0.1:7103",
                            state="healthy",
                            total_cores=4,
                            free_cores=3,
                            cpu_percent=41.2,
                            memory_percent=9.9,
                        ),
                    ),
                    leader="m1",
                    total_cores=4,
                    free_cores=3,
                ),
                AskMembers: self._members,
                WatchJob: self._watch,
            },
            credentials=credentials,
            plaintext="loopback",
            report=lambda *_: None,
        )
        self._server = Server(self._endpoint, self._connected)
        self.address = Address("", 0)
        book.managers.append(self)

    async def start(self, port: int = 0) -> Address:
        self.address = await self._server.start(Address("127.0.0.1", port))
        return self.address

    async def stop(self) -> None:
        self._server.close()
        await self.host.stop()

    def _connected(self, connection: object) -> None:
        self.connections += 1

    async def _submit(self, call: Call, ask: SubmitJob) -> JobAck:
        ack = self.book.submit(ask)
        if self.lose_answers:
            self.lose_answers -= 1
            call.connection.close("lost on purpose")
            await asyncio.sleep(DEADLINE_S)
        if self.book.silent:
            await asyncio.Event().wait()
        return ack

    def _results(self, call: Call, ask: AskResults) -> JobResults:
        job = self.book.jobs.get(ask.job_id)
        if job is None:
            return JobResults(job_id=ask.job_id, known=False)
        return JobResults(job_id=ask.job_id, known=True, status=job.status, results=job.results)

    def _members(self, call: Call, ask: AskMembers) -> Members:
        rows = [
            MemberRow(
                node_id=manager.name,
                role="manager",
                datacenter="eu-1",
                state="alive",
                confirmed=True,
                incarnation=1,
                address=str(manager.address),
                since_s=1.0,
            )
            for manager in self.book.managers
        ]
        return Members(node_id=self.name, cluster="default", env="dev", rows=rows)

    async def _watch(self, call: Call, ask: WatchJob) -> AsyncIterator[JobUpdate]:
        job = self.book.known(call, ask.job_id)
        queue: asyncio.Queue[JobUpdate] = asyncio.Queue()
        job.watchers.append(queue)
        try:
            update = job.whole()
            while True:
                yield update
                if update.final:
                    return
                update = await queue.get()
        finally:
            job.watchers.remove(queue)


@contextlib.asynccontextmanager
async def managers(book: Book, folder: Path, count: int = 1) -> AsyncIterator[list[str]]:
    """So many managers on loopback; their addresses."""
    made = [ScriptedManager(book, folder, f"m{number + 1}") for number in range(count)]
    try:
        yield [str(await manager.start()) for manager in made]
    finally:
        for manager in made:
            await manager.stop()


@contextlib.contextmanager
def in_a_thread(book: Book, folder: Path) -> Iterator[str]:
    """One manager beside a test that is not asynchronous; its address."""
    ready, address = threading.Event(), ""
    loop = asyncio.new_event_loop()
    done = asyncio.Event()

    async def serve() -> None:
        nonlocal address
        async with managers(book, folder) as addresses:
            (address,) = addresses
            ready.set()
            await done.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(DEADLINE_S)
        yield address
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(DEADLINE_S)
        loop.close()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - conditions of another node have no event
            await asyncio.sleep(0.002)
