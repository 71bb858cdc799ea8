"""The terminal as a canvas: lines go in, only those that changed go out.

The view has the alternate screen, so the shell's own lines come back untouched. Writing never
waits: the terminal is opened a second time, non-blocking, and while a slow or stopped terminal
(Ctrl-S, a hanging connection) has not taken the whole of a frame, new frames are skipped.
"""

from __future__ import annotations

import io
import os
import select
from collections.abc import Mapping
from typing import TextIO

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType, Segment, Segments

from hyperscale.ui.live.palette import Line, text_width
from hyperscale.ui.output import Output
from hyperscale.ui.text import to_ascii

# Alternate screen, no cursor, no wrapping at the right edge, cleared.
_ENTER = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J"
_LEAVE = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
_CLEAR = b"\x1b[2J"
_ERASE_REST = Control((ControlType.ERASE_IN_LINE, 0)).segment
_LEAVE_WAIT_MS = 500  # for a terminal that is still taking the last frame


class Screen:
    def __init__(self, stream: TextIO, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        self._fd = stream.fileno()
        self._own_fd = -1
        self._unicode = Output(stream, environ).unicode
        self._buffer = io.StringIO()
        self._console = Console(
            file=self._buffer, force_terminal=True, legacy_windows=False, _environ=environ
        )
        self._shown: list[Line] = []
        self._size = (0, 0)
        self._unsent = b""
        self._entered = False
        self._gone = False

    def enter(self) -> None:
        if self._entered or self._gone:
            return
        if self._own_fd < 0:
            self._own_fd = _open_again(self._fd)
        self._entered = True
        self._shown = []
        self._send(_ENTER)

    def leave(self) -> None:
        if not self._entered:
            return
        self._entered = False
        for _ in range(2):
            self.flush()
            if not self.owes:
                break
            poller = select.poll()
            poller.register(self._out, select.POLLOUT)
            poller.poll(_LEAVE_WAIT_MS)
        self._unsent = b""
        self._send(_LEAVE)
        self._unsent = b""
        if self._own_fd != self._fd:
            os.close(self._own_fd)
        self._own_fd = -1

    def size(self) -> tuple[int, int]:
        """Columns and rows, asked anew each time: this is how a resize is noticed."""
        try:
            columns, rows = os.get_terminal_size(self._fd)
        except OSError:
            columns = rows = 0
        return columns or 80, rows or 24

    @property
    def owes(self) -> bool:
        """Part of the last frame has not gone out yet; `flush` sends more of it."""
        return bool(self._unsent)

    def flush(self) -> None:
        self._send(b"")

    def forget(self) -> None:
        """Send every line again next time: something else may have written over them."""
        self._shown = []

    def paint(self, lines: list[Line], size: tuple[int, int]) -> None:
        """Show `lines`, made for `size`; skipped while the terminal is still taking the last."""
        if not self._entered or self._gone:
            return
        self.flush()
        if self.owes:
            return
        data = b""
        if size != self._size:
            self._size, self._shown, data = size, [], _CLEAR
        changed: Line = []
        for y, line in enumerate(lines):
            if y >= len(self._shown) or self._shown[y] != line:
                changed += [Control.move_to(0, y).segment, *line]
                # A full line leaves the cursor on its last column, which erasing would take.
                if text_width(line) < size[0]:
                    changed.append(_ERASE_REST)
        self._shown = lines
        if changed:
            self._send(data + self._encode(changed))

    def _encode(self, segments: list[Segment]) -> bytes:
        self._console.print(Segments(map(_harmless, segments)), end="", soft_wrap=True)
        drawn = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        if self._unicode:
            return drawn.encode("utf-8", "replace")
        return to_ascii(drawn).encode("ascii")

    @property
    def _out(self) -> int:
        return self._own_fd if self._own_fd >= 0 else self._fd

    def _send(self, data: bytes) -> None:
        """Write what fits; the rest waits in `_unsent`, in front of everything else."""
        self._unsent += data
        while self._unsent and not self._gone:
            try:
                sent = os.write(self._out, self._unsent)
            except BlockingIOError:
                return
            except OSError:
                self._gone = True  # the terminal was closed; the run goes on unseen
                self._unsent = b""
                return
            self._unsent = self._unsent[sent:]


def _harmless(segment: Segment) -> Segment:
    """Names and messages come from outside: control characters in them must not act."""
    if segment.control or segment.text.isprintable():
        return segment
    return Segment("".join(filter(str.isprintable, segment.text)), segment.style)


def _open_again(fd: int) -> int:
    try:
        return os.open(os.ttyname(fd), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return fd
