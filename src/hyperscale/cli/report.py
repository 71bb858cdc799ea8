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
            help=".html .json .csv .xml; repeatable (FILE.html)",
        ),
    ] = None,
) -> int:
    """Make the HTML report, or another file, from results."""
    from hyperscale.cli import outputs
    from hyperscale.config.run import Settings

    path = Path(results)
    loaded = outputs.read(path)
    files = outputs.requested(Settings(out=list(out or [str(path.with_suffix(".html"))])))
    outputs.check(files)
    with outputs.consistent(str(path)):
        failed = outputs.write(files, loaded)
    if failed:
        raise failed[0]
    for file in files:
        streams.say(f"wrote {file.path}")
    return 0
