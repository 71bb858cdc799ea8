"""`hyperscale manager`: a manager of a cluster, until it is told to leave."""

from __future__ import annotations

from typing import Any

import typer

from hyperscale.cli.node import node
from hyperscale.cli.shared_options import options_of
from hyperscale.errors import ExitCode


@options_of(node, without=("role",))
def manager(ctx: typer.Context, **given: Any) -> int:
    """Hold jobs and lead workers, together with the other managers."""
    from hyperscale.cli.serving import keep_serving, read_or_show
    from hyperscale.nodes.manager.process import serve
    from hyperscale.nodes.manager.settings import SECTIONS, manager_settings

    settings = read_or_show(ctx.params, SECTIONS, manager_settings)
    if settings is None:
        return int(ExitCode.PASSED)
    return keep_serving(settings.node, serve(settings))
