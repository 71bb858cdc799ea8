"""`hyperscale attach` and `results`: a job of earlier, or of somebody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from hyperscale.cli import cluster as where
from hyperscale.cli.run import run
from hyperscale.cli.shared_options import options_of
from hyperscale.errors import RunFailed

if TYPE_CHECKING:
    from hyperscale.config.run import Settings
    from hyperscale.nodes.protocol.jobs import JobResults

WRITE = (
    "quiet",
    "no_color",
    "summary_trend_stats",
    "out",
    "html",
    "csv",
    "junit",
    "markdown",
    "reporter_required",
)
SHOW = ("ui", "web", "web_bind", "headless", *WRITE)


@options_of(where.connection)
@options_of(run, only=(*SHOW, "json"))
def attach(ctx: typer.Context, job: where.Job, **given: Any) -> int:
    """Watch a running job, with all that happened before; Ctrl-C leaves it alone."""
    from hyperscale.cli.local import Show, interrupt_on_sigterm
    from hyperscale.cli.remote import follow
    from hyperscale.nodes.client.cluster_run import ClusterRun

    show = Show.of(_settings(ctx.params))
    interrupt_on_sigterm()
    return follow(ClusterRun.attach(where.settings_of(ctx.params), job), show)


@options_of(where.connection)
@options_of(run, only=(*WRITE, "json"))
def results(ctx: typer.Context, job: where.Job, **given: Any) -> int:
    """Print the summary of a job that has ended, and write its files."""
    from hyperscale.cli.local import Show
    from hyperscale.metrics.results import decode
    from hyperscale.nodes.client.cluster_run import failure_of
    from hyperscale.nodes.client.errors import UnknownJob

    show = Show.of(_settings(ctx.params))
    answer: JobResults = where.ask(ctx.params, lambda asked: asked.results(job))
    if not answer.known:
        raise UnknownJob(f"no manager knows job {job}", "hyperscale jobs lists those there are")
    if not answer.results:
        raise RunFailed(
            f"job {job} has no results yet: it is {answer.status}",
            f"hyperscale attach {job} shows it as it runs",
        )
    ended = decode(answer.results)
    return show.conclude(ended, failure_of(ended))


def _settings(given: dict[str, Any]) -> Settings:
    """Only what is about showing and writing: the load of this job was decided long ago."""
    import os

    from hyperscale.config.run import NAMES, Settings, said_by

    said = said_by(given, os.environ)
    kept = {name: getattr(said, name) for name in NAMES if name in (*SHOW, "web_token", "json")}
    return Settings(**kept)
