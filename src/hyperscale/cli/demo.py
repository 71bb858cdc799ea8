"""`hyperscale demo`: a target and a short load test against it, or the target alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hyperscale.cli import flags, streams
from hyperscale.cli.variables import recorded_command
from hyperscale.config.run import Settings, said_by
from hyperscale.errors import BadInput

SERVE = "Serve"
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080  # where the file of `hyperscale new` and the examples look for it


def demo(
    ctx: typer.Context,
    duration: Annotated[
        str | None, typer.Option("-d", "--duration", metavar="TIME", help="of the test (7s)")
    ] = None,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="write the report of the test")
    ] = None,
    out: flags.Out = None,
    ui: flags.Ui = None,
    debug: flags.Debug = False,
    serve: Annotated[
        bool,
        typer.Option("--serve", rich_help_panel=SERVE, help="only serve the target, until Ctrl-C"),
    ] = False,
    host: Annotated[
        str, typer.Option("--host", metavar="NAME", rich_help_panel=SERVE, help="(127.0.0.1)")
    ] = DEFAULT_HOST,
    port: Annotated[
        str, typer.Option("--port", metavar="N", rich_help_panel=SERVE, help="(8080; 0: any free)")
    ] = str(DEFAULT_PORT),
    tls: Annotated[
        bool,
        typer.Option("--tls", rich_help_panel=SERVE, help="HTTPS with a certificate made for it"),
    ] = False,
    workers: Annotated[
        str,
        typer.Option("-w", "--workers", metavar="N", rich_help_panel=SERVE, help="processes (1)"),
    ] = "1",
) -> int:
    """Run a short load test against a target that comes along."""
    if serve:
        return _serve(
            host, _number("--port", port, 0, 65535), tls, _number("--workers", workers, 1)
        )
    given = {name: ctx.params[name] for name in ("duration", "ui", "html", "out")}
    said = said_by(given, os.environ)

    from hyperscale.cli.local import perform
    from hyperscale.engine.source import FileSource
    from hyperscale.target import running

    with running() as url:
        said = Settings(env={"TARGET": url}).over(said)
        source = FileSource(str(Path(__file__).parent / "demos/shop.py"))
        code = perform(source, said, Settings(), recorded_command())
    if html:
        streams.note(f"the report is in {html}")
    return code


def _serve(host: str, port: int, tls: bool, workers: int) -> int:
    from hyperscale.target import serve_forever

    def ready(url: str, echo: int) -> None:
        streams.note(f"serving {url} until Ctrl-C; try: hyperscale ping {url}/json")
        if echo:
            streams.note(f"TCP and UDP are echoed at port {echo}")

    serve_forever(host, port, tls, workers, ready)
    return 0


def _number(flag: str, text: str, least: int, most: int | None = None) -> int:
    wanted = f"a whole number from {least}" + (f" to {most}" if most is not None else "")
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least or (most is not None and number > most):
        raise BadInput(f"{flag} takes {wanted}, not {text!r}")
    return number
