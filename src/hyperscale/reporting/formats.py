"""The formats results can be written in, and the choice among them by a file's suffix.

A format is one or more parts, each a function from results to bytes. The room above adds the HTML
report to `FORMATS`; nothing here knows how it is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from hyperscale.errors import BadInput
from hyperscale.metrics.results import Results, encode
from hyperscale.reporting.csv_file import requests_csv, series_csv, steps_csv
from hyperscale.reporting.files import check_file, is_special, write_file

Render = Callable[[Results], bytes]


class Format(msgspec.Struct, frozen=True):
    """`parts` maps what is added to the file's stem to what goes in: "" is the named file itself,
    "-series" makes `out-series.csv` beside `out.csv`."""

    name: str
    suffixes: tuple[str, ...]
    parts: Mapping[str, Render]

    def files(self, path: Path) -> dict[Path, Render]:
        if is_special(path):
            return {path: self.parts[""]}
        return {
            path.with_name(path.stem + added + path.suffix) if added else path: render
            for added, render in self.parts.items()
        }


def json_bytes(results: Results) -> bytes:
    return encode(results) + b"\n"


def junit_bytes(results: Results) -> bytes:
    from hyperscale.reporting.junit_file import junit_xml  # opens the XML library

    return junit_xml(results)


def xml_bytes(results: Results) -> bytes:
    from hyperscale.reporting.xml_file import results_xml

    return results_xml(results)


FORMATS: dict[str, Format] = {
    "json": Format("json", (".json",), {"": json_bytes}),
    "csv": Format(
        "csv", (".csv",), {"": steps_csv, "-requests": requests_csv, "-series": series_csv}
    ),
    "junit": Format("junit", (".xml", ".junit"), {"": junit_bytes}),
    "xml": Format("xml", (), {"": xml_bytes}),  # by name: xml=FILE, since .xml is JUnit to CI
}


def choose(path: Path, format: str | Format | None = None) -> Format:
    """The format given, or the one the path's suffix stands for."""
    if isinstance(format, Format):
        return format
    if format is not None:
        if found := FORMATS.get(format.lower()):
            return found
        raise BadInput(
            f"There is no output format {format!r}.", f"Known formats: {', '.join(FORMATS)}."
        )
    suffix = path.suffix.lower()
    for known in FORMATS.values():
        if suffix in known.suffixes:
            return known
    suffixes = ", ".join(suffix for known in FORMATS.values() for suffix in known.suffixes)
    raise BadInput(
        f"Cannot tell the format of {path} from its name.", f"End it with one of: {suffixes}."
    )


def check_writable(path: str | Path, format: str | Format | None = None) -> None:
    """Find out before a run whether `export` to this path will work; makes the folder it needs."""
    place = Path(path)
    for file in choose(place, format).files(place):
        check_file(file)


def export(results: Results, path: str | Path, format: str | Format | None = None) -> list[Path]:
    """Write results to `path` and return every file written, each whole or not at all."""
    place = Path(path)
    rendered = {
        file: render(results) for file, render in choose(place, format).files(place).items()
    }
    for file, content in rendered.items():
        write_file(file, content)
    return list(rendered)
