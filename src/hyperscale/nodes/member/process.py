"""A node as a process of its own: signals, and an end without anything left."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Protocol, TypeVar

from hyperscale.errors import RunFailed
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.runtime.host import Host
from hyperscale.runtime.real import RealHost


class Served(Protocol):
    """A node of any role."""

    over: asyncio.Event
    """Set when it cannot go on by itself; `failure` then says why, if a disk was at fault."""

    @property
    def failure(self) -> Exception | None: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


S = TypeVar("S", bound=Served)


async def serve(settings: NodeSettings, on_ready: Callable[[Node], None] | None = None) -> None:
    await serve_as(settings, lambda host: Node(host, settings), on_ready)


async def serve_as(
    settings: NodeSettings, make: Callable[[Host], S], on_ready: Callable[[S], None] | None = None
) -> None:
    """Run until SIGTERM or SIGINT, then leave in good order; a second signal leaves at once."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    async with RealHost(settings.id, settings.data) as host:
        node = make(host)
        try:
            await node.start()
        except OSError as error:
            raise RunFailed(
                f"{settings.id} cannot start: {error.strerror or error}",
                "another process may hold the port, or the data directory cannot be written",
            ) from error
        if on_ready is not None:
            on_ready(node)
        waits = [asyncio.ensure_future(event.wait()) for event in (told, node.over)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        told.clear()
        again = asyncio.ensure_future(told.wait())
        stopping = asyncio.ensure_future(node.stop())
        await asyncio.wait([again, stopping], return_when=asyncio.FIRST_COMPLETED)
        for task in (again, stopping):
            task.cancel()
        if node.failure is not None:
            raise RunFailed(
                f"{settings.id} stopped, because its disk failed: {node.failure}",
                "what it promised must outlive it; replace the disk, then start it again",
            )
