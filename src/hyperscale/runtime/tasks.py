"""Background work with a name, a list of it, and an end.

Every task of a host is started here, so `stop` can promise that nothing is left. An exception
that nobody awaits is reported the moment the task ends, not when the garbage collector finds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any

Report = Callable[[str, BaseException | None], None]
"""Takes the name of a task and what it died of; None: it refuses to end."""

# A task that swallows a cancellation is cancelled again after this long, and named in the log.
STUBBORN_AFTER_S = 1.0


def log_failure(name: str, error: BaseException | None) -> None:
    import structlog

    log = structlog.get_logger("hyperscale.runtime")
    if error is None:
        log.warning("task does not end", task=name)
    else:
        log.error("task failed", task=name, error=repr(error), exc_info=error)


async def ended(
    tasks: Iterable[asyncio.Task[Any]],
    patience_s: float = STUBBORN_AFTER_S,
    report: Report = log_failure,
) -> None:
    """Cancels them, again and again, until all have ended. Once is not enough: `asyncio.wait_for`
    of Python 3.11 forgets a cancellation that comes together with the result, and libraries use it.
    `patience_s` leaves a task the time it needs to clean up."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=patience_s)
        for task in left:
            report(task.get_name(), None)


class RealTask:
    """A running piece of work. Awaiting it gives its result or its exception."""

    __slots__ = ("_inner", "observed")

    def __init__(self, inner: asyncio.Task[Any]) -> None:
        self._inner = inner
        self.observed = False

    @property
    def name(self) -> str:
        return self._inner.get_name()

    def cancel(self) -> None:
        self._inner.cancel()

    def done(self) -> bool:
        return self._inner.done()

    @property
    def asyncio_task(self) -> asyncio.Task[Any]:
        self.observed = True
        return self._inner

    def __await__(self) -> Generator[Any, None, Any]:
        self.observed = True
        return self._inner.__await__()


class RealTasks:
    def __init__(self, report: Report = log_failure) -> None:
        self._report = report
        self._running: dict[asyncio.Task[Any], RealTask] = {}
        self._stopped = False

    def spawn(self, name: str, work: Coroutine[Any, Any, Any]) -> RealTask:
        if self._stopped:
            work.close()
            raise RuntimeError(f"this host has stopped: {name!r} cannot be started")
        inner = asyncio.get_running_loop().create_task(work, name=name)
        task = self._running[inner] = RealTask(inner)
        inner.add_done_callback(self._ended)
        return task

    def names(self) -> list[str]:
        return sorted(task.name for task in self._running.values())

    async def stop(self) -> None:
        self._stopped = True
        caller = asyncio.current_task()
        while left := [inner for inner in self._running if inner is not caller]:
            await ended(left, STUBBORN_AFTER_S, self._report)

    def _ended(self, inner: asyncio.Task[Any]) -> None:
        task = self._running.pop(inner)
        error = None if inner.cancelled() else inner.exception()
        if error is not None and not task.observed:
            self._report(task.name, error)
