"""Standard output and error, whatever they are connected to.

Writing itself, and giving up a stream that fails, is `ui.output`'s.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hyperscale.ui.output import Output

debug = False  # whether tracebacks are shown


def say(text: str) -> None:
    """Print for the reader of the results."""
    Output(sys.stdout).write(text if text.endswith("\n") else text + "\n")


def note(text: str) -> None:
    """Print for the person at the terminal."""
    Output(sys.stderr).write(text + "\n")


@contextmanager
def patience(text: str, after_s: float = 2.0) -> Iterator[None]:
    """Nobody should wonder whether it hangs: what takes longer is told, with how long it took."""
    begun = time.monotonic()
    told = threading.Event()

    def tell() -> None:
        told.set()
        note(f"{text} ...")

    timer = threading.Timer(after_s, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if told.is_set():
            note(f"{text}: {time.monotonic() - begun:.0f} s")


class Aside:
    """Where a test prints while the view is drawn; shown when the terminal is free again."""

    SHOWN_BYTES = 16_384  # of the end: a step that prints does so thousands of times

    def __init__(self) -> None:
        import tempfile

        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives to the end

    def fileno(self) -> int:
        return self._file.fileno()

    def show(self) -> None:
        size = os.fstat(self.fileno()).st_size
        self._file.seek(max(0, size - self.SHOWN_BYTES))
        text = self._file.read().decode("utf-8", "replace").rstrip()
        if text:
            left_out = size > self.SHOWN_BYTES
            note(f"the test printed{' (the end of it)' if left_out else ''}:\n{text}")


def close() -> None:
    """Flush what libraries wrote: the interpreter's own flush at exit would complain."""
    for stream in (sys.stdout, sys.stderr):
        Output(stream).write("")
