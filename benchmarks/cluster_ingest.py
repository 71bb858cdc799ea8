"""A manager with 1,000 simulated workers that report ten times a second: does one core hold it?

A part of benchmarks/cluster.py. The workers (cluster_workers.py) speak the real protocol from the
other core; a client watches the job, so that windows are merged and sent as in life.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from contenders import HYPERSCALE
from harness import (
    CLIENT_CORE,
    HERE,
    TARGET_CORE,
    Figure,
    failed,
    note,
    on_core,
    resident_bytes,
    wait_for,
)

from hyperscale.errors import HyperscaleError
from hyperscale.nodes.client.client import connect
from hyperscale.nodes.client.settings import read_cluster
from hyperscale.runtime.real import RealHost

WORKERS = 1_000
REPORTS_PER_S = 10
GROWTH_MAX = 0.05
HELD = 0.95  # of what is due: the clock of a simulated worker is not exact either


def free_port() -> int:
    """With room for a few nodes behind it, below the ports of outgoing connections."""
    while True:
        port = random.randrange(20_000, 32_000, 10)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


MADE_UP = """
from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse

class MadeUp(Workflow):
    vus = {workers}
    duration = "{seconds}s"

    @step()
    async def get(self, url: URL = "http://127.0.0.1:1/") -> HTTPResponse:
        return await self.client.http.get(url)
"""


def ingest(options: argparse.Namespace) -> list[Figure]:
    what = f"{WORKERS:,} workers x {REPORTS_PER_S} reports/s on one core"
    with TemporaryDirectory() as name, manager_alone(Path(name)) as (manager, port):
        folder = Path(name)
        file = folder / "made_up.py"
        file.write_text(MADE_UP.format(workers=WORKERS, seconds=options.ingest_seconds + 60))
        script = [sys.executable, str(HERE / "cluster_workers.py"), str(port), str(WORKERS)]
        with on_core(TARGET_CORE):
            workers = subprocess.Popen(
                [*script, str(options.ingest_seconds)], stdout=subprocess.PIPE, text=True
            )
        assert workers.stdout is not None
        try:
            workers.stdout.readline()
            submit = [HYPERSCALE.path(), "submit", str(file), "--detach"]
            where = ["--cluster", f"127.0.0.1:{port}"]
            done = subprocess.run(
                [*submit, *where], cwd=folder, check=True, capture_output=True, text=True
            )
            watcher = Watcher(port, done.stdout.strip())
            seen = []
            for line in workers.stdout:
                size_mb = resident_bytes(manager) / 2**20
                seen.append({**json.loads(line), "manager_mb": size_mb, "window": watcher.index})
                note(f"  {seen[-1]}")
        finally:
            workers.kill()
            workers.wait()
    return ingest_figures(what, [look for look in seen if look["running"] == WORKERS])


class Watcher:
    """A client that watches the job: how many windows it has been given."""

    def __init__(self, port: int, job_id: str) -> None:
        self.index = 0
        self._port = port
        self._job_id = job_id
        threading.Thread(target=lambda: asyncio.run(self._watch()), daemon=True).start()

    async def _watch(self) -> None:
        where = read_cluster({"manager": [f"127.0.0.1:{self._port}"]}, {}, {})
        async with RealHost("client", os.devnull) as host:
            cluster = connect(host, where)
            with contextlib.suppress(HyperscaleError):  # the manager ends before we do
                async for update in cluster.follow(self._job_id):
                    for window in update.windows:
                        self.index = window.index


def ingest_figures(what: str, seen: list[dict[str, float]]) -> list[Figure]:
    if len(seen) < 20:
        return [failed(what, "held", "not all workers came to run")]
    first, last = seen[5], seen[-1]
    took_s = last["at"] - first["at"]
    rate = (last["answered"] - first["answered"]) / took_s
    refused = last["failed"] - first["failed"]
    windows = (last["window"] - first["window"]) / took_s
    half = len(seen) // 2
    growth = seen[-1]["manager_mb"] / seen[half]["manager_mb"] - 1
    held = rate >= HELD * WORKERS * REPORTS_PER_S and not refused
    return [
        Figure(what, "held", f"{rate:,.0f} reports/s, {refused:.0f} refused", held),
        Figure(
            "windows of 100 ms that a watcher gets meanwhile",
            "10 a second",
            f"{windows:.1f} a second",
            windows >= HELD * 10,
        ),
        Figure(
            "manager's memory meanwhile, second half",
            f"± {GROWTH_MAX:.0%}",
            f"{growth:+.1%} ({seen[-1]['manager_mb']:.0f} MB)",
            abs(growth) <= GROWTH_MAX,
        ),
    ]


@contextlib.contextmanager
def manager_alone(folder: Path) -> Iterator[tuple[int, int]]:
    port = free_port()
    command = [HYPERSCALE.path(), "manager", "--id", "m1", "--voters", "m1", "--plaintext"]
    command += ["--bind", f"127.0.0.1:{port}", "--data", str(folder / "m1")]
    with on_core(CLIENT_CORE):
        process = subprocess.Popen([*command, "--log", str(folder / "m1.log")])
    try:
        log = folder / "m1.log"
        wait_for(lambda: log.exists() and '"leading"' in log.read_text(), "a leader")
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(30)
