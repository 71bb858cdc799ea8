"""`hyperscale report`: the files of a run, made again from its results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hyperscale.cli import streams


def report(
    results: Annotated[
        str, typer.Argument(metavar="FILE", help="results of a run: .json, or an .html report")
    ],
    out: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help=".html .json .csv .xml .md, or a URL (FILE.html)",
        ),
    ] = None,
) -> int:
    """Make the HTML report, or another file, from results."""
    from hyperscale.cli import outputs
    from hyperscale.config.run import Settings
    from hyperscale.reporting.reporting import Reporting

    path = Path(results)
    with streams.patience(f"reading {path}"):
        loaded = outputs.read(path)
    settings = Settings(out=list(out or [str(path.with_suffix(".html"))]))
    files, reporting = outputs.requested(settings), Reporting(outputs.urls(settings))
    outputs.check(files)
    places = ", ".join([*(str(file.path) for file in files), *reporting.names])
    with outputs.consistent(str(path)), streams.patience(f"making {places}"):
        failed = outputs.write(files, loaded) + reporting.conclude(loaded)
    if failed:
        raise failed[0]
    for file in files:
        streams.say(f"wrote {file.path}")
    for name in reporting.names:
        streams.say(f"sent to {name}")
    return 0
