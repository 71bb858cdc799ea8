"""A manager as a process of its own, with its numbers on its node's page."""

from __future__ import annotations

import gc
from collections.abc import Callable

from hyperscale.nodes.manager import gauges
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.member.metrics_page import NodePages
from hyperscale.nodes.member.process import serve_as

# Net new objects before the collector looks for cycles. Messages of a manager are gone before the
# next ones come, and none of them is a cycle; with the usual 700 a tenth of its time went there.
COLLECT_AFTER = 50_000


async def serve(
    settings: ManagerSettings, on_ready: Callable[[Manager], None] | None = None
) -> None:
    def ready(manager: Manager) -> None:
        calm_collector()
        if on_ready is not None:
            on_ready(manager)

    await serve_as(settings.node, lambda host: measured(Manager(host, settings)), ready)


def calm_collector() -> None:
    """What is there by now stays: it need not be looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


def measured(manager: Manager) -> Manager:
    """To be said before it starts."""
    manager.node.pages = NodePages(
        metrics=lambda: gauges.metrics(manager),
        ready=lambda: gauges.readiness(manager),
        pages=gauges.pages(manager),
    )
    return manager
