"""`hyperscale worker`: cores of this machine for a cluster, until it is told to leave."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hyperscale.cli.node import node
from hyperscale.cli.shared_options import options_of
from hyperscale.errors import ExitCode


@options_of(node, without=("role", "voters", "manager_secret_file", "previous_manager_secret_file"))
def worker(
    ctx: typer.Context,
    cores: Annotated[
        str, typer.Option("--cores", metavar="N", help="generator processes (all usable cores)")
    ] = "",
    memory_mb: Annotated[
        str, typer.Option("--memory-mb", metavar="N", help="limit of one process (none)")
    ] = "",
    sandbox: Annotated[
        str,
        typer.Option("--sandbox", metavar="MODE", help="around test code: required, auto, off"),
    ] = "",
    run_as: Annotated[
        str, typer.Option("--run-as", metavar="USER", help="test code runs as this user (root)")
    ] = "",
    **given: Any,
) -> int:
    """Generate load for a cluster on the cores of this machine."""
    from hyperscale.cli.serving import keep_serving, read_or_show
    from hyperscale.nodes.worker.process import serve
    from hyperscale.nodes.worker.settings import sections, worker_settings

    settings = read_or_show(ctx.params, sections(), worker_settings)
    if settings is None:
        return int(ExitCode.PASSED)
    return keep_serving(settings.node, serve(settings))
