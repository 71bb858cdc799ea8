"""`hyperscale worker`: cores of this machine for a cluster, until it is told to leave."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from hyperscale.cli.borrow import borrowing
from hyperscale.cli.node import node


@borrowing(node, without=("role", "voters"))
def worker(
    ctx: typer.Context,
    cores: Annotated[
        str, typer.Option("--cores", metavar="N", help="generator processes (all usable cores)")
    ] = "",
    memory_mb: Annotated[
        str, typer.Option("--memory-mb", metavar="N", help="limit of one process (none)")
    ] = "",
    **given: Any,
) -> int:
    """Generate load for a cluster on the cores of this machine."""
    from hyperscale.cli.serving import keep_serving, node_settings, tables_of
    from hyperscale.nodes.worker.process import serve
    from hyperscale.nodes.worker.settings import TABLE, read_worker_settings

    settings = node_settings(ctx.params, "worker")
    table = tables_of(ctx.params, TABLE)
    own = {"cores": cores, "memory_mb": memory_mb}
    return keep_serving(settings, serve(read_worker_settings(settings, own, os.environ, table)))
