"""Phases, swarm, goals, planted bugs and sweeps."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from hyperscale.sim import Checker, Report, Scenario, SimHost, World, prove, run, sweep
from hyperscale.sim.faults import ALL_FAULTS, ORDINARY_FAULTS, TRANSPORT_FAULTS
from hyperscale.sim.scenarios.echo import Echo
from hyperscale.sim.summary import Summary


class Idle(Scenario):
    name = "idle"
    nodes_default = 3
    safety_s = 10.0
    liveness_s = 10.0
    faults: tuple[str, ...] = ()

    async def setup(self, world: World) -> None:
        for name in self.node_names():
            world.add(name, self.node)

    async def node(self, host: SimHost) -> None:
        await host.clock.sleep(1.0)


class Unreachable(Idle):
    name = "unreachable"

    def goal(self, world: World) -> str:
        return "the moon is not reached"


class Fickle(Idle):
    name = "fickle"
    steady_s = 5.0

    def goal(self, world: World) -> str:
        return "it is gone" if world.now > 12.0 else ""


class Broken(Idle):
    name = "broken"

    async def setup(self, world: World) -> None:
        raise LookupError("no such thing")


class BrokenClient(Idle):
    name = "broken-client"

    async def during(self, world: World) -> None:
        await asyncio.sleep(1.0)
        raise LookupError("no such thing")


class Endless(Idle):
    name = "endless"

    async def node(self, host: SimHost) -> None:
        while True:
            pass


class EndChecker(Checker):
    def at_end(self) -> None:
        self.fail("seen at the end")


class FailsAtEnd(Idle):
    name = "fails-at-end"
    planted_bugs: ClassVar = {"end": "EndChecker", "unseen": "Nobody"}

    def checkers(self) -> list[Checker]:
        return [EndChecker()] if self.planted_bug else []


def failure(scenario: Scenario) -> str:
    report = run(scenario, 1)
    assert not report.ok
    return report.failures[0]


def test_a_quiet_run_passes_and_tells_its_length() -> None:
    report = run(Idle(), 1)
    assert report.ok
    assert report.virtual_s == 10.0
    assert report.faults == ()


def test_a_goal_must_be_reached_and_hold() -> None:
    assert "after 10 s: the moon is not reached" in failure(Unreachable())
    assert "the goal did not hold: it is gone" in failure(Fickle())


def test_a_broken_scenario_is_a_failed_seed() -> None:
    assert failure(Broken()).startswith("scenario: LookupError('no such thing') in test_sim_runner")
    assert failure(BrokenClient()).startswith("scenario: LookupError")


def test_checkers_have_the_last_word() -> None:
    assert failure(FailsAtEnd(planted_bug="end")).startswith("EndChecker: seen at the end")


def test_a_planted_bug_is_proven_only_by_the_checker_named_for_it() -> None:
    assert prove(FailsAtEnd, "end", range(3)) is not None
    assert prove(FailsAtEnd, "unseen", range(3)) is None


def test_a_program_that_never_waits_is_stopped() -> None:
    [report] = sweep(Endless, [1], cpu_seconds_max=1)
    assert "too much CPU time" in report.failures[0]


def test_rot_and_cuts_of_one_transport_are_what_a_scenario_must_ask_for() -> None:
    assert set(ORDINARY_FAULTS) == set(ALL_FAULTS) - {"bit-rot", *TRANSPORT_FAULTS}


# An echo opens no streams; the cluster does.
@pytest.mark.parametrize("fault", sorted(set(ALL_FAULTS) - {"cut-streams", "cut-calls"}))
def test_every_fault_class_alone_touches_something(fault: str) -> None:
    class OnlyOne(Echo):
        name = "only-one"
        faults = (fault,)
        safety_s = 20.0

        def checkers(self) -> list[Checker]:
            return []  # rot is more than a single copy can survive

    reports = (run(OnlyOne(3), seed) for seed in range(1, 40))
    assert any(report.coverage.get(fault) for report in reports)


def test_seeds_draw_different_faults() -> None:
    drawn = {run(Echo(2), seed).faults for seed in range(1, 11)}
    assert len(drawn) > 5


def test_the_core_may_be_a_majority() -> None:
    cores: set[int] = set()

    class Watch(Echo):
        name = "watch"
        safety_s = 1.0

        def goal(self, world: World) -> str:
            cores.add(len(world.core))
            return super().goal(world)

    for seed in range(1, 15):
        assert run(Watch(5), seed).ok
    assert cores == {3, 4, 5}


def report(seed: int, ok: bool) -> Report:
    return Report(
        scenario="echo",
        seed=seed,
        ok=ok,
        failures=() if ok else ("Checker: it broke",),
        trace_hash="abc",
        coverage={"loss": 3},
        faults=("loss",),
        virtual_s=100.0,
        real_s=0.5,
        events=1000,
        figures={"latency_s": float(seed)},
    )


def test_a_summary_says_what_failed_and_how_to_see_it() -> None:
    summary = Summary(Echo, nodes=5, planted_bug="sync-again", elapsed_s=2.0)
    for number in (3, 1, 2):
        summary.add(report(number, ok=number == 1))
    text = "\n".join(summary.lines())
    assert "echo with the planted bug sync-again: 3 seeds, 5 nodes, 2 failed" in text
    assert "200 x real time" in text
    assert "  2: Checker: it broke\n      hyperscale sim echo --seeds 2 --nodes 5" in text
    assert "--bug sync-again --trace" in text
    assert "never hit: duplicate" in text
    data: Any = summary.as_data()
    assert [entry["seed"] for entry in data["failed"]] == [2, 3]
    assert data["coverage"]["loss"] == {"hits": 9, "seeds": 3}
    assert data["figures"]["latency_s"] == {"min": 1.0, "mean": 2.0, "max": 3.0}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_sweep_gives_the_same_histories_however_it_is_run(jobs: int) -> None:
    reports = sorted(sweep(Echo, range(1, 5), jobs=jobs, nodes=2), key=lambda one: one.seed)
    assert [one.seed for one in reports] == [1, 2, 3, 4]
    assert [one.trace_hash for one in reports] == [
        run(Echo(2), seed).trace_hash for seed in range(1, 5)
    ]
