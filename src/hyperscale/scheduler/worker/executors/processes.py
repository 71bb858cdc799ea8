"""Child processes that can be ended with everything they started.

A child leads its own session, so its group can be killed at once. Descendants that made a session
of their own are found through the process table first, while their parent still lives.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from hyperscale.scheduler.worker.executors.orphans import MARK, Children
from hyperscale.scheduler.worker.executors.tail import Tail

TERM_GRACE_S: Final = 2.0
GLANCE_S: Final = 0.05
_READ_BYTES: Final = 64 * 1024


class Exited(NamedTuple):
    code: int
    log: str


async def kill_tree(process: asyncio.subprocess.Process, grace_s: float = TERM_GRACE_S) -> None:
    """SIGTERM to the tree, SIGKILL to what is left of it; returns when the child is gone."""
    victims = _descendants(process.pid)
    if process.returncode is None and grace_s > 0:
        _signal_group(process.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await _ended(process)
    victims += _descendants(process.pid)
    _signal_group(process.pid, signal.SIGKILL)
    for victim in victims:
        victim.kill()
    await _ended(process)
    _let_go(process)


async def to_the_end(killing: Coroutine[Any, Any, None]) -> None:
    """However often whoever waits is cancelled: a job is over when its processes are."""
    task = asyncio.create_task(killing)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError


class _Victim:
    """One descendant; killed only while its id still means the same process."""

    def __init__(self, pid: int) -> None:
        import psutil

        self._process = psutil.Process(pid)

    def kill(self) -> None:
        import psutil

        with suppress(psutil.Error):
            self._process.kill()


def _descendants(pid: int) -> list[_Victim]:
    import psutil

    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    found: list[_Victim] = []
    for child in children:
        with suppress(psutil.Error):
            found.append(_Victim(child.pid))
    return found


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


async def run_process(
    argv: Sequence[str],
    children: Children,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    written: Callable[[bytes], None] = lambda _: None,
) -> Exited:
    """To its end, output kept from the end backwards and told to `written` as it comes. Cancelled:
    the whole tree is killed. Raises OSError when it cannot be started."""
    mark = children.mark()
    try:
        return await _run_marked(argv, {**os.environ, **(env or {}), MARK: mark}, cwd, written)
    finally:
        children.unmark(mark)


async def _run_marked(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    written: Callable[[bytes], None],
) -> Exited:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=env,
        cwd=cwd,
        start_new_session=True,
    )
    tail = Tail()
    reading = asyncio.create_task(_drain(process, tail, written))
    try:
        code = await _ended(process)
        # What the child left running may hold the pipe open for ever; it ends with its job.
        _signal_group(process.pid, signal.SIGKILL)
        await asyncio.wait([reading], timeout=TERM_GRACE_S)
        return Exited(code, tail.text())
    finally:
        if process.returncode is None:
            await to_the_end(kill_tree(process))
        reading.cancel()
        await asyncio.wait([reading])
        _let_go(process)


async def _ended(process: asyncio.subprocess.Process) -> int:
    """`wait` of some Python versions also waits for whoever else holds the pipe."""
    waiting = asyncio.create_task(process.wait())
    try:
        while process.returncode is None:
            await asyncio.wait([waiting], timeout=GLANCE_S)
    finally:
        waiting.cancel()
    return process.returncode


def _let_go(process: asyncio.subprocess.Process) -> None:
    """Close our ends of its pipes now; asyncio would leave that to the garbage collector."""
    process._transport.close()  # type: ignore[attr-defined]


async def _drain(
    process: asyncio.subprocess.Process, tail: Tail, written: Callable[[bytes], None]
) -> None:
    assert process.stdout is not None
    while data := await process.stdout.read(_READ_BYTES):
        tail.add(data)
        written(data)
