"""A worker dies and no core is free, in a world without other faults: who takes its load over, how
much of it is missing, and that cores are counted once by whoever leads then."""

from __future__ import annotations

from functools import partial
from random import Random

import msgspec
import pytest

from hyperscale.cluster.jobs.records import Dispatched, LostLoad
from hyperscale.metrics.results import Results, decode
from hyperscale.nodes.protocol.jobs import Body
from hyperscale.runtime.host import Address
from hyperscale.sim import run
from hyperscale.sim.part_slice import ITERATIONS_PER_VU_S
from hyperscale.sim.scenarios.cluster import PORT, ClusterScenario
from hyperscale.sim.scenarios.cluster_shapes import load_test
from hyperscale.sim.scenarios.cluster_users import Wish
from hyperscale.sim.world import World
from hyperscale.workload.load import ClosedVUs

VUS, SECONDS = 24, 40.0
MANAGERS = ("m1", "m2", "m3")


class OneDeath(ClusterScenario):
    """One job on all cores; `w1` dies for good, and the leader after that."""

    faults = ()
    safety_s = 35.0

    def __init__(self, workers: dict[str, int], lost_load: LostLoad) -> None:
        super().__init__()
        self._cores = workers
        self._lost_load = lost_load

    async def setup(self, world: World) -> None:
        self._addresses = [Address(f"10.0.0.{number}", PORT) for number in (1, 2, 3)]
        for name in MANAGERS:
            world.add(name, partial(self._manager, world, MANAGERS))
        for name in self._cores:
            world.add(name, partial(self._worker, world))
        load = ClosedVUs(vus=VUS, duration_s=SECONDS, graceful_stop_s=1.0)
        body = Body(
            workflows=(load_test("Load", load),),
            source=b"",
            overrides=b"",
            name="full",
            lost_load=self._lost_load,
        )
        self._wishes = {
            "c1": [Wish("c1:0:0123456789abcdef", "full", msgspec.msgpack.encode(body), at_s=5.0)]
        }
        world.add("c1", partial(self._client, world))

    async def during(self, world: World) -> None:
        await world.sleep(world.random.uniform(10.0, 14.0))
        world.crash("w1", for_good=True)
        await world.sleep(world.random.uniform(14.0, 16.0))
        for name, manager in self.managers.items():
            if manager.leadership.leads():
                world.crash(name)
                world.restart_after(name, 3.0)

    def results(self) -> Results:
        (finished,) = self.truth.finished.values()
        return decode(finished.results)

    def moved(self) -> list[Dispatched]:
        log = (self.truth.log[index] for index in sorted(self.truth.log))
        return [record for record in log if isinstance(record, Dispatched) and record.replaces]


@pytest.mark.parametrize(
    "workers", [{"w1": 2, "w2": 2}, {"w1": 3, "w2": 1}, {"w1": 2, "w2": 1, "w3": 1}], ids=str
)
@pytest.mark.parametrize("seed", range(3))
def test_survivors_carry_out_the_rest(workers: dict[str, int], seed: int) -> None:
    scenario = OneDeath(workers, "squeeze")
    report = run(scenario, Random(f"{workers} {seed}").randint(1, 10_000))
    assert report.ok, report.failures
    [record] = scenario.moved()
    assert {one.worker for one in record.placements} == set(workers) - {"w1"}
    assert sum(one.cores for one in record.placements) == workers["w1"]
    results = scenario.results()
    [workflow] = results.workflows
    lost, taken_over = workflow.marks
    assert lost.text == f"worker w1 lost, {workers['w1']} of {sum(workers.values())} cores"
    assert taken_over.text.startswith("lost load taken over by w2")
    share = workers["w1"] / sum(workers.values())
    missed_s = taken_over.at_s - lost.at_s
    assert results.coverage == pytest.approx(1 - share * missed_s / SECONDS, abs=0.02)
    planned = VUS * SECONDS * ITERATIONS_PER_VU_S
    assert workflow.requests == pytest.approx(results.coverage * planned, rel=0.03)


@pytest.mark.parametrize("lost_load", ["move", "drop"])
def test_who_does_not_want_it_does_without(lost_load: LostLoad) -> None:
    scenario = OneDeath({"w1": 1, "w2": 1}, lost_load)
    report = run(scenario, 1)
    assert report.ok, report.failures
    assert not scenario.moved()
    results = scenario.results()
    [workflow] = results.workflows
    assert [mark.text for mark in workflow.marks] == ["worker w1 lost, 1 of 2 cores"]
    missed_s = SECONDS - workflow.marks[0].at_s
    assert results.coverage == pytest.approx(1 - missed_s / 2 / SECONDS, abs=0.02)
