"""A gate as a process of its own."""

from __future__ import annotations

from collections.abc import Callable

from hyperscale.nodes.gate import gauges
from hyperscale.nodes.gate.gate import Gate
from hyperscale.nodes.gate.settings import GateSettings
from hyperscale.nodes.member.metrics_page import NodePages
from hyperscale.nodes.member.process import serve_as


async def serve(settings: GateSettings, on_ready: Callable[[Gate], None] | None = None) -> None:
    await serve_as(settings.node, lambda host: measured(Gate(host, settings)), on_ready)


def measured(gate: Gate) -> Gate:
    """To be said before it starts."""
    gate.node.pages = NodePages(metrics=lambda: gauges.metrics(gate), pages=gauges.pages(gate))
    return gate
