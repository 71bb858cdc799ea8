"""The target in a process of its own, so that it does not share a core with what measures it.

The child says on its standard output where it listens, and stops when its standard input closes:
the kernel closes that when the parent ends, however it ends, so no target outlives its parent.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from hyperscale.errors import BadInput, RunFailed

START_SECONDS = 20.0  # a slow machine with a cold disk; starting takes about 0.2
STOP_SECONDS = 5.0


class Options(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the child is told, as one JSON argument."""

    host: str = "127.0.0.1"
    port: int = 0
    tls: bool = False
    unix_socket: str | None = None
    reuse_port: bool = False
    certificate: str | None = None  # with `key`: made by the parent and shared by its children
    key: str | None = None
    cpu: int | None = None  # run on this core only


class Ready(msgspec.Struct, tag="ready"):
    url: str
    certificate: str | None


class Failed(msgspec.Struct, tag="failed"):
    message: str
    hint: str


class TargetProcess:
    def __init__(self, options: Options | None = None) -> None:
        """Start the child and wait until it listens."""
        command = msgspec.json.encode(options or Options()).decode()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "hyperscale.target", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        too_late = threading.Timer(START_SECONDS, self._process.kill)
        too_late.start()
        try:
            line = self._process.stdout.readline()
        except BaseException:
            self.kill()
            raise
        finally:
            too_late.cancel()
        if not line:
            self.stop()
            raise RunFailed(
                f"The target's process ended with code {self._process.returncode} before it "
                "listened.",
                "Its own message is above, on standard error.",
            )
        answer = msgspec.json.decode(line, type=Ready | Failed)
        if isinstance(answer, Failed):
            self.stop()
            raise BadInput(answer.message, answer.hint)
        self.url = answer.url
        self.certificate = Path(answer.certificate) if answer.certificate else None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Ask it to stop, insist after a while. Safe to call again."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close_pipes()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()
        self._process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def __enter__(self) -> TargetProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


@contextlib.contextmanager
def running(
    host: str = "127.0.0.1",
    port: int = 0,
    tls: bool = False,
    unix_socket: str | None = None,
    cpu: int | None = None,
) -> Iterator[str]:
    """A target in a child process for the length of a `with` block; gives its URL."""
    options = Options(host=host, port=port, tls=tls, unix_socket=unix_socket, cpu=cpu)
    with TargetProcess(options) as process:
        yield process.url
