"""More than one core: what a second generator process costs, and 50,000 users on one machine.

    python benchmarks/cores.py                     both, about two minutes
    python benchmarks/cores.py processes           two processes against one, by CPU time
    python benchmarks/cores.py many --vus 50000    users who mostly wait

A process may open only so many files, and one address has only so many local ports: the many are
spread over as many generator processes and nginx workers as the limit asks for, and over eight
loopback addresses. Nothing is pinned there, as when a person runs it.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from contenders import HYPERSCALE, Load, read_results
from harness import (
    HERE,
    Figure,
    NotMeasured,
    last_words,
    measure,
    note,
    open_file_limit,
    parser_of,
    raise_open_file_limit,
    resident_bytes,
    usable_cores,
)
from races import race
from targets import Nginx, nginx_program

VUS_A_PROCESS = 64
MANY_VUS = 50_000
ADDRESSES = 8
SPARE_FILES = 100  # of a process, besides its connections
CONNECTED_S_MAX = 5.0
WORKER_CONNECTIONS_MAX = 12_500  # a worker's part may come out larger than the average
LOOK_S = 0.1
RUN_S = 30  # think time begins at 20 s: some users ask a second time


def nginx(**options: Any) -> Nginx:
    program = nginx_program()
    if program is None:
        raise NotMeasured("nginx is not installed")
    return Nginx(program, **options)


# -- two processes -------------------------------------------------------------------------------


def processes(options: argparse.Namespace) -> list[Figure]:
    target = nginx(workers=2)
    remark = ""
    if usable_cores() >= 4:
        target.cores = (2, 3)
    else:
        remark = "; the target shares a core with the second"
    turns = [
        (
            f"{count} process{'es' if count > 1 else ''}",
            HYPERSCALE,
            Load("get", VUS_A_PROCESS * count, options.seconds, processes=count),
        )
        for count in (2, 1)
    ]
    with target:
        taken = race(target, turns, options.rounds)
    print(taken.report() + "\n")
    row = taken.compare("", turns[0][0], turns[1][0])
    what = f"two generator processes, {VUS_A_PROCESS} VUs each, against one"
    measured = f"by CPU {row.by_cpu}, by rate {row.by_rate}{remark}"
    return [Figure(what, "", measured, None)]


# -- many users ----------------------------------------------------------------------------------


@dataclass
class Many:
    """What was seen of a run of many users."""

    enter_s: float = 0.0  # from the command to the first connection
    connected_s: float = 0.0  # from the first to the last
    bytes_in_use: int = 0
    requests: int = 0  # counted by the target


@contextlib.contextmanager
def started(target: Nginx, vus: int, generators: int, folder: Path) -> Iterator[Any]:
    out = ["--ui", "none", "--json", str(folder / "results.json")]
    size = ["-u", str(vus), "-d", f"{RUN_S}s", "-w", str(generators)]
    command = [HYPERSCALE.path(), "run", str(HERE / "workflows.py"), "Waiting", *size, *out]
    addresses = {"BENCH_TARGET": target.url, "BENCH_TARGETS": ",".join(target.urls)}
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **addresses}, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def watch(target: Nginx, vus: int, generators: int, folder: Path) -> Many:
    seen = Many()
    idle = target.counts()
    looks = target.looks
    entered = time.perf_counter()
    first: float | None = None
    with started(target, vus, generators, folder) as process:
        while process.poll() is None:
            now, at = target.counts(), time.perf_counter()
            connected = now.connections - idle.connections
            if first is None and connected > 0:
                first = at
                seen.enter_s = at - entered
            if not seen.connected_s and first is not None and connected >= vus:
                seen.connected_s = at - first
                note(f"  all connected {seen.connected_s:.1f} s after the first")
            with contextlib.suppress(psutil.NoSuchProcess):  # the run has just ended
                seen.bytes_in_use = max(seen.bytes_in_use, resident_bytes(process.pid))
            time.sleep(LOOK_S)
        if process.returncode:
            said = last_words((folder / "output").read_text())
            raise NotMeasured(f"exit code {process.returncode}: {said}")
    last = target.counts()
    seen.requests = last.requests - idle.requests - (target.looks - looks)
    return seen


def many(options: argparse.Namespace) -> list[Figure]:
    vus: int = options.vus
    room = open_file_limit() - SPARE_FILES
    generators = max(usable_cores(), math.ceil(vus / room))
    workers = max(1, math.ceil(vus / min(room * 3 // 4, WORKER_CONNECTIONS_MAX)))
    target = nginx(workers=workers, addresses=ADDRESSES)
    target.cores = tuple(range(usable_cores()))
    with target, TemporaryDirectory(prefix="bench-cores-") as name:
        seen = watch(target, vus, generators, Path(name))
        result = read_results(Path(name))["workflows"][0]
    return many_figures(vus, generators, workers, seen, result)


def many_figures(vus: int, generators: int, workers: int, seen: Many, result: Any) -> list[Figure]:
    what = f"{vus:,} users on one machine"
    counted = sum(step["count"] for step in result["steps"])
    lost = sum(step["failed"] for step in result["steps"])
    connected = f"{seen.connected_s:.1f} s" if seen.connected_s else "never all at once"
    limit = (
        f"{open_file_limit():,} files a process: {generators} generators, {workers} nginx workers"
    )
    return [
        Figure(f"{what}: open files", "", limit, None),
        Figure(
            f"{what}: all connected, after the first",
            f"≤ {CONNECTED_S_MAX:g} s",
            f"{connected} (the first {seen.enter_s:.1f} s after enter)",
            0 < seen.connected_s <= CONNECTED_S_MAX,
        ),
        Figure(
            f"{what}: memory of all processes",
            "",
            f"{seen.bytes_in_use / 2**20:,.0f} MB, {seen.bytes_in_use / vus / 1024:.1f} KB a user",
            None,
        ),
        Figure(f"{what}: failed requests", "0", f"{lost:,} of {counted:,}", lost == 0),
        Figure(
            f"{what}: requests counted, of those the target counted",
            "all",
            f"{counted:,} of {seen.requests:,}",
            counted == seen.requests,
        ),
    ]


PARTS: dict[str, Callable[[argparse.Namespace], list[Figure]]] = {
    "processes": processes,
    "many": many,
}


def main() -> int:
    parser = parser_of(__doc__, PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each window")
    parser.add_argument("--vus", type=int, default=MANY_VUS, help="of the many")
    options = parser.parse_args()
    raise_open_file_limit()
    return measure(parser, options, PARTS)


if __name__ == "__main__":
    sys.exit(main())
