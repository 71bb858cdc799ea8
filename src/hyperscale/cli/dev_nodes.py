"""One node of a dev cluster: a child process, what it prints, how it ends.

On Linux it is forked from a process that has everything imported already, which starts a cluster
in a third of the time. It gets a session of its own, so that Ctrl-C reaches only the parent, and a
pipe whose other end the parent holds, so that it ends with the parent however that ends.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hyperscale.cli.serving import LIFELINE

FORKED = sys.platform == "linux"
KEPT_LINES = 20
READ_BYTES = 64 * 1024
GONE_S = 0.02
REPEATABLE = ("datacenter", "seed", "set")

_processes: Any = multiprocessing.get_context("fork" if FORKED else "spawn")


def preload() -> None:
    """What every node needs, imported once for all of them."""
    if FORKED:
        import hyperscale.nodes.gate.process
        import hyperscale.nodes.manager.process
        import hyperscale.nodes.worker.process  # noqa: F401


class Lifeline:
    """A pipe nobody writes to: the parent's end closes when the parent is gone."""

    def __init__(self) -> None:
        self.theirs, self.ours = _processes.Pipe(duplex=False)

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


class DevProcess:
    def __init__(self, name: str) -> None:
        self.name = name
        self.said: deque[str] = deque(maxlen=KEPT_LINES)
        self._process: Any = None
        self._output: Connection | None = None
        self._told_to_end = False

    def work(self) -> Callable[[], int]:
        """What it does, and its exit code."""
        raise NotImplementedError

    def start(self, lifeline: Lifeline, environ: dict[str, str]) -> None:
        """Must be called before there is an event loop: a fork would inherit it."""
        self._output, theirs = _processes.Pipe(duplex=False)
        self._process = _processes.Process(
            target=_live,
            args=(self.work(), lifeline.theirs, lifeline.ours, theirs, environ),
            name=self.name,
        )
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        return int(self._process.pid) if self._process is not None else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.exitcode is None

    async def listen(self, say: Callable[[str], None]) -> None:
        """Pass on what it prints, until its end."""
        assert self._output is not None, "listened to before it was started"
        loop = asyncio.get_running_loop()
        descriptor = self._output.fileno()
        readable = asyncio.Event()
        rest = b""
        loop.add_reader(descriptor, readable.set)
        try:
            while True:
                await readable.wait()
                readable.clear()
                data = os.read(descriptor, READ_BYTES)
                *lines, rest = (rest + data).split(b"\n")
                if not data and rest:
                    lines.append(rest)
                for line in lines:
                    text = line.decode("utf-8", "replace").rstrip()
                    self.said.append(text)
                    say(f"{self.name:<4}{text}")
                if not data:
                    break
        finally:
            loop.remove_reader(descriptor)
            self._output.close()
        while self.running:  # noqa: ASYNC110 - its output ended, so this takes a moment at most
            await asyncio.sleep(GONE_S)
        if not self._told_to_end:
            say(f"{self.name:<4}ended {_how(self._process.exitcode)}; nobody restarts it")

    def signal(self, number: signal.Signals) -> None:
        self._told_to_end = True
        if self.running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class DevNode(DevProcess):
    def __init__(
        self,
        name: str,
        role: str,
        port: int,
        page: str,
        words: Sequence[str],
        dc: str = "local",
        outer_port: int = 0,
    ) -> None:
        """`outer_port`: the one that others are told; 0: its own."""
        super().__init__(name)
        self.role = role
        self.dc = dc
        self.port = port
        self.outer_port = outer_port or port
        self.page = page
        self.words = [role, "--id", name, "--dc", dc]
        self.words += ["--bind", f"127.0.0.1:{port}", "--metrics", page]
        self.words += words

    def flags(self) -> dict[str, str | list[str]]:
        """As the command reads its words."""
        said: dict[str, str | list[str]] = {}
        words = iter(self.words[1:])
        for word in words:
            flag, given, value = word.partition("=")
            name = flag.removeprefix("--").replace("-", "_")
            value = value if given else next(words)
            if name in REPEATABLE:
                said[name] = [*said.get(name, ()), value]
            else:
                said[name] = value
        return said

    def work(self) -> Callable[[], int]:
        return partial(_command, self.words)


class DevRelay(DevProcess):
    """What stands between datacenters; started when the processes of all nodes are known."""

    def __init__(self, file: Path, links: str, names: list[str], nodes: Sequence[DevNode]) -> None:
        super().__init__("wan")
        self._file = file
        self._given = (links, names)
        self._nodes = nodes

    def work(self) -> Callable[[], int]:
        from hyperscale.cli.dev_relay import Place, serve

        self._file.write_text(f"{self._given[0]}\n")
        places = [
            Place(node.name, node.dc, node.pid, node.port, node.outer_port) for node in self._nodes
        ]
        return partial(serve, self._file, *self._given, places)


def _command(words: list[str]) -> int:
    from hyperscale.cli.app import execute

    return execute(words)


def _live(
    work: Callable[[], int],
    lifeline: Connection,
    parents_end: Connection,
    output: Connection,
    environ: dict[str, str],
) -> None:
    """In the child."""
    parents_end.close()
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for descriptor in (1, 2):
        os.dup2(output.fileno(), descriptor)
    os.environ.update(environ)
    os.environ[LIFELINE] = str(lifeline.fileno())
    sys.exit(work())


def _how(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    with suppress(ValueError):
        return f"by {signal.Signals(-code).name}"
    return f"by signal {-code}"
