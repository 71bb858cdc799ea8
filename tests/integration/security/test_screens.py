"""Commands at a terminal, with a hostile target and a hostile directory."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

HOSTILE = b"\x1b]0;PWNED\x07\x1b[2J\xc2\x9b31m"
ANSWER = (
    b"HTTP/1.1 200 " + HOSTILE + b"\r\nX-Evil: " + HOSTILE + b"\r\nContent-Type: text/plain\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(HOSTILE)
) + HOSTILE
TEST = """
from hyperscale import Workflow, step

class Evil(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def get(self):
        return await self.client.http.get("{url}")
"""


@pytest.fixture
def target() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    one, _ = listening.accept()
                    with one, suppress(OSError):
                        one.recv(10_000)
                        one.sendall(ANSWER)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        listening.shutdown(socket.SHUT_RDWR)


def at_a_terminal(folder: Path, *words: str) -> bytes:
    """Everything that reached the terminal."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "hyperscale", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    seen = b""
    with suppress(OSError):  # of a terminal whose other end is closed
        while data := os.read(ours, 65536):
            seen += data
    os.close(ours)
    child.wait(60)
    return seen


@pytest.mark.parametrize(
    "flags",
    [
        ("run", "evil.py", "--once"),
        ("run", "evil.py", "--http-debug=full", "--ui", "none"),
        ("ping", "URL"),
    ],
)
def test_a_target_writes_nothing_that_a_terminal_obeys(
    tmp_path: Path, target: str, flags: tuple[str, ...]
) -> None:
    (tmp_path / "evil.py").write_text(TEST.format(url=target))
    seen = at_a_terminal(tmp_path, *(target if word == "URL" else word for word in flags))
    assert b"31m" in seen  # it was shown
    assert b"\x1b]0" not in seen
    assert b"\x1b[2J" not in seen
    assert b"\xc2\x9b" not in seen
    assert b"\x07" not in seen


def test_a_pipe_among_the_segments_hangs_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "segment_00000001.wal")
    done = subprocess.run(
        [sys.executable, "-m", "hyperscale", "wal", "verify", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert "cannot be read" in done.stderr
    assert "not a file" in done.stderr
