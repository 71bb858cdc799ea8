"""Workers that report and cannot be commanded: real managers and workers in a simulated world."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any

import msgspec

from hyperscale.nodes.protocol.jobs import Body
from hyperscale.runtime.host import Address
from hyperscale.sim.links import Cut, Traffic, one_way, only, partition
from hyperscale.sim.scenarios.cluster import PORT, ClusterScenario
from hyperscale.sim.scenarios.cluster_shapes import load_test
from hyperscale.sim.scenarios.cluster_users import NONCE, Wish
from hyperscale.sim.world import World
from hyperscale.workload.load import ClosedVUs

LONG = load_test("Load", ClosedVUs(vus=1, duration_s=300.0, graceful_stop_s=1.0))
# Until a connection that brings nothing is given up, nobody can make another, the worker has ended
# its load and its part is elsewhere.
NOTICED_S = 40.0


class TwoWorkers(ClusterScenario):
    """One manager, two workers with a core each, one long test on one of them."""

    def __init__(self) -> None:
        super().__init__()
        self._cores = {"w1": 1, "w2": 1}

    async def setup(self, world: World) -> None:
        self._addresses = [Address("10.0.0.1", PORT)]
        world.add("m1", partial(self._manager, world, ("m1",)))
        for name in self._cores:
            world.add(name, partial(self._worker, world))
        body = Body(workflows=(LONG,), source=b"", overrides=b"", name="long")
        self._wishes = {
            "c1": [Wish(f"c1:0:{NONCE}", "wide", msgspec.msgpack.encode(body), at_s=5.0)]
        }
        world.add("c1", partial(self._client, world))

    def states(self) -> dict[str, str]:
        return {row.worker: row.state for row in self.managers["m1"].worker_api.views()}

    def loading(self) -> list[str]:
        return [one.host.name for one in self.truth.loading()]


def play(story: Any) -> None:
    scenario = TwoWorkers()
    world = World(5, checkers=scenario.checkers())

    async def all_of_it() -> None:
        await scenario.setup(world)
        await world.sleep(15.0)
        await story(world, scenario)

    run(world, all_of_it())


def run(world: World, story: Coroutine[Any, Any, None]) -> None:
    try:
        world.run(story)
        assert world.failures == []
    finally:
        world.close()


def cut(world: World, traffic: Traffic, cut: Cut) -> None:
    world.network.cut(only(traffic, cut))


def test_a_worker_cut_off_for_streams_alone_loses_its_part_and_is_shown_so() -> None:
    async def story(world: World, scenario: TwoWorkers) -> None:
        [where] = scenario.loading()
        cut(world, "streams", partition({where}, {"m1"}))
        await world.sleep(6.2)
        assert scenario.states()[where] == "cut off"
        assert scenario.loading() == []
        await world.sleep(3.0)
        assert scenario.loading() == [{"w1": "w2", "w2": "w1"}[where]]

    play(story)


def test_a_worker_that_only_probes_do_not_find_keeps_its_part() -> None:
    async def story(world: World, scenario: TwoWorkers) -> None:
        [where] = scenario.loading()
        cut(world, "datagrams", partition({where}))
        for _ in range(60):
            await world.sleep(1.0)
            assert scenario.loading() == [where]

    play(story)


def test_a_worker_that_reports_and_cannot_be_commanded_loses_its_part_once_that_shows() -> None:
    async def story(world: World, scenario: TwoWorkers) -> None:
        [where] = scenario.loading()
        cut(world, "calls", one_way({"m1"}, {where}))
        manager = scenario.managers["m1"]
        manager.commands.ask_parts()
        await world.sleep(NOTICED_S)
        assert scenario.states()[where] == "cut off"
        assert scenario.loading() == [{"w1": "w2", "w2": "w1"}[where]]
        world.network.heal_all()
        await world.sleep(10.0)
        assert scenario.states() == {"w1": "healthy", "w2": "healthy"}

    play(story)


def test_a_worker_whose_process_is_gone_is_cut_off_before_anybody_says_that_it_is_dead() -> None:
    async def story(world: World, scenario: TwoWorkers) -> None:
        [where] = scenario.loading()
        world.crash(where)
        await world.sleep(3.5)
        assert scenario.states()[where] == "cut off"

    play(story)


def test_a_worker_that_is_started_again_gets_its_part_back_at_once() -> None:
    async def story(world: World, scenario: TwoWorkers) -> None:
        [where] = scenario.loading()
        (other,) = {"w1", "w2"} - {where}
        world.crash(other, for_good=True)
        await world.sleep(20.0)
        world.crash(where)
        world.restart_after(where, 1.0)
        await world.sleep(4.0)
        assert scenario.loading() == [where]

    play(story)
