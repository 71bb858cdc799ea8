"""A manager as a process of its own, with its numbers on its node's page."""

from __future__ import annotations

from collections.abc import Callable

from hyperscale.nodes.manager import gauges
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.member.about import About
from hyperscale.nodes.member.process import serve_as


async def serve(
    settings: ManagerSettings, on_ready: Callable[[Manager], None] | None = None
) -> None:
    await serve_as(settings.node, lambda host: measured(Manager(host, settings)), on_ready)


def measured(manager: Manager) -> Manager:
    """To be said before it starts."""
    manager.node.about = About(
        metrics=lambda: gauges.metrics(manager),
        ready=lambda: gauges.readiness(manager),
        pages=gauges.pages(manager),
    )
    return manager
