"""A scheduler with its API as one process, from the first connection to a signal.

Order matters at both ends: the port is taken before the store is opened, and the API stops before
the worker finishes what it runs, so that no client is told of a scheduler that is leaving. Signals
are heard before the store is opened: who is told to stop while it starts ends that first, because
half a start would leave a worker in the store, and an election, that nobody gives up.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from hyperscale.runtime.logs import correlated
from hyperscale.scheduler.http.access import Access
from hyperscale.scheduler.http.app import create_app
from hyperscale.scheduler.http.serving import address_of, bind, serving
from hyperscale.scheduler.http.settings import PORT_DEFAULT, ProcessSettings
from hyperscale.scheduler.http.worker_app import create_worker_app
from hyperscale.scheduler.service import Scheduler, limits_of, open_worker
from hyperscale.scheduler.settings import SchedulerSettings
from hyperscale.scheduler.store.opening import open_store
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.telemetry.recording import Recording, recording
from hyperscale.scheduler.worker.service import WorkerService
from hyperscale.scheduler.worker.settings import new_worker_id

COLLECT_AFTER: Final = 50_000
"""Net new objects before the collector looks for cycles. A job's tasks and futures are gone when it
is answered, and no cycles; with the usual 700 a submission spent a fifth of its time there."""


def tune_collector() -> None:
    """What is there by now stays: it need not be looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


async def serve(
    settings: SchedulerSettings,
    process: ProcessSettings,
    admin_token: str,
    ready: Callable[[str, Access], None],
) -> None:
    """Until SIGTERM or SIGINT; a second signal leaves at once."""
    told = _signals()
    access, tls = process.access(admin_token), process.tls()
    with bind(process.host, PORT_DEFAULT if process.port is None else process.port) as listener:
        url = address_of(listener, tls)
        node = settings.node or new_worker_id()
        settings = replace(settings, address=settings.address or url)
        with correlated(node_id=node):
            async with (
                _recorded(settings, process, node) as (store, telemetry),
                Scheduler(settings, store=store, node=node, telemetry=telemetry) as scheduler,
                serving(create_app(scheduler, access, telemetry.metrics), listener, tls),
            ):
                tune_collector()
                ready(url, access)
                await told.wait()
                if scheduler.worker is not None:
                    scheduler.worker.drain()


async def work(
    settings: SchedulerSettings,
    process: ProcessSettings,
    admin_token: str,
    ready: Callable[[str, str], None],
) -> None:
    """A worker alone, until a signal, or until somebody drained it and its last job is over. With a
    port it has a page."""
    told = _signals()
    if process.port is None:
        async with _working(settings, process) as (worker, _, _):
            tune_collector()
            ready(worker.id, "")
            await _working_until(told, worker)
        return
    access, tls = process.access(admin_token), process.tls()
    with bind(process.host, process.port) as listener:
        url = address_of(listener, tls)
        settings = replace(settings, address=settings.address or url)
        async with _working(settings, process) as (worker, store, telemetry):
            app = create_worker_app(worker, settings.slots, store, access, telemetry.metrics)
            async with serving(app, listener, tls):
                tune_collector()
                ready(worker.id, url)
                await _working_until(told, worker)


@asynccontextmanager
async def _working(
    settings: SchedulerSettings, process: ProcessSettings
) -> AsyncIterator[tuple[WorkerService, Store, Recording]]:
    name = new_worker_id(settings.node)
    with correlated(node_id=name):
        async with (
            _recorded(settings, process, name) as (store, telemetry),
            open_worker(settings, store=store, worker_id=name, telemetry=telemetry) as worker,
        ):
            yield worker, store, telemetry


@asynccontextmanager
async def _recorded(
    settings: SchedulerSettings, process: ProcessSettings, node: str
) -> AsyncIterator[tuple[Store, Recording]]:
    """The store the settings name, measured and traced, and who does it."""
    async with recording(process.otlp, process.trace_share, node) as telemetry:
        store = await open_store(settings.store, limits_of(settings), telemetry)
        try:
            yield store, telemetry
        finally:
            await store.close()


def _signals() -> asyncio.Event:
    """Set by the first; the second is not caught."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()

    def tell() -> None:
        told.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, tell)
    return told


async def _working_until(told: asyncio.Event, worker: WorkerService) -> None:
    if not told.is_set():  # else it would claim before it drains
        await _first(told.wait(), worker.wait(), worker.drained())
    worker.drain()


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    tasks = [asyncio.create_task(one) for one in waits]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for task in done:
        task.result()
