"""Single key presses from a terminal, without waiting for the return key and without echo.

The terminal is in cbreak mode while the keyboard is open: Ctrl-C and Ctrl-Z still send their
signals. A stdin that is not the terminal of a foreground process is left alone, because changing
its settings would stop a background job.
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Callable
from typing import Any

ESCAPE = 0x1B


def decode(data: bytes) -> list[str]:
    """The printable keys, tab and return; escape sequences (arrows, mouse) are left out."""
    keys: list[str] = []
    i = 0
    while i < len(data):
        byte = data[i]
        i += 1
        if byte == ESCAPE:
            i = _after_sequence(data, i)
        elif byte in b"\t\r\n" or 0x20 <= byte < 0x7F:
            keys.append(chr(byte))
    return keys


def _after_sequence(data: bytes, i: int) -> int:
    """Where the sequence that began with ESC ends: ESC [ … final, ESC O x, or ESC x."""
    if i >= len(data):
        return i
    if data[i] in b"[O":
        i += 1
        while i < len(data) and not 0x40 <= data[i] <= 0x7E:
            i += 1
    return i + 1


def is_foreground_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False


class Keyboard:
    """`open` and `close` may be called again and again (a job that is suspended and continued)."""

    def __init__(self, on_key: Callable[[str], None], fd: int | None = None) -> None:
        self._on_key = on_key
        self._fd = _stdin() if fd is None else fd
        self._saved: list[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def opened(self) -> bool:
        return self._loop is not None

    def open(self, loop: asyncio.AbstractEventLoop) -> bool:
        """False when there is no keyboard to read."""
        if self._fd < 0 or self._loop is not None or not is_foreground_terminal(self._fd):
            return False
        try:
            self._saved = termios.tcgetattr(self._fd)
            tty.setcbreak(self._fd, termios.TCSADRAIN)
            loop.add_reader(self._fd, self._readable)
        except (OSError, termios.error, NotImplementedError):
            self._restore()
            return False
        self._loop = loop
        return True

    def close(self) -> None:
        if self._loop is not None:
            loop, self._loop = self._loop, None
            if not loop.is_closed():
                loop.remove_reader(self._fd)
        self._restore()

    def _readable(self) -> None:
        try:
            data = os.read(self._fd, 1024)
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        for key in decode(data):
            self._on_key(key)

    def _restore(self) -> None:
        if self._saved is None:
            return
        saved, self._saved = self._saved, None
        if not is_foreground_terminal(self._fd):
            return  # the shell that took the terminal back has its own settings on it
        try:
            # Flush: keys pressed at the view were meant for it, not for the shell's next prompt.
            termios.tcsetattr(self._fd, termios.TCSAFLUSH, saved)
        except (OSError, termios.error):
            return  # the terminal went away between the two calls


def _stdin() -> int:
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return -1
