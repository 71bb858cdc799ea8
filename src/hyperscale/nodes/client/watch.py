"""One job, watched for a program: callbacks told, waiting callers woken.

Status and results are told in order and in full; progress as often as `pacing` allows. A callback
may be a plain function or a coroutine function. What it raises is logged once and changes
nothing.
"""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from hyperscale.errors import HyperscaleError, RunFailed
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.errors import JobCancelled, JobFailed
from hyperscale.nodes.client.pacing import Pacing
from hyperscale.nodes.client.picture import News, Picture
from hyperscale.nodes.client.pushes import (
    FINAL,
    JobOutcome,
    JobStatusPush,
    WindowedStatsPush,
    WorkflowResultPush,
    result_push,
    status_push,
    window_push,
)
from hyperscale.runtime import logs
from hyperscale.runtime.host import Host

StatusCallback = Callable[[JobStatusPush], Awaitable[None] | None]
ProgressCallback = Callable[[WindowedStatsPush], Awaitable[None] | None]
ResultCallback = Callable[[WorkflowResultPush], Awaitable[None] | None]

_FAILED = frozenset({"failed", "timeout"})


@dataclass(frozen=True, slots=True)
class Callbacks:
    status: StatusCallback | None = None
    progress: ProgressCallback | None = None
    result: ResultCallback | None = None

    @property
    def any(self) -> bool:
        return not (self.status is None and self.progress is None and self.result is None)


class JobWatch:
    def __init__(self, host: Host, cluster: Cluster, job_id: str, callbacks: Callbacks) -> None:
        self._host = host
        self._cluster = cluster
        self._job_id = job_id
        self._callbacks = callbacks
        self._picture = Picture()
        self._status = ""
        self._results: list[WorkflowResultPush] = []
        self._outcome: JobOutcome | None = None
        self._failure: HyperscaleError | None = None
        self._changed = asyncio.Event()
        self._pacing = Pacing()
        self._to_tell: deque[JobStatusPush | WorkflowResultPush] = deque()
        self._telling = asyncio.Event()
        self._told_all = asyncio.Event()
        self._complained: set[str] = set()
        self._started = False

    @property
    def over(self) -> bool:
        """Nothing more comes of it."""
        return self._outcome is not None or self._failure is not None

    @property
    def failed(self) -> bool:
        """Contact was lost; watching anew may do better."""
        return self._failure is not None

    def start(self) -> None:
        if not self._started:
            self._started = True
            self._host.tasks.spawn(f"follow job {self._job_id}", self._follow())
            if self._callbacks.any:
                self._host.tasks.spawn(f"tell of job {self._job_id}", self._tell())
            else:
                self._told_all.set()

    async def outcome(self) -> JobOutcome:
        """The end, once all callbacks have been told of it."""
        while self._outcome is None:
            await self._change()
        await self._told_all.wait()
        return self._outcome

    async def results(self) -> AsyncIterator[WorkflowResultPush]:
        """Every workflow once, those that ended before included; raises after the last one when
        the job failed or was cancelled."""
        given = 0
        while self._outcome is None or given < len(self._results):
            if given < len(self._results):
                given += 1
                yield self._results[given - 1]
            else:
                await self._change()
        outcome = self._outcome
        if outcome.status == "cancelled":
            raise JobCancelled(self._job_id, outcome.status, outcome.reason)
        if outcome.status in _FAILED:
            raise JobFailed(self._job_id, outcome.status, outcome.reason)

    async def _change(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._changed.clear()
        await self._changed.wait()

    async def _follow(self) -> None:
        live = self._callbacks.progress is not None
        try:
            async with aclosing(self._cluster.follow(self._job_id, live=live)) as updates:
                async for update in updates:
                    self._note(self._picture.apply(update))
                    if self._picture.over:
                        self._end()
                    self._changed.set()
                    self._telling.set()
        except HyperscaleError as error:
            self._failure = error
        except Exception as error:  # noqa: BLE001 - whoever waits would wait for ever
            self._failure = RunFailed(
                f"the cluster told something of job {self._job_id} that cannot be understood here:"
                f" {error!r}",
                "the job goes on; is the cluster of another version than this client?",
            )
        finally:
            if not self.over:
                self._failure = RunFailed(
                    f"the client was stopped while job {self._job_id} was watched",
                    "the job goes on",
                )
            self._changed.set()
            self._telling.set()

    def _note(self, news: News) -> None:
        for progress in news.progress:
            self._pacing.offer(
                window_push(
                    self._job_id,
                    progress.window,
                    progress.since_s,
                    progress.requests,
                    progress.failed,
                )
            )
        for done in news.done:
            push = result_push(self._job_id, done)
            self._results.append(push)
            self._to_tell.append(push)
        view = news.view
        if view is not None and view.status != self._status and view.status not in FINAL:
            self._status = view.status
            self._to_tell.append(status_push(view, is_final=False))

    def _end(self) -> None:
        view, results = self._picture.view, self._picture.final
        status = self._picture.ended_as or "failed"
        self._outcome = JobOutcome(
            job_id=self._job_id,
            status=status,
            reason=view.reason if view is not None else "",
            results=results,
            workflows=tuple(self._results),
        )
        if view is not None:
            self._to_tell.append(status_push(view, is_final=True))

    async def _tell(self) -> None:
        """Until the end is told, or until there is nothing more to come."""
        clock = self._host.clock
        try:
            while True:
                while self._to_tell:
                    await self._tell_of(self._to_tell.popleft())
                push = self._pacing.take(clock.now())
                if push is not None:
                    await self._call("progress", self._callbacks.progress, push)
                    continue
                if self.over:
                    return
                self._telling.clear()
                try:
                    async with asyncio.timeout(self._pacing.wait_s(clock.now())):
                        await self._telling.wait()
                except TimeoutError:
                    continue
        finally:
            self._told_all.set()

    async def _tell_of(self, push: JobStatusPush | WorkflowResultPush) -> None:
        if isinstance(push, WorkflowResultPush):
            last = self._pacing.last(push.workflow_id)
            if last is not None:
                await self._call("progress", self._callbacks.progress, last)
            await self._call("result", self._callbacks.result, push)
            return
        if push.is_final:
            for progress in self._pacing.rest():
                await self._call("progress", self._callbacks.progress, progress)
        await self._call("status", self._callbacks.status, push)

    async def _call(self, which: str, callback: Callable[[Any], Any] | None, push: object) -> None:
        if callback is None:
            return
        try:
            answer = callback(push)
            if inspect.isawaitable(answer):
                await answer
        except Exception as error:  # noqa: BLE001 - it is the program's own code
            self._complain(which, error)

    def _complain(self, which: str, error: Exception) -> None:
        if which in self._complained:
            return
        self._complained.add(which)
        # As text, however the program has set up its logs: some print the values of variables
        # beside each frame, and those of a program are nobody's business.
        text = "".join(traceback.format_exception(error))
        logs.logger("client").error(
            "callback raised", callback=f"on_{which}", job=self._job_id, exception=text
        )
