"""`hyperscale members`: a cluster as one of its members sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperscale.cli import cluster as where
from hyperscale.cli import streams, tables
from hyperscale.cli.shared_options import options_of
from hyperscale.errors import ExitCode, RunFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hyperscale.nodes.client.settings import ClusterSettings
    from hyperscale.nodes.member.queries import MemberRow, Members
    from hyperscale.runtime.host import Address
    from hyperscale.ui.output import Paint

WATCH_EVERY_S = 1.0
TIMEOUT_S = 5.0
BUSY_S = 15.0  # with a node that says it is too busy: it must be able to be looked at
HEAD = ("NODE", "ROLE", "DC", "STATE", "FOR", "INC", "HEALTH", "RTT", "ERROR", "ADDRESS")
RIGHT = {"FOR", "INC", "HEALTH", "RTT", "ERROR"}


@options_of(where.connection)
def members(
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="any member (the first manager)")
    ] = "",
    watch: Annotated[bool, typer.Option("--watch", help="again every second")] = False,
    json: Annotated[bool, typer.Option("--json", help="one JSON object per answer")] = False,
    **given: Any,
) -> int:
    """Show who is in a cluster, and how they are."""
    import sys

    from hyperscale.runtime.real import run
    from hyperscale.ui.output import Output

    settings = where.settings_of({**given, "manager": address or given["manager"]})
    screen = Output(sys.stdout)
    paint = screen.paint()

    async def show() -> None:
        async for answer in _answers(settings, watch):
            text = as_json(answer) if json else "\n".join(table(answer, paint))
            if watch and screen.is_terminal and not json:
                screen.clear()
            streams.say(text)

    run(show())
    return int(ExitCode.PASSED)


def as_json(answer: Members) -> str:
    import msgspec

    from hyperscale.ui.text import harmless_json

    return harmless_json(msgspec.json.encode(answer).decode())


def table(answer: Members, paint: Paint) -> list[str]:
    """The answer as lines: one for the cluster, one for each member."""
    head, *rows = tables.table(HEAD, [_cells(row, answer) for row in answer.rows], RIGHT)
    return [
        _summary(answer),
        *([paint.bad(answer.difference)] if answer.difference else []),
        "",
        paint.strong(head),
        *(_coloured(text, row.state, paint) for text, row in zip(rows, answer.rows, strict=True)),
    ]


def _summary(answer: Members) -> str:
    alive = sum(row.state == "alive" for row in answer.rows)
    text = f"cluster {answer.cluster} ({answer.env}), as {answer.node_id} sees it: "
    text += f"{alive} of {len(answer.rows)} alive"
    if answer.term:
        text += f"; leader {answer.leader or 'none'}, term {answer.term}"
    if answer.voters:
        text += f", voters {' '.join(answer.voters)}"
    return text


def _coloured(text: str, state: str, paint: Paint) -> str:
    if state == "suspect":
        return paint.warn(text)
    if state == "dead":
        return paint.bad(text)
    return paint.faint(text) if state == "left" else text


def _cells(row: MemberRow, answer: Members) -> tuple[str, ...]:
    mark = "*" if row.node_id == answer.leader else ""
    return (
        row.node_id + mark,
        row.role,
        row.datacenter,
        (row.state if row.confirmed else f"{row.state}?") + (", syncing" if row.syncing else ""),
        tables.age(row.since_s),
        str(row.incarnation),
        "-" if row.health_score is None else str(row.health_score),
        "-" if row.rtt_s is None else f"{row.rtt_s * 1000:.2f} ms",
        "-" if row.coordinate_error is None else f"{row.coordinate_error:.0%}",
        row.address,
    )


async def _answers(settings: ClusterSettings, watch: bool) -> AsyncIterator[Members]:
    import uuid
    from tempfile import TemporaryDirectory

    from hyperscale.nodes.member.queries import QUERIES, AskMembers, Members
    from hyperscale.runtime.real import RealHost
    from hyperscale.wire.endpoint import Endpoint
    from hyperscale.wire.errors import DeadlineExceeded, Disconnected, Refused, WireError
    from hyperscale.wire.handshake import Introduction
    from hyperscale.wire.peer import Peer

    to = settings.managers[0]
    with TemporaryDirectory() as nothing:
        async with RealHost(settings.identity.node_id, nothing) as host:
            endpoint = Endpoint(
                host,
                Introduction(settings.identity),
                QUERIES,
                credentials=settings.credentials,
                plaintext="loopback",
            )
            peer = Peer(endpoint, to)
            busy_until = host.clock.now() + BUSY_S
            while True:
                pause_s = WATCH_EVERY_S
                try:
                    yield await peer.request(AskMembers(uuid.uuid4().hex), Members, TIMEOUT_S)
                    if not watch:
                        return
                    busy_until = host.clock.now() + BUSY_S
                except (Disconnected, DeadlineExceeded) as error:
                    if not watch:
                        raise _silent(to, error) from error
                    streams.note(f"{to} does not answer: {error}")
                except (WireError, OSError, ValueError) as error:
                    later_s = error.retry_after_s if isinstance(error, Refused) else None
                    if later_s is None or host.clock.now() + later_s > busy_until:
                        raise _silent(to, error) from error
                    pause_s = later_s
                await host.clock.sleep(pause_s)


def _silent(to: Address, error: Exception) -> RunFailed:
    return RunFailed(
        f"{to} does not answer: {error}",
        "is a hyperscale node running there, with the same cluster, environment and authority?",
    )
