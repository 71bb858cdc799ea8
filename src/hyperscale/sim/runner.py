"""Runs seeds: one, or many over processes.

Every run of a seed is a world of its own; nothing is shared but the code. A seed whose run takes
too much CPU time has failed: a loop without an `await` never gives the clock a chance to move.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from types import FrameType
from typing import Any

from hyperscale.sim.faults import Swarm
from hyperscale.sim.loop import SimulationStuck
from hyperscale.sim.scenario import Scenario
from hyperscale.sim.trace import Trace
from hyperscale.sim.world import World

CPU_SECONDS_MAX = 300


@dataclass(frozen=True, slots=True)
class Report:
    scenario: str
    seed: int
    ok: bool
    failures: tuple[str, ...]
    trace_hash: str
    coverage: dict[str, int]
    faults: tuple[str, ...]
    virtual_s: float
    real_s: float
    events: int
    figures: dict[str, float] = field(default_factory=dict)


class TookTooLong(SystemExit):
    """Asyncio lets nothing else pass through a running task."""


def run(scenario: Scenario, seed: int, sink: Callable[[str], None] | None = None) -> Report:
    """One history. `sink` takes the lines of its timeline."""
    with _without_logs():
        return _run(scenario, seed, sink)


def _run(scenario: Scenario, seed: int, sink: Callable[[str], None] | None) -> Report:
    world = World(
        seed,
        trace=Trace(sink, scenario.describe),
        checkers=scenario.checkers(),
        forgives=scenario.forgives,
    )
    phases = _Phases(scenario, world)
    began = time.perf_counter()
    try:
        world.loop.run_until_complete(phases.run())
    except (SimulationStuck, TookTooLong) as error:
        world.fail("framework", str(error))
    except Exception as error:  # noqa: BLE001 - a broken scenario is one failed seed, not the end
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{where.filename.rpartition('/')[2]}:{where.lineno}"
        world.fail("scenario", f"{error!r} in {place}")
    finally:
        real_s = time.perf_counter() - began
        figures = {} if world.failures else scenario.figures(world)
        world.close()
    return Report(
        scenario=scenario.name,
        seed=seed,
        ok=not world.failures,
        failures=tuple(world.failures),
        trace_hash=world.trace.digest(),
        coverage=dict(sorted(world.coverage.items())),
        faults=phases.faults,
        virtual_s=world.now,
        real_s=real_s,
        events=world.loop.event_count,
        figures=figures,
    )


@contextmanager
def _without_logs() -> Iterator[None]:
    """Nodes of a simulated world write no log: the trace tells more, in the right time."""
    import structlog

    before = structlog.get_config() if structlog.is_configured() else None
    structlog.configure(
        processors=[_drop],
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        logger_factory=structlog.ReturnLoggerFactory(),  # bound anew for every line that is dropped
    )
    try:
        yield
    finally:
        if before is None:
            structlog.reset_defaults()
        else:
            structlog.configure(**before)


def _drop(_logger: Any, _method: str, _event: Any) -> Any:
    import structlog

    raise structlog.DropEvent


class _Phases:
    """The two phases of a run."""

    def __init__(self, scenario: Scenario, world: World) -> None:
        self._scenario = scenario
        self._world = world
        self.faults: tuple[str, ...] = ()

    async def run(self) -> None:
        scenario, world = self._scenario, self._world
        await scenario.setup(world)
        world.core = list(world.machines)
        swarm = Swarm(world, tuple(scenario.faults), scenario.limits, scenario.victims(world))
        self.faults = swarm.drawn
        world.observe("phase", name="safety")
        swarm.start()
        client = asyncio.get_running_loop().create_task(scenario.during(world), name="client")
        await asyncio.sleep(scenario.safety_s)
        client.cancel()
        await asyncio.gather(client, return_exceptions=True)
        if not client.cancelled() and (error := client.exception()) is not None:
            raise error
        world.observe("phase", name="liveness")
        await swarm.heal(self._core())
        await self._reach_goal()
        for checker in world.checkers:
            checker.at_end()

    def _core(self) -> list[str]:
        names = [machine.name for machine in self._world.machines.values() if not machine.retired]
        dice = self._world.random_stream("core")
        if self._scenario.core == "all" or dice.random() < 0.5:
            return names
        size = dice.randint(len(names) // 2 + 1, len(names))
        chosen = set(dice.sample(names, size))
        return [name for name in names if name in chosen]

    async def _reach_goal(self) -> None:
        scenario, world = self._scenario, self._world
        deadline = world.now + scenario.liveness_s
        while missing := scenario.goal(world):
            if world.now >= deadline:
                world.fail("liveness", f"after {scenario.liveness_s:g} s: {missing}")
                return
            await asyncio.sleep(scenario.goal_every_s)
        world.observe("goal", reached=True)
        end = world.now + scenario.steady_s
        while world.now < end:
            await asyncio.sleep(scenario.goal_every_s)
            if missing := scenario.goal(world):
                world.fail("liveness", f"the goal did not hold: {missing}")
                return


def prove(
    scenario: type[Scenario], planted_bug: str, seeds: Sequence[int], nodes: int | None = None
) -> Report | None:
    """Run a planted bug until the checker named for it catches it; None when it never does.
    Something else failing first is no proof, and neither is silence."""
    expected = scenario.planted_bugs[planted_bug]
    for seed in seeds:
        report = run(scenario(nodes, planted_bug), seed)
        if any(failure.startswith(f"{expected}:") for failure in report.failures):
            return report
    return None


@dataclass(frozen=True, slots=True)
class _SeedRun:
    scenario: type[Scenario]
    nodes: int | None
    planted_bug: str
    cpu_seconds_max: int

    def __call__(self, seed: int) -> Report:
        """In a worker process: one seed, with an alarm against code that never yields."""
        previous = signal.signal(signal.SIGPROF, _too_long)
        signal.setitimer(signal.ITIMER_PROF, self.cpu_seconds_max)
        try:
            return run(self.scenario(self.nodes, self.planted_bug), seed)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, previous)
            gc.collect()


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise TookTooLong("it took too much CPU time: a loop that never waits, or too big a world")


def sweep(
    scenario: type[Scenario],
    seeds: Sequence[int],
    jobs: int = 1,
    nodes: int | None = None,
    planted_bug: str = "",
    cpu_seconds_max: int = CPU_SECONDS_MAX,
) -> Iterator[Report]:
    """Run many seeds; reports come as they finish."""
    seed_run = _SeedRun(scenario, nodes, planted_bug, cpu_seconds_max)
    if jobs == 1 or len(seeds) == 1:
        gc.freeze()  # the code is no garbage; looking through it took longer than a small seed
        try:
            yield from map(seed_run, seeds)
        finally:
            gc.unfreeze()
        return
    with get_context("spawn").Pool(min(jobs, len(seeds)), initializer=gc.freeze) as pool:
        # One at a time: no process is left alone with a batch of long ones at the end.
        yield from pool.imap_unordered(seed_run, seeds)
