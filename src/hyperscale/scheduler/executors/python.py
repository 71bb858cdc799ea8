"""`python`: importable callables from an allow-list, in child processes that stay for the next job.

A child runs one job at a time. Killing a job kills its child, and the next job gets a new one.
Payload: `call` ("package.module:function"), `args` (JSON list), `kwargs` (JSON object).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from hyperscale.scheduler.executors.contract import Broken, Done, Result, Task, permanent
from hyperscale.scheduler.executors.payload import decoded, required
from hyperscale.scheduler.executors.processes import kill_tree
from hyperscale.scheduler.executors.python_child import HEAD, Call, Returned
from hyperscale.scheduler.model.errors import InvalidJob
from hyperscale.scheduler.model.failure import Failure

_FAILURES = {"permanent": Failure.PERMANENT, "transient": Failure.TRANSIENT, "": Failure.ERROR}
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Returned).decode


class _Child:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._requests = process.stdin
        self._answers = process.stdout

    async def call(self, call: Call) -> Returned:
        """Raises EOFError or OSError when the child dies under it."""
        body = _encode(call)
        self._requests.write(HEAD.pack(len(body)) + body)
        (size,) = HEAD.unpack(await self._answers.readexactly(HEAD.size))
        return _decode(await self._answers.readexactly(size))


class PythonExecutor:
    def __init__(self, allow: Sequence[str]) -> None:
        """Patterns such as `shop.jobs:*` or `shop.jobs:nightly`."""
        self._allow = tuple(allow)
        self._idle: list[_Child] = []
        self._closed = False

    async def run(self, task: Task) -> Result:
        try:
            call = Call(
                required(task.payload, "call"),
                decoded(task.payload, "args", list[Any], []),
                decoded(task.payload, "kwargs", dict[str, Any], {}),
                task.job_id,
                task.token,
            )
        except InvalidJob as error:
            return permanent(error.message)
        if not self.allows(call.target):
            return permanent(f"{call.target!r} is not on the allow-list of this worker")
        try:
            child = self._idle.pop() if self._idle else await _spawn()
        except OSError as error:
            return Broken(failure=Failure.EXHAUSTED, error=f"no process: {error}")
        return await self._run_on(child, call)

    def allows(self, target: str) -> bool:
        module, colon, name = target.partition(":")
        return bool(module and colon and name) and any(
            fnmatchcase(target, pattern) for pattern in self._allow
        )

    async def close(self) -> None:
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(kill_tree(child.process, grace_s=0) for child in idle))

    async def _run_on(self, child: _Child, call: Call) -> Result:
        fit = False
        try:
            returned = await child.call(call)
            fit = True
        except (EOFError, OSError):
            code = await child.process.wait()
            return Broken(
                failure=Failure.ERROR, error=f"the process ended with {code}", exit_code=code
            )
        finally:
            if fit and not self._closed:
                self._idle.append(child)
            else:
                await asyncio.shield(kill_tree(child.process, grace_s=0))
        if not returned.error:
            return Done(exit_code=0, log=returned.log)
        return Broken(
            failure=_FAILURES[returned.kind], error=returned.error, exit_code=1, log=returned.log
        )


async def _spawn() -> _Child:
    return _Child(
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "hyperscale.scheduler.executors.python_child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    )
