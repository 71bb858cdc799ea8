"""`hyperscale compare`: what got better or worse between two runs, beyond noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperscale.errors import BadInput

if TYPE_CHECKING:
    from hyperscale.metrics.results import Results


def compare(
    before: Annotated[
        str, typer.Argument(metavar="BEFORE", help="results of the first run: .json or .html")
    ],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="results of the second run")],
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="MORE...", help="of further runs, for --html: a trend"),
    ] = None,
    tolerance: Annotated[
        str,
        typer.Option(
            "--tolerance", metavar="SHARE", help="smaller changes do not count (default: 5%)"
        ),
    ] = "5%",
    all_rows: Annotated[
        bool, typer.Option("-a", "--all", help="also show the steps that did not change")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="print the comparison as JSON, for tools")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="print it as Markdown, for the page of a CI run")
    ] = False,
    html: Annotated[
        str, typer.Option("--html", metavar="FILE", help="write it as a page with charts")
    ] = "",
) -> int:
    """Say what got better or worse between two runs."""
    share = _share(tolerance)
    if json and markdown:
        raise BadInput("--json and --markdown are two ways to print one comparison; choose one")
    from hyperscale.cli import outputs, streams
    from hyperscale.metrics.compare import compare as compared

    files = [before, after, *(more or ())]
    if more and not html:
        raise BadInput(
            "more than two runs are compared on a page", "add --html FILE, or name two files"
        )
    with outputs.consistent(" and ".join(files)), streams.patience("comparing"):
        runs = [(file, outputs.read(Path(file))) for file in files]
        comparison = compared(runs[0][1], runs[-1][1], tolerance=share)
        if html:
            _write_page(Path(html), runs, share)
            if more:
                streams.say(f"wrote {html}: {comparison.reason}")
                return int(comparison.exit_code)
    if json:
        import msgspec

        from hyperscale.ui.text import harmless_json

        streams.say(harmless_json(msgspec.json.format(msgspec.json.encode(comparison)).decode()))
    elif markdown:
        from hyperscale.ui.compare import markdown_comparison

        streams.say(markdown_comparison(comparison, before=before, after=after, all_rows=all_rows))
    else:
        import sys

        from hyperscale.ui.compare import render_comparison
        from hyperscale.ui.output import Output

        streams.say(
            render_comparison(
                comparison,
                before=before,
                after=after,
                paint=Output(sys.stdout).paint(),
                all_rows=all_rows,
            )
        )
    return int(comparison.exit_code)


def _write_page(path: Path, runs: list[tuple[str, Results]], tolerance: float) -> None:
    from hyperscale.ui.html.comparison import render_comparison_report

    try:
        path.write_text(render_comparison_report(runs, tolerance), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from error


def _share(text: str) -> float:
    """`5%` or `0.05`."""
    number, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise BadInput(f"--tolerance takes a share such as 5% or 0.05, not {text!r}")
    return share
