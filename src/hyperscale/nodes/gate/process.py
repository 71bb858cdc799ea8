"""A gate as a process of its own, with its numbers on its node's page."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from hyperscale.nodes.gate import datacenter_gauges, gauges
from hyperscale.nodes.gate.gate import Gate
from hyperscale.nodes.gate.settings import GateSettings
from hyperscale.nodes.member.metrics_page import NodePages
from hyperscale.nodes.member.process import serve_as


async def serve(settings: GateSettings, on_ready: Callable[[Gate], None] | None = None) -> None:
    await serve_as(settings.node, lambda host: measured(Gate(host, settings)), on_ready)


def measured(gate: Gate) -> Gate:
    """To be said before it starts."""
    gate.node.pages = NodePages(
        metrics=lambda: chain(gauges.metrics(gate), datacenter_gauges.metrics(gate)),
        ready=lambda: datacenter_gauges.readiness(gate),
        pages={**gauges.pages(gate), **datacenter_gauges.pages(gate)},
    )
    return gate
