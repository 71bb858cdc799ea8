"""`hyperscale new`: a test file to start from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from hyperscale.cli import streams
from hyperscale.errors import BadInput


def new(
    name: Annotated[
        str,
        typer.Argument(metavar="FILE", help="where to write it (test.py)"),
    ] = "",
    url: Annotated[str, typer.Option("--url", metavar="URL", help="what the test requests")] = "",
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="FILE",
            help="a HAR, OpenAPI, Postman, curl or log file",
        ),
    ] = "",
    assets: Annotated[
        bool, typer.Option("--assets", help="with --from: keep scripts, pictures")
    ] = False,
    force: Annotated[
        bool, typer.Option("-f", "--force", help="replace the file if it exists")
    ] = False,
) -> int:
    """Write a test file to start from, or one made of a recording, a description or a log."""
    file = Path(
        name or (default_name(Path(source).name.partition(".")[0]) if source else "test.py")
    )
    if file.suffix != ".py":
        raise BadInput(
            f"a test file is a Python file, and {str(file)!r} does not end in .py",
            f"hyperscale new {file}.py",
        )
    if assets and not source:
        raise BadInput("--assets is for a test that is made of a file", "give it with --from")
    text, notes = _text(source, file, url, assets)
    write_test(file, text, notes, force)
    streams.say(f"wrote {file}; try: hyperscale run {file}{' --once' if source else ''}")
    return 0


def write_test(file: Path, text: str, notes: tuple[str, ...], force: bool) -> None:
    """And say what its reader should know."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w" if force else "x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        raise BadInput(f"{file} exists already", "give another name, or --force") from error
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}") from error
    for note in notes:
        streams.say(note)


def default_name(stem: str) -> str:
    return f"{re.sub(r'[^0-9A-Za-z]+', '_', stem).strip('_').lower() or 'test'}.py"


def _text(source: str, file: Path, url: str, assets: bool) -> tuple[str, tuple[str, ...]]:
    if source:
        from hyperscale.importing import imported

        with streams.patience(f"reading {source}"):
            made = imported(Path(source), file, url, assets)
        return made.source, made.notes
    from hyperscale.workload.scaffold import DEFAULT_URL, scaffold

    return scaffold(url or DEFAULT_URL), ()
