"""A worker as a process of its own: signals, a drain, and an end without anything left."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from hyperscale.errors import RunFailed
from hyperscale.nodes.worker.engine_stage import EngineStage
from hyperscale.nodes.worker.settings import WorkerSettings
from hyperscale.nodes.worker.worker import Worker
from hyperscale.runtime.real import RealHost


async def serve(settings: WorkerSettings, on_ready: Callable[[Worker], None] | None = None) -> None:
    """Run until SIGTERM or SIGINT, then drain and leave; a second signal leaves at once."""
    signals: asyncio.Queue[int] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.put_nowait, number)
    node = settings.node
    async with RealHost(node.id, node.data) as host:
        stage = EngineStage(settings.cores, settings.memory_mb)
        worker = Worker(host, settings, stage)
        try:
            try:
                await worker.start()
            except OSError as error:
                raise RunFailed(
                    f"{node.id} cannot start: {error.strerror or error}",
                    "another process may hold the port, or the data directory cannot be written",
                ) from error
            if on_ready is not None:
                on_ready(worker)
            await signals.get()
            draining = asyncio.ensure_future(worker.drain())
            again = asyncio.ensure_future(signals.get())
            await asyncio.wait([draining, again], return_when=asyncio.FIRST_COMPLETED)
            for task in (draining, again):
                task.cancel()
            await worker.stop()
        finally:
            await stage.close()
