"""The datacenters of a gate: listed, and how it would choose among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hyperscale.cli import cluster, streams
from hyperscale.cli.cluster import connection
from hyperscale.cli.jobs import as_json, painter
from hyperscale.cli.shared_options import options_of
from hyperscale.cli.tables import age, table
from hyperscale.errors import BadInput, ExitCode, RunFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from hyperscale.cluster.routing import Decision, Policy, Scored
    from hyperscale.nodes.client.cluster import Cluster
    from hyperscale.nodes.protocol.datacenters import (
        DatacenterState,
        DatacenterStates,
        RouteView,
    )
    from hyperscale.ui.output import Paint

    T = TypeVar("T")

HEAD = (
    *("DATACENTER", "STATE", "RTT", "MANAGERS", "LEADER", "WORKERS", "CORES", "FREE"),
    *("RUNS", "QUEUE", "HEARD", "WHY"),
)
ROUTE_HEAD = (
    *("", "DATACENTER", "STATE", "SCORE", "RTT AT MOST", "LOAD", "QUALITY", "FAILED LATELY"),
    "WHY",
)
RIGHT = {"RTT", "CORES", "FREE", "RUNS", "QUEUE", "HEARD"}
ROUTE_RIGHT = {"SCORE", "RTT AT MOST", "LOAD", "QUALITY", "FAILED LATELY", ""}
WATCH_EVERY_S = 1.0
NUMBER_MAX = 1_000_000


@options_of(connection)
def datacenters(
    watch: Annotated[bool, typer.Option("--watch", help="again every second")] = False,
    json: cluster.Json = False,
    **where: Any,
) -> int:
    """List the datacenters of a gate: whether it reaches them, and how they are."""
    import sys
    import time

    from hyperscale.ui.output import Output

    screen = Output(sys.stdout)
    while True:
        answer = _asked_gate(where, lambda asked: asked.datacenters())
        text = as_json(answer) if json else "\n".join(datacenter_lines(answer, painter()))
        if watch and screen.is_terminal and not json:
            screen.clear()
        streams.say(text)
        if not watch:
            return int(ExitCode.PASSED)
        time.sleep(WATCH_EVERY_S)


@options_of(connection)
def route(
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="a test, for the cores that it can use")
    ] = "",
    explain: Annotated[
        bool, typer.Option("--explain", help="the score of each datacenter, and why")
    ] = False,
    count: Annotated[
        str, typer.Option("--count", metavar="N", help="so many datacenters (all)")
    ] = "",
    cores: Annotated[
        str, typer.Option("--cores", metavar="N", help="that must be free in each")
    ] = "",
    dc: Annotated[
        list[str] | None, typer.Option("--dc", metavar="NAME", help="name it; repeatable")
    ] = None,
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="HOW", help="strict (with --dc), prefer, any (without)"),
    ] = "",
    without: Annotated[
        list[str] | None, typer.Option("--without", metavar="NAME", help="not there; repeatable")
    ] = None,
    json: cluster.Json = False,
    **where: Any,
) -> int:
    """Tell in which datacenters a gate would let a job run now."""
    from hyperscale.cluster.routing import POLICIES
    from hyperscale.nodes.protocol.datacenters import AskRoute

    policy = policy or ("strict" if dc else "any")
    if policy not in POLICIES:
        raise BadInput(f"--policy takes one of {', '.join(POLICIES)}, not {policy!r}")
    if policy != "any" and not dc:
        raise BadInput(f"--policy {policy} says nothing without --dc", "--dc eu names a datacenter")
    used = _cores_used(file) if file else 0
    question = AskRoute(
        count=_number("--count", count),
        named=tuple(dc or ()),
        policy=cast("Policy", policy),
        excluded=tuple(without or ()),
        cores=_number("--cores", cores),
    )
    view = _asked_gate(where, lambda asked: asked.route(question))
    if json:
        streams.say(as_json(view.decision))
    elif explain:
        streams.say("\n".join(route_lines(view, used, painter())))
    elif view.decision.chosen:
        streams.say("\n".join(view.decision.chosen))
    if view.decision.error and not (json or explain):
        raise RunFailed(f"nowhere: {view.decision.error}", "--explain tells more")
    return int(ExitCode.FAILED if view.decision.error else ExitCode.PASSED)


def _number(flag: str, text: str) -> int:
    if not text:
        return 0
    if not text.isdecimal() or not 1 <= int(text) <= NUMBER_MAX:
        raise BadInput(f"{flag} takes a number from 1 on, not {text!r}")
    return int(text)


def _asked_gate(where: dict[str, Any], question: Callable[[Cluster], Awaitable[T]]) -> T:
    from hyperscale.wire.errors import Reason, Refused

    try:
        return cluster.ask(where, question)
    except RunFailed as error:
        refusal = error.__cause__
        if isinstance(refusal, Refused) and refusal.code in (
            Reason.NOT_ANSWERED,
            Reason.UNKNOWN_KIND,
        ):
            raise RunFailed(
                error.message, "only gates know datacenters: name the address of a gate"
            ) from error
        raise


def _cores_used(file: str) -> int:
    """As many as its tests could make use of at once, wherever they run."""
    from hyperscale.engine.source import FileSource
    from hyperscale.workload.facts import test_facts
    from hyperscale.workload.plan import Overrides, plan_test

    plan = plan_test(FileSource(file).load(), Overrides())
    return sum(facts.users for facts in test_facts(plan) if facts.is_test)


# -- for people ----------------------------------------------------------------------------------


def datacenter_lines(answer: DatacenterStates, paint: Paint) -> list[str]:
    count = len(answer.datacenters)
    well = sum(one.state == "healthy" for one in answer.datacenters)
    lines = [
        f"{count} datacenter{'' if count == 1 else 's'}, {well} healthy, as {answer.gate} sees"
    ]
    if answer.line_in_doubt:
        doubt = "most of them fell silent at once: it may be this gate that is cut off"
        lines.append(paint.warn(f"{doubt}, so none is given up for now"))
    head, *rows = table(HEAD, [_cells(one) for one in answer.datacenters], RIGHT)
    lines += ["", paint.strong(head)]
    for line, one in zip(rows, answer.datacenters, strict=True):
        lines.append(_coloured(line, one.state, paint))
    return lines


def _coloured(line: str, state: str, paint: Paint) -> str:
    if state == "unhealthy":
        return paint.bad(line)
    return paint.warn(line) if state in ("degraded", "busy") else line


def _cells(one: DatacenterState) -> tuple[str, ...]:
    known = one.facts
    return (
        one.name,
        one.state,
        "-" if one.rtt_s is None else f"{_ms(one.rtt_s)} ±{_ms(one.rtt_error_s)}",
        "-" if known is None else f"{known.managers_alive} of {known.managers}",
        one.leader or "-",
        "-" if known is None else f"{known.workers_healthy} of {known.workers}",
        "-" if known is None else str(known.cores),
        "-" if known is None else str(known.cores_free),
        "-" if known is None else str(known.running),
        "-" if known is None else str(known.queued),
        "never" if one.heard_s is None else f"{age(one.heard_s)} ago",
        _why(one),
    )


def _why(one: DatacenterState) -> str:
    parts = [one.why]
    if one.missed and not one.why:
        parts.append(f"it missed {one.missed} probe{'s' * (one.missed > 1)} in a row")
    if one.circuits_open:
        parts.append(f"{one.circuits_open} of {one.managers_known} managers fail what jobs ask")
    if one.reach != "reachable" and one.other_gates:
        parts.append(f"{', '.join(one.other_gates)} reach{'es' * (len(one.other_gates) == 1)} it")
    return "; ".join(filter(None, parts)) or "-"


def _ms(seconds: float) -> str:
    value = seconds * 1_000
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def route_lines(view: RouteView, used: int, paint: Paint) -> list[str]:
    decision = view.decision
    if decision.error:
        first = paint.bad(f"nowhere: {decision.error}")
    else:
        first = f"{view.gate} would run it in {', '.join(decision.chosen)}"
        if decision.fallback:
            first += f"; next would be {', '.join(decision.fallback)}"
    lines = [first]
    if decision.reason:
        lines.append(f"because: {decision.reason}")
    if used:
        lines.append(f"the test can use {used:,} core{'' if used == 1 else 's'} at once")
    lines.append(
        "score = rtt × load × quality × failed lately, the lower is the better"
        if decision.by_distance
        else "score = load × failed lately: round trips are not known well enough yet to count"
    )
    rows = [_route_cells(one, decision) for one in decision.scored]
    head, *body = table(ROUTE_HEAD, rows, ROUTE_RIGHT)
    lines += ["", paint.strong(head)]
    for line, one in zip(body, decision.scored, strict=True):
        lines.append(line if one.chosen else paint.faint(line))
    return lines


def _route_cells(one: Scored, decision: Decision) -> tuple[str, ...]:
    if not one.rank:
        return ("-", one.name, one.health, "-", "-", "-", "-", "-", one.reason)
    by_distance = decision.by_distance
    return (
        f"{one.rank}*" if one.chosen else f"{one.rank} ",
        one.name,
        one.health,
        f"{one.score * 1_000:,.1f}" if by_distance else f"{one.score:.2f}",
        _ms(one.rtt_s) if by_distance else "-",
        f"×{one.load:.2f}",
        f"×{one.quality_penalty:.2f}" if by_distance else "-",
        f"×{one.cooldown:.0f}",
        one.reason or "-",
    )
