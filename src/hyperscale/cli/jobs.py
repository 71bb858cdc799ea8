"""The jobs of a cluster: listed, looked at, steered, ended."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperscale.cli import cluster, streams
from hyperscale.cli.cluster import connection
from hyperscale.cli.shared_options import options_of
from hyperscale.cli.tables import age, table
from hyperscale.errors import BadInput, ExitCode, RunFailed
from hyperscale.ui.text import harmless_json, one_line, short_duration

if TYPE_CHECKING:
    from hyperscale.cluster.jobs.records import Action
    from hyperscale.nodes.client.cluster import Cluster
    from hyperscale.nodes.protocol.jobs import (
        DatacenterView,
        JobView,
        JobViews,
        SteerAck,
        WorkflowView,
    )
    from hyperscale.ui.output import Paint

JOB_HEAD = ("JOB", "STATUS", "AGE", "REQUESTS", "FAILED", "NAME", "BY")
WORKFLOW_HEAD = ("WORKFLOW", "STATE", "CORES", "TIME", "REQUESTS", "FAILED", "TRIES", "WORKERS")
RIGHT = {"AGE", "REQUESTS", "FAILED", "CORES", "TIME", "TRIES"}
_SCALE = re.compile(r"[+-]?[0-9]{1,7}")
_RATE = re.compile(r"[+-]?[0-9]{1,5}%")
_DONE: dict[str, str] = {
    "pause": "paused",
    "resume": "resumed",
    "scale": "scaled",
    "rate": "scaled",
}


@options_of(connection)
def jobs(json: cluster.Json = False, **where: Any) -> int:
    """List the jobs a cluster knows."""
    answer = cluster.ask(where, lambda asked: asked.jobs())
    streams.say(as_json(answer) if json else "\n".join(job_lines(answer, painter())))
    return int(ExitCode.PASSED)


@options_of(connection)
def status(
    job: cluster.MaybeJob = "",
    key: Annotated[
        str, typer.Option("--key", metavar="KEY", help="the job of this idempotency key")
    ] = "",
    json: cluster.Json = False,
    **where: Any,
) -> int:
    """Show how a job is, and its workflows."""
    if bool(job) == bool(key):
        raise BadInput("say which job: either its id or --key", "hyperscale jobs lists them")
    view = cluster.ask(where, lambda asked: asked.job(job, key))
    streams.say(as_json(view) if json else "\n".join(status_lines(view, painter())))
    return int(ExitCode.PASSED)


@options_of(connection)
def logs(job: cluster.Job, json: cluster.Json = False, **where: Any) -> int:
    """Show what happened to each workflow of a job, and when."""
    view = cluster.ask(where, lambda asked: asked.job(job))
    if json:
        streams.say(as_json({one.name: one.history for one in view.workflows}))
    else:
        streams.say("\n".join(log_lines(view, painter())))
    return int(ExitCode.PASSED)


@options_of(connection)
def cancel(job: cluster.Job, json: cluster.Json = False, **where: Any) -> int:
    """End all load of a job now, and wait until it has stopped."""
    view = cluster.ask(where, lambda asked: _cancelled(asked, job))
    because = f": {view.reason}" if view.reason else ""
    streams.say(as_json(view) if json else f"job {job} ended as {view.status}{because}")
    return int(ExitCode.PASSED)


@options_of(connection)
def pause(job: cluster.Job, json: cluster.Json = False, **where: Any) -> int:
    """Hold a job's load; its time stands still."""
    return _steer(where, job, "pause", _all_as_they_are, json)


@options_of(connection)
def resume(job: cluster.Job, json: cluster.Json = False, **where: Any) -> int:
    """Let a paused job go on."""
    return _steer(where, job, "resume", _all_as_they_are, json)


@options_of(connection)
def scale(
    job: cluster.Job,
    vus: Annotated[
        str,
        typer.Option("--vus", metavar="N", help="virtual users each; +N, -N: more, fewer"),
    ] = "",
    rate: Annotated[
        str,
        typer.Option("--rate", metavar="P%", help="of the planned rate; +P%, -P%: more, less"),
    ] = "",
    workflow: Annotated[
        str, typer.Option("--workflow", metavar="NAME", help="only this one (all under way)")
    ] = "",
    json: cluster.Json = False,
    **where: Any,
) -> int:
    """Give a running job more virtual users or a higher rate, or less of them."""
    if bool(vus) == bool(rate):
        raise BadInput("say either --vus or --rate", "for example --vus +10, or --rate 120%")
    if rate:
        return _change_rate(where, job, rate, workflow, json)
    if not _SCALE.fullmatch(vus) or not int(vus):
        raise BadInput(
            f"--vus takes a number of virtual users, not {vus!r}",
            "50 is the new number, +10 is ten more, -10 ten fewer",
        )

    async def totals(asked: Cluster) -> dict[str, int]:
        from hyperscale.nodes.client.scaling import look_at, new_totals

        if vus[0] not in "+-":
            return {workflow: int(vus)}
        picture = await look_at(asked, job)
        return new_totals(picture.results(0.0), int(vus), workflow)

    return _steer(where, job, "scale", totals, json)


def _change_rate(where: dict[str, Any], job: str, rate: str, workflow: str, json: bool) -> int:
    if not _RATE.fullmatch(rate) or not (percent := int(rate.rstrip("%"))) or percent <= -100:
        raise BadInput(
            f"--rate takes a share of the planned rate, not {rate!r}",
            "120% is the new rate, +10% is a tenth more than now, -10% a tenth less",
        )

    async def rates(asked: Cluster) -> dict[str, int]:
        from hyperscale.nodes.client.scaling import look_at, new_rates

        picture = await look_at(asked, job)
        if rate[0] in "+-":
            return new_rates(picture, 1 + percent / 100, workflow)
        return dict.fromkeys(new_rates(picture, 1.0, workflow), percent)

    return _steer(where, job, "rate", rates, json)


# -- asking --------------------------------------------------------------------------------------


async def _all_as_they_are(_asked: Cluster) -> dict[str, int]:
    return {"": 0}


def _steer(
    where: dict[str, Any],
    job: str,
    action: Action,
    amounts: Callable[[Cluster], Awaitable[dict[str, int]]],
    json: bool,
) -> int:
    """`amounts` says what each workflow shall have; "" is every one under way."""
    from hyperscale.nodes.client.client import requester

    async def steered(asked: Cluster) -> list[tuple[str, int, SteerAck]]:
        return [
            (name, amount, await asked.steer(job, action, amount, requester(), workflow=name))
            for name, amount in (await amounts(asked)).items()
        ]

    for name, amount, ack in cluster.ask(where, steered):
        if not ack.accepted:
            raise RunFailed(f"job {job} cannot be {_DONE[action]}: {ack.error}")
        to = {"scale": f" to {amount} virtual users", "rate": f" to {amount} % of its planned rate"}
        which = f": {name}" if name else _how_many(ack.workflows)
        sentence = f"job {job} {_DONE[action]}{to.get(action, '')}{which}"
        streams.say(as_json(ack) if json else sentence)
    return int(ExitCode.PASSED)


async def _cancelled(asked: Cluster, job: str) -> JobView:
    from hyperscale.nodes.client.client import requester

    ack = await asked.steer(job, "cancel", 0, requester())
    if not ack.accepted:
        raise RunFailed(f"job {job} cannot be cancelled: {ack.error}")
    view = None
    async for update in asked.follow(job, live=False):
        view = update.view or view
    return view or await asked.job(job)


# -- showing -------------------------------------------------------------------------------------


def job_lines(answer: JobViews, paint: Paint) -> list[str]:
    if not answer.jobs:
        return ["no jobs"]
    rows = [
        (
            view.job_id,
            _status(view),
            age(view.age_s),
            f"{sum(one.requests for one in view.datacenters or view.workflows):,}",
            f"{sum(one.failed for one in view.datacenters or view.workflows):,}",
            view.name,
            _asked_by(view),
        )
        for view in answer.jobs
    ]
    head, *lines = table(JOB_HEAD, rows, RIGHT)
    shown = zip(lines, answer.jobs, strict=True)
    return [paint.strong(head), *(coloured(line, view.status, paint) for line, view in shown)]


def _asked_by(view: JobView) -> str:
    """The name in the certificate, then what the client says of itself."""
    if not view.owner:
        return view.requested_by
    return f"{view.owner} ({view.requested_by})" if view.requested_by else view.owner


def status_lines(view: JobView, paint: Paint) -> list[str]:
    who = _asked_by(view)
    by = f", submitted by {one_line(who)}" if who else ""
    because = f": {one_line(view.reason)}" if view.reason else ""
    first = f"job {view.job_id}  {one_line(view.name)}  {_status(view)}{because}"
    key = f", key {one_line(view.idempotency_key)}" if view.idempotency_key else ""
    lines = [paint.strong(first), f"{age(view.age_s)} old{by}{key}"]
    if view.coverage < 1.0:
        lines.append(paint.warn(f"{view.coverage:.1%} of planned load"))
    lines += [paint.warn(sentence) for sentence in view.lost]
    lines += [
        coloured(_in_datacenter(one), one.status, paint)
        for one in (*view.datacenters, *([view.together] if view.together else ()))
    ]
    rows = [_workflow_cells(one) for one in view.workflows]
    head, *body = table(WORKFLOW_HEAD, rows, RIGHT)
    lines += ["", paint.strong(head)]
    for line, one in zip(body, view.workflows, strict=True):
        lines.append(coloured(line, one.state, paint))
        if one.error:
            lines.append(paint.bad(f"  {one.error}"))
    return lines


def _in_datacenter(one: DatacenterView) -> str:
    share = f"={one.share}" if one.share else ""
    status = f"{one.status}, " if one.status else ""
    slow = f", p99 {short_duration(one.p99_ms)}" if one.p99_ms else ""
    return f"{one.name}{share}: {status}{one.requests:,} requests{slow}"


def log_lines(view: JobView, paint: Paint) -> list[str]:
    lines = [f"job {view.job_id}  {_status(view)}"]
    for one in view.workflows:
        lines += ["", paint.strong(one.name)]
        lines += [f"  {event}" for event in one.history] or ["  nothing yet"]
    return lines


def _workflow_cells(one: WorkflowView) -> tuple[str, ...]:
    planned = f" of {one.planned_s:g}s" if one.planned_s else ""
    return (
        one.name,
        one.state,
        str(one.cores) if one.cores else "-",
        f"{one.elapsed_s:.0f}s{planned}",
        f"{one.requests:,}",
        f"{one.failed:,}",
        str(one.attempts),
        " ".join(one.workers) or "-",
    )


def _status(view: JobView) -> str:
    if view.paused and view.status == "running":
        return "paused"
    return f"{view.status} ({view.position})" if view.position else view.status


def coloured(text: str, state: str, paint: Paint) -> str:
    if state in ("failed", "timeout", "suspect", "dead", "cut off"):
        return paint.bad(text)
    if state in ("partial", "cancelled", "cancelling", "degraded", "draining"):
        return paint.warn(text)
    return paint.faint(text) if state == "completed" else text


def _how_many(workflows: int) -> str:
    return f" ({workflows} workflow{'' if workflows == 1 else 's'})" if workflows else ""


def as_json(answer: object) -> str:
    """With every field, also those that go without saying: scripts should not have to know."""
    import msgspec

    return harmless_json(msgspec.json.encode(_plain(answer)).decode())


def _plain(value: object) -> object:
    fields = getattr(value, "__struct_fields__", None)
    if fields is not None:
        return {name: _plain(getattr(value, name)) for name in fields}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value


def painter() -> Paint:
    from hyperscale.ui.output import Output

    return Output(sys.stdout).paint()
