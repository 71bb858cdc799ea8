"""The other end of a pseudo-terminal: a terminal emulator that a test can read and type into."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyte

DEADLINE_S = 20.0
ROOT = Path(__file__).parents[3]


class Terminal:
    def __init__(self, columns: int, rows: int, scenario: str) -> None:
        self.master, slave = pty.openpty()
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.seen = b""
        self.resize(columns, rows)
        self._slave = slave
        self.settings_before = self.settings()
        environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CI")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.unit.ui.pty_child", scenario],
            stdin=slave,
            stderr=slave,
            stdout=subprocess.PIPE,
            start_new_session=True,
            cwd=ROOT,
            env={**environment, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"},
        )

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self._slave)

    @property
    def echoes(self) -> bool:
        return bool(self.settings()[3] & termios.ECHO)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def read_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, "\n".join(self.screen.display)
            self._read(0.05)

    def read_until_exit(self) -> int:
        self.read_until(lambda: self.process.poll() is not None)
        while self._read(0.0):
            pass
        return self.process.wait()

    def shows(self, text: str) -> bool:
        return any(text in line for line in self.screen.display)

    def _read(self, timeout: float) -> bool:
        if not select.select([self.master], [], [], timeout)[0]:
            return False
        data = os.read(self.master, 65536)
        self.seen += data
        self._stream.feed(data)
        return bool(data)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        os.close(self.master)
        os.close(self._slave)


@contextmanager
def terminal(columns: int, rows: int, scenario: str) -> Iterator[Terminal]:
    it = Terminal(columns, rows, scenario)
    try:
        yield it
    finally:
        it.close()
