"""The files a run leaves behind, and result files read back.

Nobody should wait ten minutes to learn that a directory does not exist, so every file is checked
before the run. A disk that fills up meanwhile costs that file only, never the summary.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hyperscale.config.run import Settings
from hyperscale.errors import BadInput, HyperscaleError
from hyperscale.metrics.results import Results
from hyperscale.reporting import FORMATS, Format, check_writable, choose, export, load


def _html(results: Results) -> bytes:
    from hyperscale.ui.html import render

    return render(results).encode()


def _markdown(results: Results) -> bytes:
    from hyperscale.ui.markdown import render_markdown

    return render_markdown(results).encode()


FORMATS["html"] = Format("html", (".html", ".htm"), {"": _html})
FORMATS["markdown"] = Format("markdown", (".md", ".markdown"), {"": _markdown})


@dataclass(frozen=True)
class File:
    path: Path
    format: str


def requested(settings: Settings) -> list[File]:
    files = [_parse_out(value) for value in settings.out or [] if "://" not in value]
    files += [
        File(Path(path), format) for format in FORMATS if (path := getattr(settings, format, None))
    ]
    return list(dict.fromkeys(files))


def urls(settings: Settings) -> list[str]:
    """Where results are sent to."""
    return [value for value in settings.out or [] if "://" in value]


def _parse_out(value: str) -> File:
    """`results.json` by its suffix, or `json=results` by name, as k6 writes it."""
    name, equals, path = value.partition("=")
    if equals and path and name in FORMATS:
        return File(Path(path), name)
    return File(Path(value), choose(Path(value)).name)


def check(files: list[File]) -> None:
    """Raise BadInput for the first file that could not be written."""
    for file in files:
        check_writable(file.path, file.format)


def write(files: list[File], results: Results) -> list[HyperscaleError]:
    """Write every file that can be written; the errors of the others."""
    errors: list[HyperscaleError] = []
    for file in files:
        try:
            export(results, file.path, file.format)
        except HyperscaleError as error:
            errors.append(error)
    return errors


def append_step_summary(results: Results) -> HyperscaleError | None:
    """Add the run to the page of a GitHub workflow; each command of a job adds to the same file."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return None
    try:
        with open(path, "ab") as file:
            file.write(_markdown(results) + b"\n")
    except OSError as error:
        return BadInput(f"the step summary {path} cannot be written: {error.strerror}")
    return None


@contextmanager
def consistent(what: str) -> Iterator[None]:
    """Files that follow the schema, and say what no run can have measured: each number is one, and
    they do not fit each other."""
    try:
        yield
    except (
        ArithmeticError, AssertionError, LookupError, RecursionError, StopIteration, TypeError,
        ValueError,
    ) as error:  # fmt: skip
        raise BadInput(
            f"{what} cannot be shown: the numbers in it do not fit each other",
            f"the file was changed after it was written, or by another tool ({error!r})",
        ) from error


def read(path: Path) -> Results:
    """Results from a JSON file or from an HTML report, which carries them inside."""
    if path.suffix.lower() not in FORMATS["html"].suffixes:
        return load(path)
    from hyperscale.ui.html import extract

    try:
        return extract(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
