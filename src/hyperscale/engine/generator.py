"""A generator process: takes workflows' shares from its parent and runs them, several at once.

Started with its end of a socket pair, the parent's process number and, on a worker, how it is to
confine itself. It ends when the parent closes the other end, for whatever reason, so no generator
outlives its run. On Linux the kernel also kills it with its parent, which helps when the author's
code never lets go of the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import sys
import traceback
from collections.abc import Coroutine
from functools import partial
from typing import Any

from hyperscale.engine import memory, unpacking
from hyperscale.engine.generator_state import GeneratorState
from hyperscale.engine.masking import masked
from hyperscale.engine.messages import (
    ChangeRate,
    Close,
    Command,
    Failed,
    Go,
    Lease,
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
from hyperscale.engine.slice_run import SliceRun
from hyperscale.engine.spawning import await_taken
from hyperscale.errors import BadInput, HyperscaleError
from hyperscale.metrics import arrays
from hyperscale.runtime import privileges
from hyperscale.runtime.open_files import raise_open_files
from hyperscale.workload import frames
from hyperscale.workload.secrets import register

# Requests create and drop objects by reference count alone; the collector would only walk the VUs.
GC_THRESHOLDS = (50_000, 20, 100)
# One kept in reserve has time to import what its first order would wait for.
IDLE_S = 1.0


class Generator:
    def __init__(self, line: Line) -> None:
        self._line = line
        self._process = GeneratorState()
        self._slices: dict[int, SliceRun] = {}
        self._work: dict[int, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._here = ""  # where it is, for a sentence
        self._lease: asyncio.TimerHandle | None = None

    async def serve(self) -> None:
        asyncio.get_running_loop().call_later(IDLE_S, arrays.load)
        while (told := await self._line.command()) is not None:
            await self._obey(*told)

    async def _obey(self, number: int, command: Command) -> None:
        if isinstance(command, Prepare):
            for name in command.secrets:
                register(name, command.env[name])
            self._here = f"on {command.worker}: " if command.worker else ""
            slice_run = SliceRun(command, partial(self._send, number), self._process)
            self._slices[number] = slice_run
            self._start(number, self._prepare(number, slice_run))
            return
        if isinstance(command, Lease):
            self._hold(command.for_s)
            return
        slice_run = self._slices[number]
        if isinstance(command, Go):
            self._start(number, self._run(number, slice_run, command))
            await asyncio.sleep(0)  # it begins before the next command, which may steer it
        elif isinstance(command, Pause):
            slice_run.pause()
        elif isinstance(command, Resume):
            slice_run.resume()
        elif isinstance(command, Scale):
            slice_run.scale(command.delta)
        elif isinstance(command, ChangeRate):
            slice_run.change_rate(command.factor)
        elif isinstance(command, Stop):
            slice_run.stop(command.now)
        elif isinstance(command, Teardown):
            self._start(number, self._teardown(number, slice_run, command))
        elif isinstance(command, Close):
            self._close(number)

    def _send(self, number: int, report: Report) -> None:
        self._line.send(number, masked(report))

    def _hold(self, for_s: float) -> None:
        if self._lease is not None:
            self._lease.cancel()
        self._lease = asyncio.get_running_loop().call_later(for_s, self._let_go)

    def _let_go(self) -> None:
        for slice_run in self._slices.values():
            slice_run.cut_off()

    def _start(self, number: int, work: Coroutine[Any, Any, None]) -> None:
        self._work[number] = asyncio.create_task(self._guarded(number, work))

    def _close(self, number: int) -> None:
        """Whatever it still does, it is over for the others in this process."""
        slice_run, work = self._slices.pop(number), self._work.pop(number)
        slice_run.stop(now=True)
        work.cancel()
        closing = asyncio.create_task(slice_run.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _guarded(self, number: int, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except MemoryError:
            memory.make_room()
            self._send(
                number, Failed("the test needs more memory than a generator process may take")
            )
        except HyperscaleError as error:
            detail = frames.author_traceback(error.__cause__ or error)
            bad_input = isinstance(error, BadInput)
            self._send(number, Failed(self._here + error.message, error.hint, bad_input, detail))
        except Exception as error:  # noqa: BLE001 - whatever broke, the parent must learn of it
            detail = "".join(traceback.format_exception(error))
            hint = frames.variable_hint(error)
            self._send(number, Failed(self._here + frames.told(error), hint, detail=detail))

    async def _prepare(self, number: int, slice_run: SliceRun) -> None:
        began = asyncio.get_running_loop().time()
        wrote = await slice_run.prepare()
        self._send(number, Prepared(asyncio.get_running_loop().time() - began, wrote))

    async def _run(self, number: int, slice_run: SliceRun, go: Go) -> None:
        self._send(number, await slice_run.run(go.context, go.run_age_s))

    async def _teardown(self, number: int, slice_run: SliceRun, command: Teardown) -> None:
        self._send(number, await slice_run.teardown(command.context))


async def _main(parent: socket.socket) -> None:
    raise_open_files()
    gc.set_threshold(*GC_THRESHOLDS)
    line = await Line.open(parent)
    await Generator(line).serve()
    # The parent is done with us or gone: whatever user code still hangs does not matter any more.
    unpacking.remove()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def main() -> None:
    if sys.argv[3]:
        from hyperscale.engine import confinement

        confinement.confine(sys.argv[3])
    if sys.argv[2]:
        privileges.die_with(int(sys.argv[2]))
    loop: asyncio.AbstractEventLoop
    try:
        import uvloop
    except ImportError:  # Windows
        loop = asyncio.new_event_loop()
    else:
        loop = uvloop.new_event_loop()
    parent = socket.socket(fileno=int(sys.argv[1]))
    if await_taken(parent):
        with contextlib.suppress(KeyboardInterrupt):
            _run(_main(parent), loop)


def _run(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> None:
    """To its end: asyncio lets SystemExit of any task out of the loop, also of the author's."""
    asyncio.set_event_loop(loop)
    task = loop.create_task(work)
    while not task.done():
        with contextlib.suppress(SystemExit):
            loop.run_until_complete(task)
