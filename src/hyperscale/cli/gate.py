"""`hyperscale gate`: one door to many datacenters, until it is told to leave."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hyperscale.cli.node import node
from hyperscale.cli.shared_options import options_of
from hyperscale.errors import ExitCode


@options_of(node, without=("role", "voters", "manager_secret_file", "previous_manager_secret_file"))
def gate(
    ctx: typer.Context,
    gates: Annotated[
        str, typer.Option("--gates", metavar="A,B,C", help="every gate, this one too (itself)")
    ] = "",
    datacenter: Annotated[
        list[str] | None,
        typer.Option("--datacenter", metavar="NAME=HOST:PORT", help="a manager of it; repeatable"),
    ] = None,
    **given: Any,
) -> int:
    """Take jobs for many datacenters, together with the other gates."""
    from hyperscale.cli.serving import keep_serving, read_or_show
    from hyperscale.nodes.gate.process import serve
    from hyperscale.nodes.gate.settings import SECTIONS, gate_settings

    settings = read_or_show(ctx.params, SECTIONS, gate_settings)
    if settings is None:
        return int(ExitCode.PASSED)
    return keep_serving(settings.node, serve(settings))
