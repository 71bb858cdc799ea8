"""A node as a process of its own: signals, and an end without anything left."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from hyperscale.errors import RunFailed
from hyperscale.ledger.wal import LogFailed
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.runtime.host import Host
from hyperscale.runtime.open_files import is_out_of_files, raise_open_files
from hyperscale.runtime.real import RealHost
from hyperscale.runtime.tasks import ended


class Served(Protocol):
    """A node of any role."""

    over: asyncio.Event
    """Set when it cannot go on by itself; `failure` then says why."""

    @property
    def failure(self) -> Exception | None: ...

    async def start(self) -> None: ...

    def reload(self) -> None: ...

    async def stop(self) -> None: ...


S = TypeVar("S", bound=Served)


async def serve(settings: NodeSettings, on_ready: Callable[[Node], None] | None = None) -> None:
    await serve_as(settings, lambda host: Node(host, settings), on_ready)


async def serve_as(
    settings: NodeSettings, make: Callable[[Host], S], on_ready: Callable[[S], None] | None = None
) -> None:
    """Run until SIGTERM or SIGINT, then leave in good order; a second signal leaves at once. SIGHUP
    reads certificates again."""
    raise_open_files()  # every other node, client and log segment is one
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    async with RealHost(settings.id, settings.data) as host:
        node = make(host)
        loop.add_signal_handler(signal.SIGHUP, node.reload)
        try:
            await node.start()
        except OSError as error:
            raise RunFailed(
                f"{settings.id} cannot start: {error.strerror or error}",
                "another process may hold the port, or the data directory cannot be written",
            ) from error
        if on_ready is not None:
            on_ready(node)
        await first_of(told.wait(), node.over.wait())
        told.clear()
        try:
            await first_of(told.wait(), node.stop())
        except Exception as error:
            raise stopped(settings.id, node.failure or error) from error
        if node.failure is not None:
            raise stopped(settings.id, node.failure)


async def first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Until one of them is done; the others have ended too. Raises what it died of."""
    tasks = [asyncio.get_running_loop().create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await ended(tasks)
    for task in done:
        task.result()


def stopped(node_id: str, failure: Exception) -> RunFailed:
    """In words for whoever finds that a node has ended by itself."""
    cause = failure.cause if isinstance(failure, LogFailed) else failure
    if isinstance(cause, OSError) and is_out_of_files(cause):
        return RunFailed(
            f"{node_id} stopped, because it could open no more files: {failure}",
            "raise the limit (LimitNOFILE=, ulimit -n), then start it again",
        )
    if isinstance(failure, OSError | LogFailed):
        return RunFailed(
            f"{node_id} stopped, because its disk failed: {failure}",
            "what it promised must outlive it; replace the disk, then start it again",
        )
    return RunFailed(
        f"{node_id} stopped, because of an error in its own code: {failure!r}",
        "its log shows where; it can be started again",
    )
