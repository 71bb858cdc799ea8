"""A gate as a process of its own, with its numbers on its node's page."""

from __future__ import annotations

from collections.abc import Callable

from hyperscale.nodes.gate import gauges
from hyperscale.nodes.gate.gate import Gate
from hyperscale.nodes.gate.settings import GateSettings
from hyperscale.nodes.member.process import serve_as


async def serve(settings: GateSettings, on_ready: Callable[[Gate], None] | None = None) -> None:
    await serve_as(settings.node, lambda host: gauges.measured(Gate(host, settings)), on_ready)
