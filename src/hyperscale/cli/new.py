"""`hyperscale new`: a test file to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hyperscale.cli import streams
from hyperscale.errors import BadInput


def new(
    name: Annotated[
        str, typer.Argument(metavar="FILE", help="where to write it (test.py)")
    ] = "test.py",
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="what the test requests")
    ] = "http://127.0.0.1:8080/",
    force: Annotated[
        bool, typer.Option("-f", "--force", help="replace the file if it exists")
    ] = False,
) -> int:
    """Write a small test file to start from."""
    from hyperscale.workload.scaffold import scaffold

    file = Path(name)
    if file.suffix != ".py":
        raise BadInput(
            f"a test file is a Python file, and {str(file)!r} does not end in .py",
            f"hyperscale new {file}.py",
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w" if force else "x", encoding="utf-8") as opened:
            opened.write(scaffold(url))
    except FileExistsError as error:
        raise BadInput(f"{file} exists already", "give another name, or --force") from error
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}") from error
    streams.say(f"wrote {file}; try: hyperscale run {file}")
    return 0
