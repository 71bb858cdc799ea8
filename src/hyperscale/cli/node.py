"""`hyperscale node`: a member of a cluster, until it is told to leave.

It writes one JSON object per line about what it sees, to stderr or a file; `hyperscale members`
asks it.
"""

from __future__ import annotations

from typing import Annotated

import typer

from hyperscale.cli import flags
from hyperscale.errors import ExitCode


def node(
    ctx: typer.Context,
    id: Annotated[str, typer.Option("--id", metavar="NAME", help="its name, kept for life")] = "",
    bind: Annotated[
        str, typer.Option("--bind", metavar="HOST:PORT", help="TCP and UDP (127.0.0.1:7000)")
    ] = "",
    advertise: Annotated[
        str,
        typer.Option("--advertise", metavar="HOST[:PORT]", help="what others are told (as bound)"),
    ] = "",
    seed: Annotated[
        list[str] | None,
        typer.Option("--seed", metavar="HOST:PORT", help="a member to ask; repeatable"),
    ] = None,
    nameserver: Annotated[
        list[str] | None,
        typer.Option("--nameserver", metavar="HOST", help="who is asked for srv:NAME seeds"),
    ] = None,
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="ID", help="which it belongs to; required")
    ] = "",
    env: Annotated[str, typer.Option("--env", metavar="ID", help="environment; required")] = "",
    dc: Annotated[str, typer.Option("--dc", metavar="ID", help="datacenter (local)")] = "",
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="probe gate manager worker (probe)")
    ] = "",
    certs: Annotated[
        str, typer.Option("--certs", metavar="DIR", help="made by hyperscale certs")
    ] = "",
    refused: Annotated[
        str,
        typer.Option("--refused", metavar="FILE", help="withdrawn certificates; SIGHUP reads it"),
    ] = "",
    secret_file: Annotated[
        str, typer.Option("--secret-file", metavar="FILE", help="what seals datagrams")
    ] = "",
    previous_secret_file: Annotated[
        str, typer.Option("--previous-secret-file", metavar="FILE", help="understood as well")
    ] = "",
    manager_secret_file: Annotated[
        str,
        typer.Option("--manager-secret-file", metavar="FILE", help="what seals elections"),
    ] = "",
    previous_manager_secret_file: Annotated[
        str,
        typer.Option("--previous-manager-secret-file", metavar="FILE", help="understood as well"),
    ] = "",
    plaintext: Annotated[
        bool, typer.Option("--plaintext", help="neither TLS nor seal, on loopback only")
    ] = False,
    voters: Annotated[
        str, typer.Option("--voters", metavar="A,B,C", help="who elects the leader, this one too")
    ] = "",
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics", metavar="HOST:PORT", help="Prometheus, health; debug on loopback"
        ),
    ] = "",
    data: Annotated[
        str, typer.Option("--data", metavar="DIR", help="what it remembers (hyperscale-data/NAME)")
    ] = "",
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.NAME=N", help="a number that has no flag"),
    ] = None,
    show_settings: flags.ShowSettings = False,
    log: Annotated[
        str, typer.Option("--log", metavar="FILE", help="instead of stderr; turned over daily")
    ] = "",
    log_level: Annotated[
        str, typer.Option("--log-level", metavar="LEVEL", help="debug info warning error (info)")
    ] = "",
    config: flags.Config = None,
    debug: flags.Debug = False,
) -> int:
    """Join a cluster as a bare member, and stay."""
    from hyperscale.cli.serving import keep_serving, read_or_show
    from hyperscale.nodes.member.process import serve
    from hyperscale.nodes.member.settings import SECTIONS, node_settings

    settings = read_or_show(ctx.params, SECTIONS, node_settings)
    return int(ExitCode.PASSED) if settings is None else keep_serving(settings, serve(settings))
