"""Standard output and error of every kind: terminal, pipe, file, full disk, closed.

The summary must not be lost to a reader that went away, and a closed descriptor must not be
handed to the next socket that is opened: what is printed there would reach the target.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO

from hyperscale.errors import RunFailed


def secure() -> None:
    """Make the three standard descriptors and `sys.stdout`/`sys.stderr` usable."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - lives to the end
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - lives to the end
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def say(text: str) -> None:
    """Print for the reader of the results."""
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _to_nowhere(sys.stdout)
    except OSError as error:
        _to_nowhere(sys.stdout)
        raise RunFailed(
            f"standard output cannot be written: {error.strerror}",
            "results asked for with --out are not affected",
        ) from error


def note(text: str) -> None:
    """Print for the person at the terminal; nobody there is not an error."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:
        _to_nowhere(sys.stderr)


def close() -> None:
    """Flush now, so that the interpreter's own flush at exit has nothing left to fail on."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _to_nowhere(stream)


def _to_nowhere(stream: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
