"""`hyperscale manager`: a manager of a cluster, until it is told to leave."""

from __future__ import annotations

from typing import Any

import typer

from hyperscale.cli.borrow import borrowing
from hyperscale.cli.node import node


@borrowing(node, without=("role",))
def manager(ctx: typer.Context, **given: Any) -> int:
    """Hold jobs and lead workers, together with the other managers."""
    from hyperscale.cli.serving import keep_serving, node_settings
    from hyperscale.nodes.manager.process import serve
    from hyperscale.nodes.manager.settings import ManagerSettings

    settings = node_settings(ctx.params, "manager")
    return keep_serving(settings, serve(ManagerSettings(node=settings)))
