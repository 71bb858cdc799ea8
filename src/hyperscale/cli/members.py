"""`hyperscale members`: a cluster as one of its members sees it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperscale.cli import flags, streams
from hyperscale.errors import BadInput, ExitCode, RunFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hyperscale.nodes.member.queries import MemberRow, Members
    from hyperscale.runtime.host import Address
    from hyperscale.ui.output import Paint
    from hyperscale.wire.certificates import Credentials
    from hyperscale.wire.identity import Identity

WATCH_EVERY_S = 1.0
TIMEOUT_S = 5.0
PATIENCE_S = 15.0  # with a node that says it is too busy: it must be able to be looked at
HEAD = ("NODE", "ROLE", "DC", "STATE", "FOR", "INC", "HEALTH", "RTT", "ERROR", "ADDRESS")
RIGHT = {"FOR", "INC", "HEALTH", "RTT", "ERROR"}


def members(
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="any member (127.0.0.1:7000)")
    ] = "127.0.0.1:7000",
    certs: Annotated[
        str, typer.Option("--certs", metavar="DIR", help="made by hyperscale certs")
    ] = "",
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="whose certificate to show (client)")
    ] = "client",
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="ID", help="without --certs: which (default)")
    ] = "default",
    env: Annotated[
        str, typer.Option("--env", metavar="ID", help="without --certs: environment (dev)")
    ] = "dev",
    watch: Annotated[bool, typer.Option("--watch", help="again every second")] = False,
    json: Annotated[bool, typer.Option("--json", help="one JSON object per answer")] = False,
    debug: flags.Debug = False,
) -> int:
    """Show who is in a cluster, and how they are."""
    import sys

    from hyperscale.cluster.discovery.settings import parse_address
    from hyperscale.runtime.host import Address
    from hyperscale.runtime.real import run
    from hyperscale.ui.output import Output

    try:
        to = Address(*parse_address(address, 7000))
    except ValueError as error:
        raise BadInput(str(error)) from None
    credentials, identity = _credentials(certs, name, cluster, env)
    screen = Output(sys.stdout)
    paint = screen.paint()

    async def show() -> None:
        async for answer in _answers(to, credentials, identity, watch):
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
    cells = [HEAD, *(_cells(row, answer) for row in answer.rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    lines = [_summary(answer), *([paint.bad(answer.difference)] if answer.difference else []), ""]
    for number, line in enumerate(cells):
        parts = [
            cell.rjust(width) if title in RIGHT else cell.ljust(width)
            for title, cell, width in zip(HEAD, line, widths, strict=True)
        ]
        text = "  ".join(parts).rstrip()
        lines.append(_coloured(text, "" if number == 0 else answer.rows[number - 1].state, paint))
    return lines


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
    if not state:
        return paint.strong(text)
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
        _age(row.since_s),
        str(row.incarnation),
        "-" if row.health_score is None else str(row.health_score),
        "-" if row.rtt_s is None else f"{row.rtt_s * 1000:.2f} ms",
        "-" if row.coordinate_error is None else f"{row.coordinate_error:.0%}",
        row.address,
    )


def _age(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"


def _credentials(
    certs: str, name: str, cluster: str, env: str
) -> tuple[Credentials | None, Identity]:
    """Who asks: what the certificate says, or on loopback without one whoever we say."""
    import ssl

    from hyperscale.wire.certificates import CertificateIdentity, Credentials, identity_of
    from hyperscale.wire.errors import Refused
    from hyperscale.wire.identity import Identity

    credentials, proven = None, CertificateIdentity("client", cluster, env, "local")
    if certs:
        credentials = Credentials(
            Path(certs, "ca.pem"), Path(certs, f"{name}.pem"), Path(certs, f"{name}-key.pem")
        )
        try:
            pem = credentials.certificate.read_text()
            proven = identity_of(ssl.PEM_cert_to_DER_cert(pem))
        except (OSError, ValueError, Refused) as error:
            raise BadInput(
                f"{credentials.certificate} cannot be used: {error}",
                f"make one: hyperscale certs {certs} --node client:{name}",
            ) from None
    identity = Identity(
        node_id=name,
        incarnation=0,
        role=proven.role,
        cluster_id=proven.cluster_id,
        environment_id=proven.environment_id,
        datacenter=proven.datacenter,
    )
    return credentials, identity


async def _answers(
    to: Address, credentials: Credentials | None, identity: Identity, watch: bool
) -> AsyncIterator[Members]:
    import uuid
    from tempfile import TemporaryDirectory

    from hyperscale.nodes.member.queries import QUERIES, AskMembers, Members
    from hyperscale.runtime.real import RealHost
    from hyperscale.wire.endpoint import Endpoint
    from hyperscale.wire.errors import DeadlineExceeded, Disconnected, Refused, WireError
    from hyperscale.wire.handshake import Introduction
    from hyperscale.wire.peer import Peer

    with TemporaryDirectory() as nothing:
        async with RealHost(identity.node_id, nothing) as host:
            endpoint = Endpoint(
                host,
                Introduction(identity),
                QUERIES,
                credentials=credentials,
                plaintext="loopback",
            )
            peer = Peer(endpoint, to)
            patience_until = host.clock.now() + PATIENCE_S
            while True:
                pause_s = WATCH_EVERY_S
                try:
                    yield await peer.request(AskMembers(uuid.uuid4().hex), Members, TIMEOUT_S)
                    if not watch:
                        return
                    patience_until = host.clock.now() + PATIENCE_S
                except (Disconnected, DeadlineExceeded) as error:
                    if not watch:
                        raise _silent(to, error) from error
                    streams.note(f"{to} does not answer: {error}")
                except (WireError, OSError, ValueError) as error:
                    later_s = error.retry_after_s if isinstance(error, Refused) else None
                    if later_s is None or host.clock.now() + later_s > patience_until:
                        raise _silent(to, error) from error
                    pause_s = later_s
                await host.clock.sleep(pause_s)


def _silent(to: Address, error: Exception) -> RunFailed:
    return RunFailed(
        f"{to} does not answer: {error}",
        "is a hyperscale node running there, with the same cluster, environment and authority?",
    )
