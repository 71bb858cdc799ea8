"""Starts generator processes: fresh interpreters, each with one end of a socket pair.

Little is imported here, because the command line starts them before it imports anything else:
they load their modules while it reads its options and the test. A process that is not taken into
use ends with its socket.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import NamedTuple

# Ctrl-C reaches the whole process group; the parent alone decides what it means. It is held back
# from before the process exists until it is ignored.
_START = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT]); "
    "from hyperscale.engine.generator import main; main()"
)
# For those who know better, the environment of the run itself is stronger.
_DEFAULTS = {
    "OPENBLAS_NUM_THREADS": "1",  # its idle threads cost 50 ms of CPU at the start
    # What a body or a handshake gives back to glibc's allocator is kept for the next: handing it
    # to the system each time takes a sixth of the processor time of a 100 KB response.
    "MALLOC_TRIM_THRESHOLD_": str(64 * 1024 * 1024),
    "MALLOC_MMAP_THRESHOLD_": str(32 * 1024 * 1024),
}
# What the parent sends first, with or without the descriptor for what the process prints.
TAKEN = b"\0"


class Isolation(NamedTuple):
    """Of a process that runs other people's code."""

    home: str  # its working directory, removed after its end
    confinement: str  # `engine.confinement`, encoded; none when empty


class Child:
    """A process that has not been told what it is for. Until it is taken it prints to stderr;
    `env` replaces the environment it would inherit. An isolated one has a session of its own, and
    what it started ends with it."""

    def __init__(
        self, env: Mapping[str, str] | None = None, isolation: Isolation | None = None
    ) -> None:
        self._isolation = isolation
        self.socket, theirs = socket.socketpair()
        os.set_inheritable(theirs.fileno(), True)
        with _sigint_held_back():
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-c", _START, str(theirs.fileno()), _leader()),
                    isolation.confinement if isolation else "",
                ],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=_stderr(),
                stderr=_stderr(),
                env={
                    **_DEFAULTS,
                    **(os.environ if env is None else env),
                    "PYTHONUNBUFFERED": "1",
                },
                cwd=isolation.home if isolation else None,
                start_new_session=isolation is not None,
            )
        theirs.close()

    def take(self, output: int | None) -> None:
        """What it prints goes to that file descriptor from now on, if one is given."""
        with contextlib.suppress(OSError):  # it is gone: whoever reads from it will learn so
            if output is None:
                self.socket.send(TAKEN)
            else:
                socket.send_fds(self.socket, [TAKEN], [output])

    def wait(self, timeout_s: float | None = None) -> int:
        """Its exit code; nothing of it is left. Raises subprocess.TimeoutExpired."""
        code = self.process.wait(timeout_s)
        isolation, self._isolation = self._isolation, None
        if isolation is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            _remove(isolation.home)
        return code

    def end(self) -> None:
        self.socket.close()
        self.process.kill()
        self.wait()


def await_taken(line: socket.socket) -> bool:
    """In the process: wait for the parent's first word; False when the parent is gone."""
    word, descriptors, _, _ = socket.recv_fds(line, len(TAKEN), 1)
    for descriptor in descriptors:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.close(descriptor)
    return word == TAKEN


class EarlyChildren:
    """Processes started before anyone knew what the run needs. They are as good as new ones if
    that is the environment they were given."""

    def __init__(self, count: int, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._children: list[Child] = []
        try:
            self._children.extend(Child(self._environ) for _ in range(count))
        except BaseException:
            self.end()
            raise

    def give(self, count: int) -> list[Child]:
        """Up to so many of them; the others end."""
        given: list[Child] = []
        if os.environ == self._environ:
            given, self._children = self._children[:count], self._children[count:]
        self.end()
        return given

    def end(self) -> None:
        while self._children:
            self._children.pop().end()


@contextlib.contextmanager
def _sigint_held_back() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leader() -> str:
    """The process the child may not outlive, where the kernel can see to that.

    It watches over the thread that started the child, so only the main thread will do: another
    may end long before the run."""
    main = threading.current_thread() is threading.main_thread()
    return str(os.getpid()) if main and sys.platform == "linux" else ""


def _remove(home: str) -> None:
    import shutil

    shutil.rmtree(home, ignore_errors=True)
    if not os.path.exists(home):
        return
    os.chmod(home, 0o700)  # the code of a test may have closed its directories
    for folder, names, _ in os.walk(home):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(home, ignore_errors=True)


def _stderr() -> int:
    """What the author's code prints is talk, not results: it goes where the progress goes."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return subprocess.DEVNULL
