"""Writing to stdout and stderr whatever they are: terminal, pipe, file, full disk, closed.

A stream that fails once is given up: later writes do nothing, and what Python still buffers for it
goes to the null device, so that the interpreter's own flush at exit cannot turn a good run into an
error. Colour and Unicode are used where the stream and the environment allow them. Everything that
is printed passes here, and nothing in it is obeyed by a terminal but our own colours: names,
answers of targets and outputs of jobs are written by others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

from hyperscale.ui.text import harmless, to_ascii

_UNICODE_WE_USE = "✓✗µ━…█▲"
_CLEAR = "\x1b[H\x1b[2J"


class Output:
    def __init__(self, stream: TextIO | None, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"
        self.unicode = _can_encode(_UNICODE_WE_USE, self.encoding)
        self.is_terminal = _is_terminal(stream)
        self.color = (
            self.is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        )

    def write(self, text: str) -> bool:
        """False when nothing reaches the reader any more."""
        return self._write(harmless(text, self.color))

    def clear(self) -> bool:
        """Begin again at the top of a terminal."""
        return self._write(_CLEAR)

    def _write(self, text: str) -> bool:
        if self._stream is None:
            return False
        if not self.unicode:
            text = to_ascii(text)
        text = text.encode(self.encoding, "replace").decode(self.encoding)
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # ValueError: the stream object is closed
            self._give_up()
            return False
        return True

    def columns(self, limit: int) -> int | None:
        """The width to write for: the terminal's; None where lines can be any length."""
        if not self.is_terminal:
            return None
        import shutil

        return max(40, min(limit, shutil.get_terminal_size((limit, 24)).columns))

    def paint(self) -> Paint:
        return Paint(self.color)

    def _give_up(self) -> None:
        stream, self._stream = self._stream, None
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            try:
                os.dup2(null, stream.fileno() if stream else null)
            finally:
                os.close(null)
        except (OSError, ValueError):
            return  # a stream without a descriptor has nothing left to flush


class Paint:
    """A handful of terminal colours, or none of them."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def good(self, text: str) -> str:
        return self._wrap("32", text)

    def bad(self, text: str) -> str:
        return self._wrap("31", text)

    def warn(self, text: str) -> str:
        return self._wrap("33", text)

    def strong(self, text: str) -> str:
        return self._wrap("1", text)

    def faint(self, text: str) -> str:
        return self._wrap("2", text)

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except (OSError, ValueError):
        return False


def _can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True
