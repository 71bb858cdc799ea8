"""A manager with 1,000 simulated workers that report ten times a second: does one core hold it?

    python benchmarks/cluster_ingest.py [--seconds 60]     exit code 1 when a figure is missed

Also a part of benchmarks/cluster.py. The workers (cluster_workers.py) speak the real protocol over
1,000 connections from the other core; a client watches the job, so that windows are merged and
sent as in life. What counts is the manager's CPU time: on a machine with other work, rates say
more about the neighbours.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from contenders import HYPERSCALE
from harness import (
    CLIENT_CORE,
    HERE,
    TARGET_CORE,
    Figure,
    failed,
    machine,
    note,
    on_core,
    raise_open_file_limit,
    resident_bytes,
    table,
    wait_for,
)

from hyperscale.errors import HyperscaleError
from hyperscale.nodes.client.client import connect
from hyperscale.nodes.client.settings import read_cluster
from hyperscale.runtime.real import RealHost

WORKERS = 1_000
REPORTS_PER_S = 10
GROWTH_MAX = 0.05
HELD = 0.99  # of what is due: the clock of a simulated worker is not exact either
CPU_US_MAX = 95.0  # with 10,000 a second a twentieth of the core is then left
WINDOW_S = 0.1
LATE_S_MAX = WINDOW_S  # a window is on time when it comes before the next is due
# Until every part has as many reports waiting to be added up as it ever has, and as many intervals
# in its timeline: ten of ten seconds.
WARM_UP_S = 100
LOOKS_MIN = 10


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
        file.write_text(MADE_UP.format(workers=WORKERS, seconds=options.ingest_seconds + 120))
        script = [sys.executable, str(HERE / "cluster_workers.py"), str(port), str(WORKERS)]
        with on_core(TARGET_CORE):
            workers = subprocess.Popen(
                [*script, str(options.ingest_seconds + WARM_UP_S)],
                stdout=subprocess.PIPE,
                text=True,
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
                if not line.startswith("{"):
                    note(f"  {line.rstrip()}")  # what a simulated worker died of
                    continue
                look = json.loads(line)
                look["manager_mb"] = resident_bytes(manager) / 2**20
                look["manager_cpu_s"] = sum(psutil.Process(manager).cpu_times()[:2])
                look["manager_waited_s"] = waited_s(manager)
                look["windows"] = len(watcher.came_at)
                seen.append(look)
                note(f"  {look}")
        finally:
            workers.kill()
            workers.wait()
    running = [look for look in seen if look["running"] == WORKERS]
    if len(running) < WARM_UP_S + LOOKS_MIN:
        most = max((look["running"] for look in seen), default=0)
        return [failed(what, "held", f"{most:g} workers came to run, for {len(running)} s")]
    return ingest_figures(what, running[WARM_UP_S:], watcher.came_at)


def waited_s(pid: int) -> float:
    """How long its main thread was ready to run and had no core, where the system tells."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    return 0.0


class Watcher:
    """A client that watches the job: when each window came to it."""

    def __init__(self, port: int, job_id: str) -> None:
        self.came_at: list[float] = []
        self._port = port
        self._job_id = job_id
        threading.Thread(target=lambda: asyncio.run(self._watch()), daemon=True).start()

    async def _watch(self) -> None:
        where = read_cluster({"manager": [f"127.0.0.1:{self._port}"]}, {}, {})
        async with RealHost("client", os.devnull) as host:
            cluster = connect(host, where)
            with contextlib.suppress(HyperscaleError):  # the manager ends before we do
                async for update in cluster.follow(self._job_id):
                    self.came_at += [time.monotonic()] * len(update.windows)


def ingest_figures(what: str, seen: list[dict[str, float]], came_at: list[float]) -> list[Figure]:
    def grown(name: str) -> float:
        return seen[-1][name] - seen[0][name]

    took_s, taken = grown("at"), grown("taken")
    offered_per_s, taken_per_s = grown("due") / took_s, taken / took_s
    cpu_us = grown("manager_cpu_s") / taken * 1e6 if taken else float("inf")
    came = came_at[int(seen[0]["windows"]) : int(seen[-1]["windows"])]
    late_s = [max(0.0, after - before - WINDOW_S) for before, after in pairwise(came)]
    late_p99_s = statistics.quantiles(late_s, n=100)[98] if len(late_s) > 1 else float("inf")
    half = len(seen) // 2
    first_mb, second_mb = (
        statistics.median(look["manager_mb"] for look in looks)
        for looks in (seen[:half], seen[half:])
    )
    growth = second_mb / first_mb - 1
    return [
        Figure(
            what,
            f"≥ {HELD:.0%}, none refused",
            f"{taken_per_s:,.0f} of {offered_per_s:,.0f}/s taken, {grown('refused'):,.0f} refused, "
            f"{grown('slowed'):,.0f} answers asked for less, {grown('again'):,.0f} told again",
            taken_per_s >= HELD * WORKERS * REPORTS_PER_S and not grown("refused"),
        ),
        Figure(
            "manager's CPU time for a report, all in",
            f"≤ {CPU_US_MAX:g} µs",
            f"{cpu_us:.0f} µs ({grown('manager_cpu_s') / took_s:.0%} of a core; for another "
            f"{grown('manager_waited_s') / took_s:.0%} of the time its neighbours had the core)",
            cpu_us <= CPU_US_MAX,
        ),
        Figure(
            "windows of 100 ms that a watcher gets meanwhile, p99 late by",
            f"≤ {LATE_S_MAX * 1000:g} ms",
            f"{late_p99_s * 1000:.0f} ms ({len(came) / took_s:.1f} a second)",
            late_p99_s <= LATE_S_MAX,
        ),
        Figure(
            "manager's memory meanwhile, second half against first",
            f"± {GROWTH_MAX:.0%}",
            f"{growth:+.1%} ({first_mb:.0f} MB, {second_mb:.0f} MB)",
            abs(growth) <= GROWTH_MAX,
        ),
    ]


@contextlib.contextmanager
def manager_alone(folder: Path) -> Iterator[tuple[int, int]]:
    port = free_port()
    command = [HYPERSCALE.path(), "manager", "--id", "m1", "--voters", "m1", "--plaintext"]
    command += ["--cluster", "default", "--env", "dev"]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", dest="ingest_seconds", type=int, default=60)
    options = parser.parse_args()
    raise_open_file_limit()
    figures = ingest(options)
    print(f"{machine()}\n\n{table(figures)}")
    sys.exit(any(figure.ok is False for figure in figures))


if __name__ == "__main__":
    main()
