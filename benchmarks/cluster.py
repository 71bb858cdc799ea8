"""A cluster against one machine: throughput, waiting times, failover, a busy manager, many jobs.

    python benchmarks/cluster.py                      everything (a quarter of an hour)
    python benchmarks/cluster.py throughput failover  some of it
    python benchmarks/cluster.py jobs --jobs 200      shorter

The clusters are those of `hyperscale dev`, with TLS; the busy manager has 1,000 simulated workers
that speak the real protocol from the other core (cluster_workers.py). A Markdown table on stdout.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from cluster_ingest import free_port, ingest
from contenders import HYPERSCALE, Contender, Load, measured_rate
from harness import (
    CLIENT_CORE,
    HERE,
    Figure,
    NotMeasured,
    Part,
    interleave,
    last_words,
    measure,
    note,
    on_core,
    parser_of,
    resident_bytes,
    wait_for,
)
from startup import first_byte_server
from targets import Embedded, Target, find_target

VUS = 64
SHARE_MIN = 0.93
FIRST_REQUEST_S_MAX = 1.5
READY_S_MAX = 3.0
FAILOVER_S_MAX = 8.0
# The target is asked this often how far it is; a gap is two looks in a row without a request.
LOOK_S = 0.1
GROWTH_MAX = 0.05


@dataclass
class Dev:
    """A running `hyperscale dev`."""

    process: subprocess.Popen[str]
    port: int
    ready_s: float
    nodes: dict[str, int]  # name, process

    @property
    def where(self) -> list[str]:
        return ["--cluster", f"127.0.0.1:{self.port}"]

    def ask(self, *words: str) -> str:
        command = [HYPERSCALE.path(), *words, "--manager", f"127.0.0.1:{self.port}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise NotMeasured(last_words(done.stderr))
        return done.stdout


@contextlib.contextmanager
def dev(managers: int, workers: int, core: int | None = None) -> Iterator[Dev]:
    """With all its processes on one core, or wherever there is room."""
    port = free_port()
    command = [HYPERSCALE.path(), "dev", "--managers", str(managers), "--workers", str(workers)]
    place = contextlib.nullcontext() if core is None else on_core(core)
    began = time.monotonic()
    with place:
        process = subprocess.Popen(
            [*command, "--cores", "1", "--port", str(port)], stderr=subprocess.PIPE, text=True
        )
    assert process.stderr is not None
    try:
        said = ""
        for line in process.stderr:
            said += line
            if line.startswith("ready: "):
                break
        else:
            raise NotMeasured(f"hyperscale dev ended: {last_words(said)}")
        ready_s = time.monotonic() - began
        nodes = re.findall(r"^(\w+) +127\S+  process (\d+)$", said, re.MULTILINE)
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield Dev(process, port, ready_s, {name: int(pid) for name, pid in nodes})
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


# -- throughput ----------------------------------------------------------------------------------


def on_cluster(running: Dev) -> Contender:
    def arguments(load: Load, url: str, folder: Path) -> list[str]:
        local = HYPERSCALE.arguments(load, url, folder)
        cut = local.index("-w")  # the cluster decides about cores
        return [*local[:cut], *local[cut + 2 :], *running.where, "-e", f"BENCH_TARGET={url}"]

    return Contender("cluster", HYPERSCALE.program, arguments, HYPERSCALE.complaint)


def throughput(options: argparse.Namespace) -> list[Figure]:
    """Everything but the target on one core: what the cluster adds is paid there, too."""
    load = Load("get", VUS, options.seconds)
    with find_target() as target, dev(1, 1, CLIENT_CORE) as running:
        turns: list[tuple[str, Callable[[], float]]] = [
            (label, functools.partial(measured_rate, tool, load, target))
            for label, tool in (("cluster", on_cluster(running)), ("local", HYPERSCALE))
        ]
        taken = interleave(turns, options.rounds)
    note(taken.report("requests/s"))
    return [taken.figure("throughput, 1 manager, 1 worker, 1 core", "cluster", "local", SHARE_MIN)]


# -- waiting -------------------------------------------------------------------------------------


def seconds(what: str, times: list[float], limit_s: float) -> Figure:
    middle = statistics.median(times)
    measured = f"{middle:.2f} s ({min(times):.2f}–{max(times):.2f})"
    note(f"  {what}: {measured}")
    return Figure(what, f"≤ {limit_s:g} s", measured, middle <= limit_s)


def waiting(options: argparse.Namespace) -> list[Figure]:
    ready, first = [], []
    for _ in range(options.rounds):
        with dev(3, 2) as running, TemporaryDirectory() as folder:
            ready.append(running.ready_s)
            first.append(first_request(running, Path(folder)))
    return [
        seconds("hyperscale dev ready, 3 managers, 2 workers", ready, READY_S_MAX),
        seconds("enter to first request on a cluster", first, FIRST_REQUEST_S_MAX),
    ]


def first_request(running: Dev, folder: Path) -> float:
    command = [HYPERSCALE.path(), "run", str(HERE / "workflows.py"), "Get", "--ui", "none"]
    with first_byte_server() as server:
        env = {**os.environ, "BENCH_TARGET": server.url}
        command += ["-u", "1", "-i", "1", *running.where, "-e", f"BENCH_TARGET={server.url}"]
        began = time.perf_counter()
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=60
        )
        if done.returncode or server.at is None:
            raise NotMeasured(last_words(done.stderr))
        return server.at - began


# -- failover ------------------------------------------------------------------------------------


def failover(options: argparse.Namespace) -> list[Figure]:
    takeovers, gaps = [], []
    for _ in range(options.rounds):
        with Embedded() as target, dev(3, 2) as running:  # it does not count our own looks
            took_s, gap_s = one_failover(target, running)
            note(f"  new leader after {took_s:.1f} s, longest gap {gap_s:.2f} s")
            takeovers.append(took_s)
            gaps.append(gap_s)
    gap_s = max(gaps)
    return [
        seconds("leader killed to new leader serving", takeovers, FAILOVER_S_MAX),
        Figure(
            "load gap at the target meanwhile",
            "0 s",
            f"{gap_s:.1f} s in looks every {LOOK_S:g} s",
            gap_s == 0,
        ),
    ]


def one_failover(target: Target, running: Dev) -> tuple[float, float]:
    env = {**os.environ, "BENCH_TARGET": target.url}
    command = [HYPERSCALE.path(), "submit", str(HERE / "workflows.py"), "Get", "--detach"]
    command += ["-u", "4", "-d", "30s", "-e", f"BENCH_TARGET={target.url}"]
    subprocess.run([*command, *running.where], env=env, check=True, capture_output=True)
    start = target.requests()
    wait_for(lambda: target.requests() > start + 100, "load")
    leader = json.loads(running.ask("workers", "--json"))["leader"]
    killed_at = time.monotonic()
    os.kill(running.nodes[leader], signal.SIGKILL)
    served: list[float] = []

    def ask_on() -> None:
        running.ask("workers", "--json")
        served.append(time.monotonic())

    asking = threading.Thread(target=ask_on, daemon=True)
    asking.start()
    counts = [target.requests()]
    while asking.is_alive():
        time.sleep(LOOK_S)
        counts.append(target.requests())
    if not served:
        raise NotMeasured("no new leader answered")
    still = longest = 0
    for before, now in pairwise(counts):
        still = still + 1 if now == before else 0
        longest = max(longest, still)
    return served[0] - killed_at, longest * LOOK_S if longest > 1 else 0.0


# -- many jobs -----------------------------------------------------------------------------------


def jobs(options: argparse.Namespace) -> list[Figure]:
    """One after the other; memory after the first half against memory at the end."""
    with find_target() as target, dev(1, 1) as running:
        command = [HYPERSCALE.path(), "submit", str(HERE / "workflows.py"), "Get", "--ui", "none"]
        command += ["-u", "1", "-i", "1", "-e", f"BENCH_TARGET={target.url}", *running.where]
        env = {**os.environ, "BENCH_TARGET": target.url}
        sizes: dict[str, list[int]] = {name: [] for name in running.nodes}
        for number in range(1, options.jobs + 1):
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
            if done.returncode:
                raise NotMeasured(f"job {number}: {last_words(done.stderr)}")
            for name, pid in running.nodes.items():
                sizes[name].append(resident_bytes(pid))
            if number % 50 == 0:
                told = ", ".join(f"{n} {s[-1] / 2**20:.0f} MB" for n, s in sizes.items())
                note(f"  {number} jobs: {told}")
    return [memory_figure(name, series) for name, series in sizes.items()]


def memory_figure(name: str, series: list[int]) -> Figure:
    """Medians of fifty: a process that starts or ends just then does not decide."""
    width = max(1, min(50, len(series) // 4))
    middle = len(series) // 2
    before = statistics.median(series[middle : middle + width])
    after = statistics.median(series[-width:])
    growth = after / before - 1
    return Figure(
        f"memory of {name}, last {len(series) - middle} of {len(series)} jobs",
        f"± {GROWTH_MAX:.0%}",
        f"{growth:+.1%} ({before / 2**20:.1f} → {after / 2**20:.1f} MB)",
        abs(growth) <= GROWTH_MAX,
    )


PARTS: dict[str, Part] = {
    "throughput": throughput,
    "waiting": waiting,
    "failover": failover,
    "ingest": ingest,
    "jobs": jobs,
}


def main() -> int:
    parser = parser_of(__doc__, PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a throughput window")
    parser.add_argument("--ingest-seconds", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=1_000)
    return measure(parser, parser.parse_args(), PARTS)


if __name__ == "__main__":
    sys.exit(main())
