"""Load of three datacenters: how far apart it begins, and how long after enter was pressed.

    python benchmarks/gates_start.py --rounds 10

All nodes are processes of this machine (`hyperscale dev --datacenters 3 --gates 3`). The target
notes when it first hears each datacenter, whose users have numbers of their own. Links are not
delayed: what is seen is what managers, workers and a busy machine add to the round trip.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import startup
from contenders import HYPERSCALE
from harness import Figure, NotMeasured, last_words, machine, note, table
from startup import ANSWER

DATACENTERS = 3
APART_MS_MAX = 100.0
FIRST_REQUEST_S_MAX = 2.0
PORTS = 2 * (3 + 2 * DATACENTERS)
READY_S = 60.0
TEST = """
from hyperscale import Workflow, step
from hyperscale.testing import HTTPResponse


class Start(Workflow):
    vus = 1
    iterations = 20

    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get(f"{url}/{{self.vu_id}}")
"""


class FirstOfEach:
    """A server that notes when each path was first asked for."""

    def __init__(self) -> None:
        self.at: dict[bytes, float] = {}
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            while asked := connection.recv(65536):
                self.at.setdefault(asked.split(b" ", 2)[1], time.perf_counter())
                connection.sendall(ANSWER)


def free_ports() -> int:
    """The first of as many in a row as nobody listens on."""
    for first in range(21_000, 32_000, PORTS):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + PORTS):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise NotMeasured("no free ports")


@contextlib.contextmanager
def world(folder: Path) -> Iterator[int]:
    port = free_ports()
    words = ["--datacenters", DATACENTERS, "--gates", 3, "--cores", 1, "--data", folder / "data"]
    command = [HYPERSCALE.path(), "dev", "--port", port, *words]
    said = folder / "dev.log"
    with said.open("w") as log:
        dev = subprocess.Popen(
            list(map(str, command)), cwd=folder, stderr=log, stdout=log, env=_environment(folder)
        )
    try:
        until = time.monotonic() + READY_S
        while "ready: " not in said.read_text():
            if dev.poll() is not None or time.monotonic() > until:
                raise NotMeasured(last_words(said.read_text()))
            time.sleep(0.1)
        yield port
    finally:
        dev.send_signal(signal.SIGINT)
        dev.wait(READY_S)


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "XDG_RUNTIME_DIR": str(folder), "TMPDIR": str(folder)}


def once(folder: Path, port: int) -> tuple[float, float]:
    """From the first to the last datacenter in ms, and from enter to the first in s."""
    target = FirstOfEach()
    file = folder / "start.py"
    file.write_text(TEST.format(url=target.url))
    command = [HYPERSCALE.path(), "submit", str(file), "--cluster", f"127.0.0.1:{port}"]
    began = time.perf_counter()
    submitting = subprocess.run(
        [*command, "--detach"],
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        text=True,
        timeout=60,
    )
    if submitting.returncode:
        raise NotMeasured(last_words(submitting.stderr))
    until = time.monotonic() + READY_S
    while len(target.at) < DATACENTERS:
        if time.monotonic() > until:
            raise NotMeasured(f"{len(target.at)} of {DATACENTERS} datacenters made load")
        time.sleep(0.01)
    target.listener.close()
    first, last = min(target.at.values()), max(target.at.values())
    return (last - first) * 1e3, first - began


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    note(machine())
    with TemporaryDirectory(prefix="bench-gates-") as name:
        folder = Path(name)
        with world(folder) as port:
            once(folder, port)  # modules compiled, connections made
            found = [(*once(folder, port), startup.once(folder)) for _ in range(rounds)]
    apart, after, alone = ([one[number] for one in found] for number in (0, 1, 2))
    middle, soon = statistics.median(apart), statistics.median(after)
    figures = [
        Figure(
            "load begins in three datacenters, from the first to the last",
            f"≤ {APART_MS_MAX:.0f} ms + half the round trip",
            f"{middle:.1f} ms ({min(apart):.1f}–{max(apart):.1f})",
            middle <= APART_MS_MAX,
        ),
        Figure(
            "enter to first request in three datacenters",
            f"≤ {FIRST_REQUEST_S_MAX:.1f} s",
            f"{soon:.2f} s ({min(after):.2f}–{max(after):.2f})",
            soon <= FIRST_REQUEST_S_MAX,
        ),
        Figure(
            "the same for a run on one machine, in turns with it",
            "–",
            f"{statistics.median(alone):.2f} s ({min(alone):.2f}–{max(alone):.2f})",
            None,
        ),
    ]
    print(table(figures))
    return int(any(figure.ok is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
