"""A manager as a process of its own."""

from __future__ import annotations

from collections.abc import Callable

from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.member.process import serve_as


async def serve(
    settings: ManagerSettings, on_ready: Callable[[Manager], None] | None = None
) -> None:
    await serve_as(settings.node, lambda host: Manager(host, settings), on_ready)
