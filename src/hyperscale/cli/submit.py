"""`hyperscale submit`: a test file on a cluster, with the options of `run`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hyperscale.cli import cluster as where
from hyperscale.cli.run import launch, run
from hyperscale.cli.shared_options import options_of

LOCAL = ("workers", "once", "http_debug")


@options_of(run, without=LOCAL)
def submit(
    ctx: typer.Context,
    cluster: where.Manager = None,
    certs: where.Certs = "",
    name: where.Name = "",
    cluster_id: where.ClusterId = "",
    environment: where.Environment = "",
    idempotency_key: Annotated[
        str,
        typer.Option(
            "--idempotency-key",
            metavar="KEY",
            help="the same key again is the same job",
            rich_help_panel=where.WHERE,
        ),
    ] = "",
    detach: where.Detach = False,
    lost_load: where.LostLoad = None,
    dc: where.Datacenter = None,
    dc_count: where.DatacenterCount = None,
    dc_policy: where.DatacenterPolicy = None,
    **given: Any,
) -> int:
    """Run a test file on a cluster: the same view, summary and exit code."""
    return launch(ctx.params, on_cluster=True, key=idempotency_key)
