"""Figures of the ledger of gates: how long a commit takes over a WAN, how many there are a second,
and what is left of jobs that are over.

    python benchmarks/gates.py [--jobs 100000] [--commits 400] [--events 20000]

Three replicas share this process, each with a disk of its own; a link delivers after half its round
trip. Memory is that of three gates in simulated time, in which the time to keep passes. Progress
goes to stderr, Markdown to stdout. Exit code 1 when a required figure is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import Figure, machine, note, table

from hyperscale.ledger.vsr import Entry, Groups, VsrSettings
from hyperscale.nodes.gate import events
from hyperscale.nodes.gate.events import Completed, Created, Ended
from hyperscale.nodes.gate.jobs import GateJobs, condensed
from hyperscale.runtime.host import Host
from hyperscale.runtime.real import RealHost, run
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World

NAMES = ("g1", "g2", "g3")
LINKS_MS = {("g1", "g2"): 80.0, ("g1", "g3"): 150.0, ("g2", "g3"): 230.0}
PAYLOAD = bytes(256)
IN_FLIGHT = 256
WITHIN_S = 30.0
BEYOND_LINK_MS_MAX = 10.0
EVENTS_RATE_MIN = 5_000.0
GROWTH_MAX = 0.05
JOBS_AT_ONCE = 50
KEPT_S = 300.0


class Gates:
    """Replicas that deliver to each other within this process."""

    def __init__(self, links_ms: Mapping[tuple[str, str], float]) -> None:
        self._delays = {frozenset(pair): ms / 2_000 for pair, ms in links_ms.items()}
        self.groups: dict[str, Groups] = {}
        self.jobs = {name: GateJobs() for name in NAMES}

    async def start(self, name: str, host: Host) -> None:
        self.groups[name] = groups = await Groups.open(
            *(host, "ledger", name, partial(self._send, name), partial(self._apply, host, name)),
            VsrSettings(),
            closed=self.jobs[name].forget,
        )
        host.tasks.spawn("ledger", groups.run())

    def create(self, group: str) -> None:
        for groups in self.groups.values():
            groups.create(group, NAMES)

    def _send(self, sender: str, to: str, data: bytes) -> None:
        delay_s = self._delays.get(frozenset((sender, to)), 0.0)
        loop = asyncio.get_running_loop()
        loop.call_later(delay_s, lambda: self.groups[to].receive(sender, data))

    def _apply(self, host: Host, name: str, group: str, entry: Entry) -> None:
        if entry.payload and entry.payload != PAYLOAD:
            event = events.decode(entry.payload)
            self.jobs[name].apply(host.clock.now(), group, event)
            if isinstance(event, Completed):
                self.groups[name].condense(group, _less)


def _less(payload: bytes) -> bytes:
    return events.encode(condensed(events.decode(payload))) if payload else payload


async def with_gates(
    links_ms: Mapping[tuple[str, str], float], measure: Callable[[Gates], Awaitable[float]]
) -> float:
    gates = Gates(links_ms)
    with TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            for name in NAMES:
                host = await stack.enter_async_context(RealHost(name, Path(folder) / name))
                await gates.start(name, host)
            gates.create("j")
            await gates.groups["g1"].append("j", "first", PAYLOAD, WITHIN_S)
            measured = await measure(gates)
            for groups in gates.groups.values():
                await groups.close()
    return measured


async def commit_ms(commits: int, gates: Gates) -> float:
    """p99 of one commit at a time."""
    took = []
    for number in range(commits):
        began = time.perf_counter()
        await gates.groups["g1"].append("j", f"e{number}", PAYLOAD, WITHIN_S)
        took.append((time.perf_counter() - began) * 1_000)
    note(f"commit: median {statistics.median(took):.1f} ms")
    return statistics.quantiles(took, n=100)[98]


async def rate(count: int, gates: Gates) -> float:
    """Events a second over many jobs, each led by one of the three in turn."""
    jobs = [f"r{number}" for number in range(IN_FLIGHT)]
    for at, job in enumerate(jobs):
        for groups in gates.groups.values():
            groups.create(job, NAMES[at % 3 :] + NAMES[: at % 3])

    async def write(at: int, job: str) -> None:
        groups = gates.groups[NAMES[at % 3]]
        for number in range(count // IN_FLIGHT):
            await groups.append(job, f"e{number}", PAYLOAD, WITHIN_S)

    began = time.perf_counter()
    await asyncio.gather(*(write(at, job) for at, job in enumerate(jobs)))
    return count // IN_FLIGHT * IN_FLIGHT / (time.perf_counter() - began)


# -- memory ----------------------------------------------------------------------------------------


def memory(jobs: int) -> tuple[list[float], list[float]]:
    """Mebibytes in use, and on the disk of a gate, after each tenth of the jobs."""
    used: list[float] = []
    on_disk: list[float] = []
    world = World(1)
    for name in NAMES:
        world.add(name, _nothing)

    async def live(gates: Gates, number: int) -> None:
        job, groups = f"j{number}", gates.groups["g1"]
        gates.create(job)
        created = Created(name="shop", body=b"", datacenters={"eu": 0, "us": 0}, digest=job)
        ends = [
            Ended(dc, "completed", "", bytes(2_000), {"w": bytes(4_000)}) for dc in ("eu", "us")
        ]
        for event in (created, *ends, Completed("completed", "", bytes(3_000))):
            payload = events.encode(event)
            await groups.append(job, events.request_of(event), payload, WITHIN_S)
        await asyncio.sleep(KEPT_S)
        await groups.append(job, "forgotten", b"", WITHIN_S, closes=True)

    async def story() -> None:
        gates = Gates({})
        for name in NAMES:
            await gates.start(name, world.host(name))
        for tenth in range(10):
            for first in range(0, jobs // 10, JOBS_AT_ONCE):
                numbers = range(
                    tenth * jobs // 10 + first, tenth * jobs // 10 + first + JOBS_AT_ONCE
                )
                await asyncio.gather(*(live(gates, number) for number in numbers))
            await asyncio.sleep(1_000)
            gc.collect()
            used.append(tracemalloc.get_traced_memory()[0] / (1 << 20))
            disk = world.machines["g1"].disk
            size = sum(len(disk.durable(path) or b"") for path, _ in disk.files())
            on_disk.append(size / (1 << 20))
            note(
                f"memory: {(tenth + 1) * jobs // 10:,} jobs, {used[-1]:.1f} MiB, "
                f"{on_disk[-1]:.1f} MiB on disk"
            )

    tracemalloc.start()
    world.run(story())
    tracemalloc.stop()
    world.close()
    return used, on_disk


async def _nothing(_host: SimHost) -> None:
    pass


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=100_000)
    options.add_argument("--commits", type=int, default=400)
    options.add_argument("--events", type=int, default=20_000)
    given = options.parse_args()
    figures = []

    beyond = run(with_gates(LINKS_MS, partial(commit_ms, given.commits))) - min(LINKS_MS.values())
    what = "commit over links of 80, 150 and 230 ms, p99 beyond the round trip to the nearest"
    measured = f"{beyond:.1f} ms"
    figures.append(Figure(what, "≤ 10 ms", measured, beyond <= BEYOND_LINK_MS_MAX))

    rated = run(with_gates({}, partial(rate, given.events)))
    what = f"durable events/s, three replicas in one process, {IN_FLIGHT} jobs at once"
    figures.append(Figure(what, "≥ 5,000/s", f"{rated:,.0f}/s", rated >= EVENTS_RATE_MIN))

    used, on_disk = memory(given.jobs)
    growth = max(used[5:]) / min(used[5:]) - 1
    what = f"memory of three gates over {given.jobs:,} jobs that end, last half"
    measured = f"{growth:.1%} ({used[5]:.1f} to {used[-1]:.1f} MiB, simulated disks included; "
    measured += f"{on_disk[5]:.1f} to {on_disk[-1]:.1f} MiB on a gate's disk)"
    figures.append(Figure(what, "within 5 %", measured, growth <= GROWTH_MAX))
    print(machine(), "", table(figures), sep="\n")
    return 0 if all(figure.ok for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
