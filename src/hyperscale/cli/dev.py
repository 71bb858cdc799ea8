"""`hyperscale dev`: a whole cluster on this machine, of real processes, until Ctrl-C.

Certificates and secret are made for this once. A client on the same machine finds them by
itself, so `hyperscale run FILE --cluster 127.0.0.1` is all it takes. Nobody is restarted: a node
that is killed stays dead, which is what one wants to try.
"""

from __future__ import annotations

from typing import Annotated

import typer

from hyperscale.cli import flags
from hyperscale.errors import BadInput, ExitCode

MANAGERS_MAX = 9
WORKERS_MAX = 64
DATACENTERS_MAX = 5
GATES_MAX = 3


def dev(
    managers: Annotated[
        str, typer.Option("--managers", metavar="N", help="how many (1); 3 survive one's death")
    ] = "1",
    workers: Annotated[str, typer.Option("--workers", metavar="N", help="how many (1)")] = "1",
    datacenters: Annotated[
        str,
        typer.Option("--datacenters", metavar="N", help="each with such managers and workers (1)"),
    ] = "1",
    gates: Annotated[
        str, typer.Option("--gates", metavar="N", help="in front of them (1 for many, else 0)")
    ] = "",
    wan: Annotated[
        str,
        typer.Option(
            "--wan",
            metavar="LINKS",
            help="how far datacenters are apart: 80ms, or eu-us=80ms,eu-ap=160ms",
        ),
    ] = "",
    cores: Annotated[
        str, typer.Option("--cores", metavar="N", help="of each worker (the machine's, divided)")
    ] = "",
    port: Annotated[
        str,
        typer.Option(
            "--port", metavar="N", help="of the first node; others and pages follow (7100)"
        ),
    ] = "7100",
    data: Annotated[
        str, typer.Option("--data", metavar="DIR", help="keep what the nodes remember there")
    ] = "",
    debug: flags.Debug = False,
) -> int:
    """Start a whole cluster on this machine, to practise."""
    from pathlib import Path

    from hyperscale.cli.dev_cluster import Plan, carry_on
    from hyperscale.cli.dev_links import Links
    from hyperscale.engine.cores import usable_cores

    number_of_workers = _number("--workers", workers, 0, WORKERS_MAX)
    number_of_datacenters = _number("--datacenters", datacenters, 1, DATACENTERS_MAX)
    several = "1" if number_of_datacenters > 1 else "0"
    number_of_gates = _number("--gates", gates or several, int(several), GATES_MAX)
    in_all = number_of_workers * number_of_datacenters
    each = max(1, usable_cores() // max(1, in_all))
    plan = Plan(
        managers=_number("--managers", managers, 1, MANAGERS_MAX),
        workers=number_of_workers,
        cores=_number("--cores", cores, 1, 1024) if cores else each,
        # a node and its page have a port each
        port=_number("--port", port, 1, 65_535 - 2 * (MANAGERS_MAX + WORKERS_MAX)),
        data=Path(data).absolute() if data else None,
        datacenters=number_of_datacenters,
        gates=number_of_gates,
        wan=wan,
    )
    if wan:
        if number_of_datacenters == 1:
            raise BadInput("--wan is between datacenters, and there is one", "--datacenters 3")
        Links(wan, plan.names)
    carry_on(plan)
    return int(ExitCode.PASSED)


def _number(flag: str, text: str, at_least: int, at_most: int) -> int:
    if not text.isdecimal() or not at_least <= int(text) <= at_most:
        raise BadInput(f"{flag} takes a number from {at_least} to {at_most}, not {text!r}")
    return int(text)
