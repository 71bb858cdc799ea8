"""From settings to a finished run on a cluster: the same steps as for one on this machine.

What differs is said here: the job has a name by which others find it, it outlives this program,
and what only makes sense beside the load is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hyperscale.cli import streams
from hyperscale.cli.cluster import settings_of
from hyperscale.cli.command import Stopped
from hyperscale.cli.empty_runs import require_measurement
from hyperscale.cli.execution import carry_out
from hyperscale.cli.local import Show, explain, interrupt_on_sigterm, names_of, run_options
from hyperscale.cli.overrides import overrides_of
from hyperscale.cli.variables import variables
from hyperscale.config.run import Settings
from hyperscale.config.sections import flag_name
from hyperscale.engine.source import ClassSource, FileSource
from hyperscale.errors import BadInput, ExitCode
from hyperscale.nodes.client.cluster_run import ClusterRun
from hyperscale.workload.datacenters import read_datacenters

if TYPE_CHECKING:
    from hyperscale.ui.live import View
    from hyperscale.ui.live.source import Source

_BESIDE_THE_LOAD = ("once", "http_debug", "workers")


def perform(
    source: FileSource | ClassSource,
    said: Settings,
    filled: Settings,
    command: str,
    connection: Mapping[str, Any],
    key: str = "",
) -> int:
    """Run a test there; `said` is stronger than what it says itself, `filled` weaker."""
    settings = said.over(filled)
    for name in _BESIDE_THE_LOAD:
        if getattr(said, name) is not None:
            raise BadInput(
                f"{flag_name(name)} is for a run on this machine",
                "leave it out, or leave out --cluster",
            )
    show = Show.of(settings)
    where = settings_of(connection)
    env = variables(said, filled)
    os.environ.update(env.values)
    interrupt_on_sigterm()
    options = run_options(settings, env, command, None)
    overrides = overrides_of(said, filled, source)
    run = ClusterRun.submit(
        where,
        source,
        overrides,
        options,
        key=key,
        datacenters=_datacenters(said.dc),
        datacenters_else=_datacenters(filled.dc),
        count=settings.dc_count or 0,
        policy=settings.dc_policy or "",
    )
    if not names_of(source):
        require_measurement(run.plan)
    show.report_also(run.plan.reporting)
    if show.reporting.trace_share:
        raise BadInput("traces= is for a run on this machine", "leave it out of the URL")
    if settings.verbose:
        explain(run.plan, show.files)
    run.on_waiting = streams.note
    if settings.detach:
        return _detach(run)
    run.on_trouble = show.note
    reported = show.reporting.beside(run, show.note)
    terminal, *pages = show.views()
    views = [Announced(run, terminal), *pages]
    results = carry_out(run, views, show.stop_notice, reported=reported)
    if run.left and run.undecided:
        streams.note(run.undecided)
    return show.conclude(results, run.failure, whole=not run.left)


def _datacenters(said: Sequence[str] | None) -> dict[str, int]:
    example = "--dc eu=60 --dc us=40 splits one load; --dc eu --dc us runs all of it in each"
    return read_datacenters(said, "--dc", example)


def follow(run: ClusterRun, show: Show) -> int:
    """Watch a job that is there already; Ctrl-C leaves it alone."""
    run.on_trouble = show.note
    reported = show.reporting.beside(run, show.note)
    results = carry_out(run, show.views(), lambda: None, run.leave, reported)
    if run.left:
        streams.note(f"left; the job goes on: hyperscale attach {run.job_id} comes back to it")
    return show.conclude(results, run.failure, whole=not run.left)


class Announced:
    """A view that begins once the job has a name, and says it."""

    def __init__(self, run: ClusterRun, view: View) -> None:
        self._run = run
        self._view = view

    async def run(self, source: Source) -> None:
        await self._run.accepted.wait()
        if source.results().state == "finished":
            return
        streams.note(_accepted(self._run))
        await self._view.run(source)

    def over(self) -> None:
        self._view.over()


def _detach(run: ClusterRun) -> int:
    import asyncio

    try:
        asyncio.run(run.detach())
    except KeyboardInterrupt as interrupt:
        if not run.undecided:
            raise
        raise Stopped(run.undecided) from interrupt
    streams.note(_accepted(run))
    streams.say(run.job_id)
    return int(ExitCode.PASSED)


def _accepted(run: ClusterRun) -> str:
    ack = run.ack
    assert ack is not None, "announced before it was accepted"
    if run.joined:
        return f"job {run.job_id} exists already under this key; it is not run twice"
    by = f" by {ack.leader}" if ack.leader else ""
    place = f", place {ack.position} in the queue" if ack.position else ""
    return f"job {run.job_id} accepted{by}{place}"
