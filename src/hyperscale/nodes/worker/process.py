"""A worker as a process of its own: signals, a drain, and an end without anything left."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from hyperscale.errors import RunFailed
from hyperscale.nodes.member.metrics_page import NodePages
from hyperscale.nodes.member.process import first_of, stopped
from hyperscale.nodes.protocol.sealing import Sealing
from hyperscale.nodes.worker import gauges
from hyperscale.nodes.worker.engine_runner import EngineRunner
from hyperscale.nodes.worker.sandbox import Sandbox
from hyperscale.nodes.worker.settings import WorkerSettings
from hyperscale.nodes.worker.worker import Worker
from hyperscale.runtime import logs
from hyperscale.runtime.real import RealHost


async def serve(settings: WorkerSettings, on_ready: Callable[[Worker], None] | None = None) -> None:
    """Run until SIGTERM or SIGINT, then drain and leave; a second signal leaves at once. SIGHUP
    reads certificates again. Raises RunFailed, with all load ended, when the worker could not go on
    by itself."""
    signals: asyncio.Queue[int] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.put_nowait, number)
    node = settings.node
    async with RealHost(node.id, node.data) as host:
        sealing = Sealing(node.secret, node.previous_secret)
        sandbox = Sandbox(settings)
        runner = EngineRunner(
            settings.cores,
            sandbox.start,
            settings.memory_mb,
            sealing,
            node.id,
            sandbox.has_changed,
        )
        worker = Worker(host, settings, runner)
        worker.node.pages = NodePages(
            metrics=lambda: gauges.metrics(worker, lambda: runner.pids),
            ready=lambda: gauges.readiness(worker),
            pages=gauges.pages(worker),
        )
        loop.add_signal_handler(signal.SIGHUP, worker.node.reload)
        try:
            try:
                await sandbox.open()
                _tell(sandbox, node.id)
                worker.session.warnings = tuple(sandbox.warnings())
                await worker.start()
            except OSError as error:
                raise RunFailed(
                    f"{node.id} cannot start: {error.strerror or error}",
                    "another process may hold the port, or the data directory cannot be written",
                ) from error
            if on_ready is not None:
                on_ready(worker)
            await first_of(signals.get(), worker.over.wait())
            try:
                if not worker.over.is_set():
                    await first_of(worker.drain(), signals.get(), worker.over.wait())
            finally:
                await worker.stop()
        finally:
            await runner.close()
            sandbox.close()
        if worker.failure is not None:
            raise stopped(node.id, worker.failure)


def _tell(sandbox: Sandbox, node_id: str) -> None:
    log = logs.logger("worker", node_id=node_id)
    if sandbox.is_on:
        log.info("sandbox is up", by=sandbox.means)
    for sentence in sandbox.warnings():
        log.warning("sandbox", told=sentence)
