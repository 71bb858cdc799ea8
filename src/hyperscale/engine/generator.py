"""A generator process: takes one workflow's share at a time from its parent and runs it.

Started with its end of a socket pair and the parent's process number. It ends when the parent
closes the other end, for whatever reason, so no generator outlives its run. On Linux the kernel
also kills it with its parent, which helps when the author's code never lets go of the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
import traceback
from collections.abc import Coroutine
from typing import Any

from hyperscale.engine import memory, unpacking
from hyperscale.engine.assignment import Assignment
from hyperscale.engine.cores import raise_open_files
from hyperscale.engine.masking import masked
from hyperscale.engine.messages import (
    Command,
    Failed,
    Go,
    Leash,
    Line,
    Pause,
    Prepare,
    Prepared,
    Report,
    Resume,
    Scale,
    Stop,
    Teardown,
)
from hyperscale.errors import BadInput, HyperscaleError
from hyperscale.workload import frames
from hyperscale.workload.secrets import register

# Requests create and drop objects by reference count alone; the collector would only walk the VUs.
GC_THRESHOLDS = (50_000, 20, 100)
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Generator:
    def __init__(self, line: Line) -> None:
        self._line = line
        self._assignment: Assignment | None = None
        self._work: asyncio.Task[None] | None = None
        self._here = ""  # where it is, for a sentence
        self._leash: asyncio.TimerHandle | None = None

    async def serve(self) -> None:
        while (command := await self._line.command()) is not None:
            await self._obey(command)

    async def _obey(self, command: Command) -> None:
        if isinstance(command, Prepare):
            if self._assignment is not None:
                await self._assignment.close()
            for name in command.secrets:
                register(name, command.env[name])
            self._here = f"on {command.worker}: " if command.worker else ""
            self._assignment = Assignment(command, self._send)
            self._start(self._prepare(self._assignment))
            return
        if isinstance(command, Leash):
            self._hold(command.for_s)
            return
        assignment = self._assignment
        assert assignment is not None, "the parent prepares before it commands"
        if isinstance(command, Go):
            self._start(self._run(assignment, command))
            await asyncio.sleep(0)  # it begins before the next command, which may steer it
        elif isinstance(command, Pause):
            assignment.pause()
        elif isinstance(command, Resume):
            assignment.resume()
        elif isinstance(command, Scale):
            assignment.scale(command.delta)
        elif isinstance(command, Stop):
            assignment.stop(command.now)
        elif isinstance(command, Teardown):
            self._start(self._teardown(assignment, command))

    def _send(self, report: Report) -> None:
        self._line.send(masked(report))

    def _hold(self, for_s: float) -> None:
        if self._leash is not None:
            self._leash.cancel()
        self._leash = asyncio.get_running_loop().call_later(for_s, self._let_go)

    def _let_go(self) -> None:
        if self._assignment is not None:
            self._assignment.cut_off()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = asyncio.create_task(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except MemoryError:
            memory.make_room()
            self._send(Failed("the test needs more memory than a generator process may take"))
        except HyperscaleError as error:
            detail = frames.author_traceback(error.__cause__ or error)
            bad_input = isinstance(error, BadInput)
            self._send(Failed(self._here + error.message, error.hint, bad_input, detail))
        except Exception as error:  # noqa: BLE001 - whatever broke, the parent must learn of it
            detail = "".join(traceback.format_exception(error))
            hint = frames.variable_hint(error)
            self._send(Failed(self._here + frames.told(error), hint, detail=detail))

    async def _prepare(self, assignment: Assignment) -> None:
        began = asyncio.get_running_loop().time()
        wrote = await assignment.prepare()
        self._send(Prepared(asyncio.get_running_loop().time() - began, wrote))

    async def _run(self, assignment: Assignment, go: Go) -> None:
        self._send(await assignment.run(go.context))

    async def _teardown(self, assignment: Assignment, command: Teardown) -> None:
        self._send(await assignment.teardown(command.context))


async def _main(descriptor: int) -> None:
    raise_open_files()
    gc.set_threshold(*GC_THRESHOLDS)
    line = await Line.open(socket.socket(fileno=descriptor))
    await Generator(line).serve()
    # The parent is done with us or gone: whatever user code still hangs does not matter any more.
    unpacking.remove()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _die_with(parent: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before the kernel had been asked
        os._exit(1)


def main() -> None:
    if sys.argv[2]:
        _die_with(int(sys.argv[2]))
    loop: asyncio.AbstractEventLoop
    try:
        import uvloop
    except ImportError:  # Windows
        loop = asyncio.new_event_loop()
    else:
        loop = uvloop.new_event_loop()
    with contextlib.suppress(KeyboardInterrupt):
        _run(_main(int(sys.argv[1])), loop)


def _run(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> None:
    """To its end: asyncio lets SystemExit of any task out of the loop, also of the author's."""
    asyncio.set_event_loop(loop)
    task = loop.create_task(work)
    while not task.done():
        with contextlib.suppress(SystemExit):
            loop.run_until_complete(task)
