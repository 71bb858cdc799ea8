"""What every command that talks to a cluster has in common: which cluster, and how it is asked."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from hyperscale.cli import flags, streams

if TYPE_CHECKING:
    from hyperscale.config.sections import Reading
    from hyperscale.nodes.client.cluster import Cluster
    from hyperscale.nodes.client.settings import ClusterSettings

T = TypeVar("T")

WHERE = "Which cluster"
MANAGER_HELP = "any manager; repeatable (the dev cluster)"


def _where(*names: str, metavar: str, help: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=WHERE)


Texts = list[str] | None

Manager = Annotated[Texts, _where("--manager", "--cluster", metavar="HOST", help=MANAGER_HELP)]
RunOn = Annotated[
    Texts,
    typer.Option(
        "--cluster",
        "--manager",
        metavar="HOST",
        help="run it there; see hyperscale submit --help",
        rich_help_panel=flags.HOW,
    ),
]
Certs = Annotated[str, _where("--certs", metavar="DIR", help="made by hyperscale certs")]
Name = Annotated[str, _where("--name", metavar="NAME", help="whose certificate (client)")]
ClusterId = Annotated[
    str, _where("--cluster-id", metavar="ID", help="without --certs: which (default)")
]
Environment = Annotated[
    str, _where("--environment", metavar="ID", help="without --certs: which (dev)")
]
Detach = Annotated[
    bool,
    typer.Option(
        "--detach", help="leave it to the cluster, print the job's id", rich_help_panel=WHERE
    ),
]
LostLoad = Annotated[
    str | None,
    _where(
        "--lost-load",
        metavar="HOW",
        help="when a worker dies and no core is free: squeeze (default), move, drop",
    ),
]
Datacenter = Annotated[
    Texts,
    _where("--dc", metavar="NAME[=SHARE]", help="through gates: run it there; repeatable"),
]
DatacenterCount = Annotated[
    int | None, _where("--dc-count", metavar="N", help="in so many; the gate chooses which")
]
DatacenterPolicy = Annotated[
    str | None,
    _where(
        "--dc-policy",
        metavar="HOW",
        help="only in those named: strict (default); others in their place: prefer; in any: any",
    ),
]
# `run` understands them, `submit` explains them.
SEE_SUBMIT = "with --cluster; see submit"
QuietCerts = Annotated[str, typer.Option("--certs", metavar="DIR", help=SEE_SUBMIT, hidden=True)]
QuietDetach = Annotated[bool, typer.Option("--detach", help=SEE_SUBMIT, hidden=True)]
QuietLostLoad = Annotated[
    str | None, typer.Option("--lost-load", metavar="HOW", help=SEE_SUBMIT, hidden=True)
]
QuietDatacenter = Annotated[
    Texts, typer.Option("--dc", metavar="NAME", help=SEE_SUBMIT, hidden=True)
]
QuietDatacenterCount = Annotated[
    int | None, typer.Option("--dc-count", metavar="N", help=SEE_SUBMIT, hidden=True)
]
QuietDatacenterPolicy = Annotated[
    str | None, typer.Option("--dc-policy", metavar="HOW", help=SEE_SUBMIT, hidden=True)
]
Json = Annotated[bool, typer.Option("--json", help="one JSON object, for scripts")]
Job = Annotated[str, typer.Argument(metavar="JOB", help="the id that its submission printed")]
MaybeJob = Annotated[
    str, typer.Argument(metavar="[JOB]", help="the id that its submission printed")
]


def connection(
    manager: Manager = None,
    certs: Certs = "",
    name: Name = "",
    cluster_id: ClusterId = "",
    environment: Environment = "",
    config: flags.Config = None,
    show_settings: flags.ShowSettings = False,
    debug: flags.Debug = False,
) -> None:
    """The options that say which cluster is meant, shared by commands (`shared_options`)."""


def settings_of(where: Mapping[str, Any]) -> ClusterSettings:
    """From the options of `connection`, the environment and `[cluster]` of the config file."""
    from hyperscale.nodes.client.settings import cluster_settings

    reading = reading_of(where)
    if where.get("show_settings"):
        from hyperscale.cli.tables import show_settings

        raise typer.Exit(show_settings(reading.rows()))
    return cluster_settings(reading, os.environ)


def reading_of(where: Mapping[str, Any]) -> Reading:
    from hyperscale.config.sections import Reading, sources_of
    from hyperscale.nodes.client.settings import SECTION

    given = {
        **where,
        "manager": where.get("manager") or where.get("cluster"),
        "id": where.get("cluster_id"),
    }
    return Reading(sources_of(given, os.environ), [SECTION])


def ask(where: Mapping[str, Any], question: Callable[[Cluster], Awaitable[T]]) -> T:
    """Connect, ask, leave."""
    from hyperscale.nodes.client.client import connect
    from hyperscale.runtime.real import RealHost, run

    settings = settings_of(where)

    async def asking() -> T:
        async with RealHost(settings.identity.node_id, os.devnull) as host:
            cluster = connect(host, settings)
            cluster.managers.on_waiting = streams.note
            try:
                return await question(cluster)
            finally:
                cluster.managers.close()

    return run(asking())
