"""A scheduler with its API as one process, from the first connection to a signal.

Order matters at both ends: the port is taken before the store is opened, and the API stops before
the worker finishes what it runs, so that no client is told of a scheduler that is leaving.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from hyperscale.scheduler.api.access import Access
from hyperscale.scheduler.api.app import create_app
from hyperscale.scheduler.api.serving import serving
from hyperscale.scheduler.observability.measured import measured
from hyperscale.scheduler.observability.metrics import Metrics
from hyperscale.scheduler.service import Scheduler, open_worker
from hyperscale.scheduler.settings import SchedulerSettings
from hyperscale.scheduler.stores.opening import open_store


async def serve(
    settings: SchedulerSettings,
    listener: socket.socket,
    access: Access,
    ready: Callable[[str], None],
) -> None:
    """Until SIGTERM or SIGINT; a second signal leaves at once."""
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    settings = replace(settings, address=settings.address or url)
    metrics = Metrics()
    store = await open_store(settings.store)
    try:
        async with Scheduler(settings, store=measured(store, metrics)) as scheduler:
            app = create_app(scheduler, access, metrics)
            async with serving(app, listener):
                ready(url)
                await _signal()
    finally:
        await store.close()


async def work(settings: SchedulerSettings, ready: Callable[[str], None]) -> None:
    """A worker alone, until a signal or until somebody drained it."""
    async with open_worker(settings) as worker:
        ready(worker.id)
        await _first(_signal(), worker.wait())


async def _signal() -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()

    def tell() -> None:
        told.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, tell)
    await told.wait()


async def _first(*waits: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.create_task(one) for one in waits]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for task in done:
        task.result()
