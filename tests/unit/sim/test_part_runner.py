"""Virtual load is scaled as the engine scales its own."""

from __future__ import annotations

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part
from hyperscale.metrics.delta import Delta
from hyperscale.nodes.protocol.parts import DispatchPart
from hyperscale.sim.part_runner import SimRunner
from hyperscale.workload.load import ClosedVUs, Load, SharedIterations
from tests.fixtures.scripted_manager import facts
from tests.unit.sim.worlds import finish, world_of


def users_after(load: Load, *changes: int) -> dict[int, int]:
    """What each of three cores tells of its users after these changes; silent ones are left out."""
    seen: dict[int, int] = {}

    def progressed(_at_s: float, core: int, delta: Delta) -> None:
        seen[core] = delta.vus

    world = world_of("w1")

    async def story() -> None:
        host = world.host("w1")
        order = DispatchPart(
            part=Part("j1", "Load", 0),
            fence=Fence(1, 1, 1),
            term=1,
            facts=facts(load=load),
            source=b"",
            overrides=b"",
            first_core=0,
            cores=3,
            total_cores=3,
        )
        running = SimRunner(host, 3).run(order, (0, 1, 2), progressed)
        running.start({})
        for change in changes:
            running.steer("scale", change)
        await host.clock.sleep(1.0)
        running.steer("pause")

    finish(world, story())
    return seen


def test_nobody_has_less_than_no_users() -> None:
    assert users_after(ClosedVUs(5, 10.0), -4) == {0: 1, 1: 0, 2: 0}


def test_iterations_of_a_core_keep_a_user() -> None:
    assert users_after(SharedIterations(6, 600), -5) == {0: 1, 1: 1, 2: 1}


def test_up_and_down_again_changes_nothing() -> None:
    assert users_after(ClosedVUs(5, 10.0), 7, -7) == {0: 1, 1: 1, 2: 3}
