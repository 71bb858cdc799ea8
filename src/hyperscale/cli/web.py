"""`hyperscale web`: the runs of a folder in a browser, and new ones of its test files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hyperscale.cli import cluster as where
from hyperscale.cli import flags, streams
from hyperscale.errors import BadInput


def web(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="results (.json, .html) and test files (.)")
    ] = ".",
    bind: Annotated[str, typer.Option("--bind", metavar="HOST:PORT", help="(127.0.0.1:8089)")] = "",
    cluster: where.RunOn = None,
    certs: where.QuietCerts = "",
    scheduler: Annotated[
        str, typer.Option("--scheduler", metavar="URL", help="link to a scheduler's page")
    ] = "",
    debug: flags.Debug = False,
) -> int:
    """Show the runs of a folder in the browser, compare them, start new ones."""
    path = Path(folder)
    if not path.is_dir():
        raise BadInput(f"{folder} is no folder", "name one with results or test files")
    if scheduler and not scheduler.startswith(("http://", "https://")):
        raise BadInput(f"--scheduler takes an address, not {scheduler!r}", "http://HOST:PORT")

    from hyperscale.ui.web.serving import serve_folder

    more = [f"--cluster={one}" for one in cluster or ()] + ([f"--certs={certs}"] * bool(certs))
    links = {"Scheduler": scheduler} if scheduler else {}
    token = os.environ.pop("HYPERSCALE_WEB_TOKEN", "")  # runs that are started need not know it
    bind = bind or os.environ.get("HYPERSCALE_WEB_BIND", "")
    serve_folder(path.resolve(), bind, token, more, links, streams.note)
    return 0
