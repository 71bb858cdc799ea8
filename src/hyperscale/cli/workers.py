"""The workers of a cluster: listed, and taken out of service and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperscale.cli import cluster, streams
from hyperscale.cli.cluster import connection
from hyperscale.cli.jobs import as_json, coloured, painter
from hyperscale.cli.shared_options import options_of
from hyperscale.cli.tables import age, table
from hyperscale.errors import ExitCode, RunFailed

if TYPE_CHECKING:
    from hyperscale.nodes.protocol.jobs import DrainAck, WorkerView, WorkerViews
    from hyperscale.ui.output import Paint

HEAD = ("WORKER", "STATE", "HEARD", "CORES", "FREE", "CPU", "MEM", "REQ/S", "REQUESTS", "ADDRESS")
RIGHT = {"HEARD", "CORES", "FREE", "CPU", "MEM", "REQ/S", "REQUESTS"}
# Whoever works tells of it many times in this long.
MOMENT_S = 2.0


@options_of(connection)
def workers(
    job: Annotated[
        str, typer.Option("--job", metavar="JOB", help="only those that work for it")
    ] = "",
    json: cluster.Json = False,
    **where: Any,
) -> int:
    """List the workers of a cluster, and how busy they are."""
    answer = cluster.ask(where, lambda asked: asked.workers(job))
    streams.say(as_json(answer) if json else "\n".join(worker_lines(answer, painter())))
    return int(ExitCode.PASSED)


@options_of(connection)
def drain(
    worker: Annotated[str, typer.Argument(metavar="WORKER", help="its name in hyperscale workers")],
    undo: Annotated[bool, typer.Option("--undo", help="it takes new parts again")] = False,
    json: cluster.Json = False,
    **where: Any,
) -> int:
    """Give a worker nothing new: what runs there ends as planned."""
    from hyperscale.nodes.client.client import requester

    ack = cluster.ask(where, lambda asked: asked.drain(worker, requester(), undo))
    if not ack.accepted:
        raise RunFailed(
            f"{worker} cannot be {'taken back' if undo else 'drained'}: {ack.error}",
            "hyperscale workers lists those there are",
        )
    streams.say(as_json(ack) if json else _drained(ack, undo))
    return int(ExitCode.PASSED)


def _drained(ack: DrainAck, undo: bool) -> str:
    if undo:
        return f"{ack.worker} takes new parts again"
    parts = f"{ack.parts} part{'' if ack.parts == 1 else 's'} there"
    left = f"; {parts} {'runs' if ack.parts == 1 else 'run'} to the end" if ack.parts else ""
    return (
        f"{ack.worker} takes no new parts{left}; hyperscale drain {ack.worker} --undo takes it back"
    )


def worker_lines(answer: WorkerViews, paint: Paint) -> list[str]:
    leader = f"leader {answer.leader}" if answer.leader else "no leader"
    cores = f"{answer.free_cores} of {answer.total_cores} cores free"
    count = len(answer.workers)
    lines = [f"{count} worker{'' if count == 1 else 's'}, {cores}, {leader}"]
    if not answer.workers:
        return lines
    head, *body = table(HEAD, [_cells(one) for one in answer.workers], RIGHT)
    lines += ["", paint.strong(head)]
    for line, one in zip(body, answer.workers, strict=True):
        lines.append(coloured(line, one.state, paint))
        lines += [f"  warning: {warning}" for warning in one.warnings]
        lines += [paint.faint(f"  {part}") for part in one.parts]
    return lines


def _cells(one: WorkerView) -> tuple[str, ...]:
    return (
        one.worker,
        one.state,
        "now" if one.heard_s < MOMENT_S else f"{age(one.heard_s)} ago",
        str(one.total_cores),
        str(one.free_cores),
        f"{one.cpu_percent:.0f}%",
        f"{one.memory_percent:.0f}%",
        f"{one.rate:,.0f}" if one.parts else "-",
        f"{one.requests:,}" if one.parts else "-",
        one.address,
    )
