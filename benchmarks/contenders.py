"""How each tool is started for the same load, and how its rate is taken.

Every tool gets its fastest honest setting: one process or thread on the client's core, keep-alive
connections, no think time, nothing printed while it runs, no certificate checked. An answer other
than 2xx spoils a run.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
from harness import (
    CLIENT_CORE,
    HERE,
    NotMeasured,
    cpu_seconds,
    last_words,
    note,
    on_core,
    wait_for,
)
from targets import Target, rate

SETTLE_S = 1.0
AFTER_S = 1.0  # within this time after the window the load must be seen to go on
MORE_SLACK_S = 6.0
PEERS = HERE / "peers"
DRAWN_BYTES_MIN = 10_000  # a view that drew less in a run was not really on


SIX = ["Browse", "Search", "View", "Order", "Pay", "Leave"]
WORKFLOWS_FILES = {
    "weighted": "workflows_weighted.py",
    "http2": "workflows_protocols.py",
    "http3": "workflows_protocols.py",
    "grpc": "workflows_protocols.py",
}
WRK_OPTIONS = {
    "fresh": ["-H", "Connection: close"],
    "gzip": ["-H", "Accept-Encoding: gzip"],
    "post": ["-s", str(PEERS / "wrk_post.lua")],
}


@dataclass(frozen=True)
class Load:
    flow: str  # names our workflow and the peers' scripts; "six" is the six workflows at once
    vus: int
    window_s: float
    slack_s: float = 2.0  # for the tool to connect everyone and to be looked at after the window
    path: str = "/"
    keeps_connections: bool = True
    processes: int = 1  # of Hyperscale, a core each as far as there are any

    @property
    def duration_s(self) -> int:
        return round(self.window_s + SETTLE_S + self.slack_s)


@dataclass(frozen=True)
class Contender:
    name: str
    program: str
    arguments: Callable[[Load, str, Path], list[str]]  # load, target's URL, a folder of its own
    complaint: Callable[[str, Path], str]  # why the run does not count, from its output, or ""
    slack_s: float = 0.0  # what it takes longer than others until everyone is at work
    terminal: bool = False
    checkout: Path | None = None  # of other code of ours to run instead

    def path(self) -> str:
        beside_us = Path(sys.executable).parent / self.program
        found = str(beside_us) if beside_us.exists() else shutil.which(self.program)
        if found is None:
            raise NotMeasured(f"{self.program} is not installed")
        return found


def _wrk(load: Load, url: str, folder: Path) -> list[str]:
    size = ["-t1", f"-c{load.vus}", f"-d{load.duration_s}s"]
    return [*size, *WRK_OPTIONS.get(load.flow, []), f"{url}{load.path}"]


def _k6(load: Load, url: str, folder: Path) -> list[str]:
    return [
        "run",
        "--quiet",
        "--no-summary",
        "--no-usage-report",
        str(PEERS / f"k6_{load.flow}.js"),
    ]


def _locust(load: Load, url: str, folder: Path) -> list[str]:
    script = str(PEERS / f"locust_{load.flow}.py")
    users = ["-u", str(load.vus), "-r", str(max(load.vus, 1000)), "-t", f"{load.duration_s}s"]
    return ["-f", script, "--host", url, "--headless", "--only-summary", "-L", "ERROR", *users]


def _hyperscale(ui: str) -> Callable[[Load, str, Path], list[str]]:
    def arguments(load: Load, url: str, folder: Path) -> list[str]:
        file = HERE / WORKFLOWS_FILES.get(load.flow, "workflows.py")
        named = SIX if load.flow == "six" else [load.flow.title().replace("_", "")]
        size = ["-u", str(load.vus), "-d", f"{load.duration_s}s", "-w", str(load.processes)]
        out = ["--ui", ui, "--json", str(folder / "results.json")]
        return ["run", str(file), *named, *size, *out]

    return arguments


def _nothing(output: str, folder: Path) -> str:
    return ""


def _wrk_complaint(output: str, folder: Path) -> str:
    bad = [
        line.strip() for line in output.splitlines() if "Non-2xx" in line or "Socket err" in line
    ]
    return "; ".join(bad)


def _hyperscale_complaint(output: str, folder: Path) -> str:
    results = read_results(folder)
    failed = sum(step["failed"] for flow in results["workflows"] for step in flow["steps"])
    return f"{failed} requests failed" if failed else ""


def read_results(folder: Path) -> Any:
    return json.loads((folder / "results.json").read_text())


WRK = Contender("wrk", "wrk", _wrk, _wrk_complaint)
K6 = Contender("k6", "k6", _k6, _nothing)
# With TLS each of Locust's users reads the system's authorities before it connects.
LOCUST = Contender("Locust", "locust", _locust, _nothing, slack_s=5.0)
HYPERSCALE = Contender("hyperscale", "hyperscale", _hyperscale("none"), _hyperscale_complaint)
IN_TERMINAL = Contender(
    "hyperscale in a terminal",
    "hyperscale",
    _hyperscale("none"),
    _hyperscale_complaint,
    terminal=True,
)
WITH_VIEW = Contender(
    "hyperscale with the view",
    "hyperscale",
    _hyperscale("full"),
    _hyperscale_complaint,
    terminal=True,
)


def before(checkout: str) -> Contender:
    """The same command line, run by the code of another checkout."""
    if not (Path(checkout) / "src" / "hyperscale").is_dir():
        raise NotMeasured(f"{checkout} is no checkout of Hyperscale")
    return replace(HYPERSCALE, name="before", checkout=Path(checkout).resolve())


class Terminal:
    """A pseudo-terminal of a usual size whose screen is read and counted, so drawing costs what
    it costs a person."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 150, 0, 0))
        self.drawn_bytes = 0
        self.tail = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while chunk := os.read(self.master, 65536):
                self.drawn_bytes += len(chunk)
                self.tail = (self.tail + chunk)[-4000:]

    def close(self) -> None:
        os.close(self.slave)
        self._reader.join(5)
        os.close(self.master)


def _own_the_terminal() -> None:
    """As in a real terminal: the view keeps off one whose foreground job is another."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Run:
    """A started tool: its process while it runs, and its verdict when it ends."""

    def __init__(self, contender: Contender, load: Load, url: str, folder: Path) -> None:
        self.contender, self.load, self.folder = contender, load, folder
        self.screen = Terminal() if contender.terminal else None
        self.output = (folder / "output").open("w+b")
        stream: Any = self.screen.slave if self.screen else self.output
        command = [contender.path(), *contender.arguments(load, url, folder)]
        with on_core(*range(CLIENT_CORE, CLIENT_CORE + load.processes)):
            self.process = subprocess.Popen(
                command,
                stdin=stream if self.screen else subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                cwd=folder,
                start_new_session=self.screen is not None,
                preexec_fn=_own_the_terminal if self.screen else None,
                env={
                    **os.environ,
                    "BENCH_TARGET": url,
                    "BENCH_PATH": load.path,
                    "BENCH_VUS": str(load.vus),
                    "BENCH_DURATION": f"{load.duration_s}s",
                    "GOMAXPROCS": "1",
                    "TERM": "xterm-256color",
                    **self._code(),
                },
            )

    def _code(self) -> dict[str, str]:
        checkout = self.contender.checkout
        return {"PYTHONPATH": str(checkout / "src")} if checkout else {}

    def said(self) -> str:
        if self.screen:
            return self.screen.tail.decode(errors="replace")
        self.output.seek(0)
        return self.output.read().decode(errors="replace")

    def finish(self) -> None:
        """Wait for the end and refuse a run that went wrong."""
        name = self.contender.name
        try:
            code = self.process.wait(self.load.duration_s + 60)
        except subprocess.TimeoutExpired:
            raise NotMeasured(f"{name} did not end") from None
        if code:
            raise NotMeasured(f"{name} ended with exit code {code}: {last_words(self.said())}")
        if complaint := self.contender.complaint(self.said(), self.folder):
            raise NotMeasured(f"{name}: {complaint}")
        drawn = self.screen.drawn_bytes if self.screen else 0
        if self.contender is WITH_VIEW and drawn < DRAWN_BYTES_MIN:
            raise NotMeasured(f"the view drew only {drawn} bytes")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.screen:
            self.screen.close()
        self.output.close()


class EndedEarly(NotMeasured):
    """The load was over before the window was."""


@contextlib.contextmanager
def running(contender: Contender, load: Load, target: Target) -> Iterator[Run]:
    """The tool under way with all its users at work."""
    load = replace(load, slack_s=load.slack_s + contender.slack_s)
    with tempfile.TemporaryDirectory(prefix="bench-run-") as folder:
        idle = target.counts()
        most = 0
        run = Run(contender, load, target.url, Path(folder))

        def at_work() -> bool:
            """Everyone connected, and with TLS, where that is not all, served once on average."""
            nonlocal most
            if run.process.poll() is not None:
                run.finish()
                raise EndedEarly(f"{contender.name} connected {most} of {load.vus} users")
            now = target.counts()
            most = max(most, now.connections - idle.connections)
            connected = most >= load.vus or not load.keeps_connections
            return connected and now.requests - idle.requests >= 2 * load.vus

        try:
            wait_for(at_work, f"the connection of {load.vus} users by {contender.name}", 60)
            yield run
        finally:
            run.close()


@dataclass(frozen=True)
class Window:
    """What happened in the middle of a load."""

    rate: float  # requests per second, counted by the target
    cpu_share: float  # of one core, all processes of the tool, in the kernel too

    @property
    def per_cpu_second(self) -> float:
        return self.rate / self.cpu_share


def measured(contender: Contender, load: Load, target: Target) -> Window:
    """On a busy machine a tool may take longer to begin than it was given: it gets more, once."""
    try:
        return _measured(contender, load, target)
    except EndedEarly as error:
        note(f"  {error}: again with more time")
        return _measured(contender, replace(load, slack_s=load.slack_s + MORE_SLACK_S), target)


def _measured(contender: Contender, load: Load, target: Target) -> Window:
    with running(contender, load, target) as run:
        time.sleep(SETTLE_S)
        used, began = cpu_seconds(run.process.pid), time.perf_counter()
        reached = rate(target, load.window_s)
        early = EndedEarly(f"the load of {contender.name} ended inside the window")
        try:
            used, took = cpu_seconds(run.process.pid) - used, time.perf_counter() - began
        except psutil.NoSuchProcess:
            raise early from None
        if not _goes_on(run, target):
            raise early
        run.finish()
        return Window(reached, used / took)


def _goes_on(run: Run, target: Target) -> bool:
    """Whether more requests arrive than our own looks, which are counted too."""
    first, until = target.requests(), time.monotonic() + AFTER_S
    looks = 0
    while run.process.poll() is None and time.monotonic() < until:
        looks += 1
        if target.requests() - first > 2 * looks:
            return True
        time.sleep(0.02)
    return False


def measured_rate(contender: Contender, load: Load, target: Target) -> float:
    return measured(contender, load, target).rate
