"""The generator processes of one machine: started together or singly, never left behind.

Each is a fresh interpreter (not a fork) at the other end of a socket pair. Its reports go to those
who run workflows on it, each to the one it concerns; its death is a report to all of them. One
that waits for its first command has loaded everything but the test, so that a worker can keep some
in reserve.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence

from hyperscale.engine.messages import Close, Command, Line, Report
from hyperscale.engine.spawning import Child, EarlyChildren, Isolation

EXIT_GRACE_S = 2.0

OnReport = Callable[["GeneratorProcess", Report], None]
OnLost = Callable[["GeneratorProcess"], None]


class GeneratorProcess:
    """One generator process. `env` replaces the environment it would inherit; what it prints goes
    to the file descriptor `output`, stderr unless given. `child` was started before."""

    def __init__(
        self,
        number: int = 0,
        output: int | None = None,
        env: Mapping[str, str] | None = None,
        child: Child | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        self.number = number
        self._child = child or Child(env, isolation)
        self._child.take(output)
        self._line: Line | None = None
        self._reading: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._listeners: dict[int, tuple[OnReport, OnLost]] = {}  # by slice
        self._slices_taken = 0
        self.lost = False

    @property
    def pid(self) -> int:
        return self._child.process.pid

    async def open(self) -> None:
        """May be called by each who has a slice for it."""
        async with self._opening:
            if self._line is None:
                self._line = await Line.open(self._child.socket)
                self._reading = asyncio.create_task(self._read(self._line))

    def join(self, on_report: OnReport, on_lost: OnLost) -> int:
        """The number of a new slice on this process."""
        self._slices_taken += 1
        self._listeners[self._slices_taken] = (on_report, on_lost)
        return self._slices_taken

    def leave(self, number: int) -> None:
        """The slice is over; the process goes on."""
        if self._listeners.pop(number, None) is not None:
            self.send(number, Close())

    def serves_others(self, number: int | None) -> bool:
        """Besides that slice it has another one."""
        return bool(self._listeners.keys() - {number})

    def send(self, number: int, command: Command) -> None:
        if self._line is not None and not self.lost:
            self._line.send(number, command)

    async def _read(self, line: Line) -> None:
        try:
            while (told := await line.report()) is not None:
                number, report = told
                if number in self._listeners:
                    self._listeners[number][0](self, report)
        finally:  # one whose reports make no sense is as good as dead: nobody may wait for it
            self.lost = True
            for _, on_lost in list(self._listeners.values()):
                on_lost(self)

    async def exit_reason(self) -> str:
        """How it ended, in words."""
        code = await asyncio.to_thread(self._wait)
        if code is None:
            return "stopped answering"
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def _wait(self) -> int | None:
        try:
            return self._child.wait(EXIT_GRACE_S)
        except subprocess.TimeoutExpired:
            return None

    def hang_up(self) -> None:
        """Close our end: the process ends by itself."""
        self._listeners.clear()
        if self._line is not None:
            self._line.close()
        else:
            self._child.socket.close()

    def kill(self) -> None:
        self._child.process.kill()

    def kill_and_wait(self) -> None:
        self._child.process.kill()
        self._child.wait()

    async def close(self) -> None:
        """End the process, by force if need be."""
        self.hang_up()
        await self.ended()

    async def ended(self) -> None:
        if await asyncio.to_thread(self._wait) is None:
            self._child.process.kill()
            await asyncio.to_thread(self._child.wait)
        if self._reading is not None:
            self._reading.cancel()


class Generators:
    """Up to `size` processes, numbered from 0."""

    def __init__(
        self, size: int, output: int | None = None, early: EarlyChildren | None = None
    ) -> None:
        """All of them start now, unless some did before."""
        self.size = size
        self._output = output
        children = early.give(size) if early is not None else []
        self.processes = [
            GeneratorProcess(number, output, child=child) for number, child in enumerate(children)
        ]
        if not children:
            self.need(size)

    def need(self, count: int) -> None:
        """So many there are from now on."""
        self._end(self.processes[count:])
        del self.processes[count:]
        for number in range(len(self.processes), count):
            self.processes.append(GeneratorProcess(number, self._output))

    async def open(self) -> None:
        for process in self.processes:
            await process.open()

    async def close(self) -> None:
        await asyncio.gather(*(process.close() for process in self.processes))

    def abandon(self) -> None:
        """End all processes without an event loop: nothing was started on them."""
        self._end(self.processes)

    def _end(self, processes: Sequence[GeneratorProcess]) -> None:
        for process in processes:
            process.hang_up()
            process.kill()
        for process in processes:
            process.kill_and_wait()
