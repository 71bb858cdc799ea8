"""Workflows of one layer on fewer cores than they are, in a world without faults."""

from __future__ import annotations

from functools import partial
from random import Random

import msgspec
import pytest

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part
from hyperscale.metrics import totals
from hyperscale.metrics.results import Results, decode
from hyperscale.nodes.protocol.jobs import Body
from hyperscale.runtime.host import Address
from hyperscale.sim import run
from hyperscale.sim.checkers import Checker
from hyperscale.sim.scenarios.cluster import PORT, ClusterScenario
from hyperscale.sim.scenarios.cluster_shapes import load_test, without_load
from hyperscale.sim.scenarios.cluster_users import Wish
from hyperscale.sim.world import World
from hyperscale.workload.facts import WorkflowFacts
from hyperscale.workload.load import ClosedVUs

LOADS = {"A": 8, "B": 4, "C": 2, "D": 1}


def loads() -> list[WorkflowFacts]:
    return [
        load_test(name, ClosedVUs(vus=vus, duration_s=10.0, graceful_stop_s=1.0))
        for name, vus in LOADS.items()
    ]


class Together(Checker):
    """At some moment all workflows of the job load."""

    def __init__(self, scenario: Quiet) -> None:
        self._scenario = scenario
        self._most: set[str] = set()

    def on_began(self, _at: float, node: str, life: int, part: Part, fence: Fence) -> None:
        loading = {one.order.part.workflow for one in self._scenario.truth.loading()}
        self._most = max(self._most, loading, key=len)

    def at_end(self) -> None:
        if self._most < set(LOADS):
            self.fail(f"only {sorted(self._most)} ran at the same time")


class Quiet(ClusterScenario):
    """One manager, some workers, one job."""

    faults = ()
    safety_s = 40.0

    def __init__(self, workers: dict[str, int]) -> None:
        super().__init__()
        self._cores = workers

    async def setup(self, world: World) -> None:
        self._addresses = [Address("10.0.0.1", PORT)]
        world.add("m1", partial(self._manager, world, ("m1",)))
        for name in self._cores:
            world.add(name, partial(self._worker, world))
        body = Body(
            workflows=(*loads(), without_load("Beside")), source=b"", overrides=b"", name="many"
        )
        wish = Wish("c1:0:0123456789abcdef", "wide", msgspec.msgpack.encode(body), at_s=5.0)
        self._wishes = {"c1": [wish]}
        world.add("c1", partial(self._client, world))

    async def during(self, world: World) -> None:
        """Nothing happens to anybody."""

    def checkers(self) -> list[Checker]:
        return [*super().checkers(), Together(self)]

    def results(self) -> Results:
        (finished,) = self.truth.finished.values()
        return decode(finished.results)


@pytest.mark.parametrize(
    "workers", [{"w1": 1}, {"w1": 3}, {"w1": 1, "w2": 2}, {"w1": 4, "w2": 4}], ids=str
)
def test_all_of_them_run_at_the_same_time(workers: dict[str, int]) -> None:
    scenario = Quiet(workers)
    report = run(scenario, seed=Random(str(workers)).randint(1, 1_000))
    assert report.ok, report.failures
    results = scenario.results()
    assert results.coverage == 1
    made = {workflow.name: workflow.requests for workflow in results.workflows if workflow.is_test}
    assert made == {
        name: sum(
            one.requests for one in scenario.truth.of_job(job) if one.order.part.workflow == name
        )
        for job in scenario.truth.jobs
        for name in LOADS
    }
    assert totals.vus_max(results) == sum(LOADS.values())
    assert totals.load_seconds(results) < 2 * 10.0
