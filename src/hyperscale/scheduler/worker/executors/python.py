"""`python`: importable callables from an allow-list, in child processes that stay for the next job.

A process runs one job at a time. Killing a job kills its process, and the next job gets a new one.
Payload: `call` ("package.module:function"), `args` (JSON list), `kwargs` (JSON object).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from hyperscale.scheduler.queue.job import Failure
from hyperscale.scheduler.worker.executors.allowed import Allowed
from hyperscale.scheduler.worker.executors.executor import Broken, Done, Result, Task, permanent
from hyperscale.scheduler.worker.executors.orphans import Children
from hyperscale.scheduler.worker.executors.processes import to_the_end
from hyperscale.scheduler.worker.executors.python_child import Call, Returned
from hyperscale.scheduler.worker.executors.python_process import Fate, Pending, PythonProcess

ALLOWED_MAX: Final = 1024
_SILENT: Final = Done(exit_code=0)
_FAILURES = {"permanent": Failure.PERMANENT, "transient": Failure.TRANSIENT, "": Failure.ERROR}


class PythonExecutor:
    def __init__(self, allow: Sequence[str], children: Children) -> None:
        """Patterns such as `shop.jobs:*` or `shop.jobs:nightly`."""
        allowed = Allowed(allow)
        self._named = allowed.named
        self._matched = lru_cache(maxsize=ALLOWED_MAX)(allowed.matched)
        """Remembered, because jobs are many and callables few."""
        self._children = children
        self._idle: list[PythonProcess] = []
        self._closed = False

    async def run(self, task: Task) -> Result:
        pipeline = self.pipeline()
        try:
            return await pipeline.run(task, ())
        finally:
            await pipeline.close()

    def pipeline(self) -> PythonPipeline:
        return PythonPipeline(self)

    def call_of(self, task: Task) -> Call | Broken:
        target = task.payload.get("call", "")
        if not target:
            return permanent("the payload has no 'call'")
        named = self._named(target)
        if not named and not self._matched(target):
            return permanent(f"{target!r} is not on the allow-list of this worker")
        args, kwargs = task.payload.get("args", ""), task.payload.get("kwargs", "")
        return Call(target, not named, args, kwargs, task.job_id, task.token)

    async def take(self) -> PythonProcess:
        while self._idle:
            process = self._idle.pop()
            if not process.gone:
                return process
        return await PythonProcess.start(self._children)

    async def give_back(self, process: PythonProcess) -> None:
        if self._closed or process.gone:
            await process.kill()
        else:
            self._idle.append(process)

    async def close(self) -> None:
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(process.kill() for process in idle))


class _Sent(NamedTuple):
    process: PythonProcess
    pending: Pending


class PythonPipeline:
    """One process at a time, kept between jobs; another one when it ends."""

    def __init__(self, executor: PythonExecutor) -> None:
        self._executor = executor
        self._process: PythonProcess | None = None
        self._sent: dict[str, _Sent] = {}
        self._unsent: list[Call] = []
        """Upcoming, while a process is being started."""

    async def run(self, task: Task, upcoming: Sequence[Task]) -> Result:
        self._unsent = [c for c in map(self._executor.call_of, upcoming) if isinstance(c, Call)]
        sent = self._sent.pop(task.job_id, None)
        if sent is not None and self._unsent and not sent.process.gone:
            self._send(sent.process)
        while True:
            if sent is None:
                call = self._executor.call_of(task)
                if isinstance(call, Broken):
                    return call
                try:
                    process = await self._living()
                except OSError as error:
                    return Broken(failure=Failure.EXHAUSTED, error=f"no process: {error}")
                self._send(process, call)
                sent = self._sent.pop(task.job_id)
            sent.process.moved = task.moved
            done = sent.pending.done()
            outcome = sent.pending.result() if done else await self._outcome(sent)
            if isinstance(outcome, Returned):
                return _result(outcome)
            if outcome is Fate.ENDED:
                return await _ended(sent.process)
            sent = None

    def answered(self, job_id: str) -> Result | None:
        sent = self._sent.get(job_id)
        if sent is None or not sent.pending.done():
            return None
        outcome = sent.pending.result()
        if not isinstance(outcome, Returned):
            return None
        del self._sent[job_id]
        return _result(outcome)

    def withdraw(self) -> frozenset[str]:
        self._unsent.clear()
        if self._process is not None:
            self._process.withdraw()
        self._sent = {
            job_id: sent
            for job_id, sent in self._sent.items()
            if not sent.pending.done() or sent.pending.result() is not Fate.WITHDRAWN
        }
        return frozenset(self._sent)

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await self._executor.give_back(process)

    async def _living(self) -> PythonProcess:
        if self._process is None or self._process.gone:
            self._process = await self._executor.take()
        return self._process

    def _send(self, process: PythonProcess, *first: Call) -> None:
        calls = [*first, *self._unsent]
        self._unsent.clear()
        for call, pending in zip(calls, process.send(calls), strict=True):
            self._sent[call.job_id] = _Sent(process, pending)

    async def _outcome(self, sent: _Sent) -> Returned | Fate:
        try:
            return await sent.pending
        except asyncio.CancelledError:
            self._process = None
            await to_the_end(sent.process.kill())
            raise


async def _ended(process: PythonProcess) -> Broken:
    if process.killed:
        error = "its process was stopped with the job before it"
        return Broken(failure=Failure.TRANSIENT, error=error)
    code = await process.process.wait()
    await to_the_end(process.kill())
    return Broken(failure=Failure.ERROR, error=f"the process ended with {code}", exit_code=code)


def _result(returned: Returned) -> Result:
    if not returned.error:
        return Done(exit_code=0, log=returned.log) if returned.log else _SILENT
    return Broken(
        failure=_FAILURES[returned.kind], error=returned.error, exit_code=1, log=returned.log
    )
