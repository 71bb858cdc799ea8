"""A worker in a simulated world does what a manager commands, and its cores always come back."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.cluster.fencing import Fence
from hyperscale.engine.results import aggregate_of
from hyperscale.nodes.protocol.parts import DispatchPart, PartEnd, PartPrepared
from hyperscale.workload.load import ClosedVUs, SharedIterations
from tests.fixtures.scripted_manager import ScriptedManager, facts
from tests.unit.nodes.worker.sim_cluster import CORES, SimCluster


async def begin(cluster: SimCluster) -> ScriptedManager:
    await cluster.world.sleep(0.1)
    await cluster.m1.worker("w1")
    return cluster.m1


async def run(manager: ScriptedManager, order: DispatchPart) -> None:
    """Dispatched, prepared, started."""
    answer = await manager.dispatch("w1", order)
    assert answer.accepted, answer
    await manager.prepared(order)
    started = await manager.start("w1", order)
    assert (started.known, started.state) == (True, "running")


def test_a_part_from_dispatch_to_its_settled_end() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(), cores=2)
        await run(manager, order)
        end = await manager.ended(order)

        assert (end.outcome, end.error, end.worker) == ("completed", "", "w1")
        total = aggregate_of(order.facts)
        total.absorb(end.state)
        assert total.requests == cluster.loaded[order.fence] == end.iterations > 0
        await manager.all_free("w1", CORES)
        assert len(cluster.worker.outbox) == 0
        assert cluster.runner.busy == 0

    cluster.play(story())


def test_live_numbers_add_up_and_never_repeat() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(), cores=2)
        await run(manager, order)
        end = await manager.ended(order)

        seqs = list(manager.deltas(order))
        assert seqs == list(range(1, len(seqs) + 1))
        deltas = manager.deltas(order).values()
        told = sum(one.count for delta in deltas for one in delta.requests)
        assert 0.8 * end.iterations < told <= end.iterations

    cluster.play(story())


def test_the_same_dispatch_again_gets_the_same_answer_and_runs_once() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(), cores=2)
        first = await manager.dispatch("w1", order)
        again = await manager.dispatch("w1", order)
        assert again == first
        await manager.prepared(order)
        await manager.start("w1", order)
        await manager.start("w1", order)
        await manager.ended(order)
        await manager.all_free("w1", CORES)

        late = await manager.dispatch("w1", order)  # a delayed copy after the end
        assert late == first
        await cluster.world.sleep(2.0)
        assert cluster.did("began") == [order.part]
        assert len(manager.told(PartEnd, order)) == 1

    cluster.play(story())


def test_an_older_token_is_refused_and_a_newer_one_takes_over() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        second = manager.order(facts(), epoch=2)
        await run(manager, second)

        stale = await manager.dispatch("w1", manager.order(facts(), epoch=1))
        assert not stale.accepted
        assert "later attempt" in stale.reason

        third = manager.order(facts(), epoch=3)
        assert (await manager.dispatch("w1", third)).accepted
        assert (await manager.ended(second)).outcome == "cancelled"
        assert not (await manager.start("w1", second)).known
        await manager.prepared(third)

    cluster.play(story())


def test_a_leader_of_an_earlier_term_is_refused() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        manager.term = 7
        order = manager.order(facts())
        await run(manager, order)

        old = msgspec.structs.replace(order, term=6, fence=Fence(6, 9, 1))
        assert not (await manager.dispatch("w1", old)).accepted
        manager.term = 6
        assert not (await manager.steer("w1", order, "cancel")).known
        manager.term = 7
        assert (await manager.ended(order)).outcome == "completed"

    cluster.play(story())


def test_no_room_takes_nothing_and_says_so() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        await run(manager, manager.order(facts("First"), cores=3))

        answer = await manager.dispatch("w1", manager.order(facts("Second"), cores=2))

        assert (answer.accepted, answer.no_room, answer.free_cores) == (False, True, 1)
        held = await manager.parts_of("w1")
        assert [status.part.workflow for status in held.parts] == ["First"]

    cluster.play(story())


def test_context_that_is_out_of_date_is_refused() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        fresh = manager.order(facts("B"), context_version=2)
        assert (await manager.dispatch("w1", fresh)).accepted
        old = await manager.dispatch("w1", manager.order(facts("A"), context_version=1))
        assert (old.accepted, "out of date" in old.reason) == (False, True)

    cluster.play(story())


@pytest.mark.parametrize(
    ("mishap", "outcome", "words"),
    [
        ("raises in prepare", "failed", "cannot be loaded"),
        ("raises in run", "failed", "a step raised"),
        ("never ends", "failed", "did not end within its limit of 5 s"),
        ("dies", "cut off", "was killed"),
    ],
)
def test_whatever_goes_wrong_is_told_and_frees_the_cores(
    mishap: str, outcome: str, words: str
) -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(tags={"mishap": mishap}), cores=3, limit_s=5.0)
        await manager.dispatch("w1", order)
        if mishap != "raises in prepare":
            await manager.prepared(order)
            await manager.start("w1", order)
        end = await manager.ended(order)

        assert (end.outcome, words in end.error) == (outcome, True)
        assert end.bad_input == (mishap == "raises in prepare")
        assert bool(end.lost) == (mishap == "dies")
        await manager.all_free("w1", CORES)
        assert cluster.runner.busy == 0

    cluster.play(story())


@pytest.mark.parametrize("runner", ["preparing", "prepared", "running", "paused"])
def test_cancel_ends_a_part_at_every_stage(runner: str) -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=ClosedVUs(vus=4, duration_s=60.0)), cores=2)
        await manager.dispatch("w1", order)
        if runner != "preparing":
            await manager.prepared(order)
        if runner in ("running", "paused"):
            await manager.start("w1", order)
        if runner == "paused":
            await manager.steer("w1", order, "pause")

        await manager.steer("w1", order, "cancel")
        await manager.steer("w1", order, "cancel")  # repeated until it has ended
        end = await manager.ended(order)

        assert end.outcome == "cancelled"
        at = cluster.last_load_at
        await manager.all_free("w1", CORES)
        await cluster.world.sleep(3.0)
        assert cluster.last_load_at == at

    cluster.play(story())


def test_pause_stops_the_load_and_resume_continues_it() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts())
        await run(manager, order)
        assert (await manager.steer("w1", order, "pause")).state == "paused"
        await cluster.world.sleep(0.2)
        before = cluster.loaded[order.fence]
        await cluster.world.sleep(10.0)
        assert cluster.loaded[order.fence] == before
        assert (await manager.steer("w1", order, "resume")).state == "running"
        end = await manager.ended(order)
        assert end.outcome == "completed"
        assert end.iterations == 2.0 * 4 * 5  # as if there had been no pause

    cluster.play(story())


def test_scaling_said_twice_scales_once() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=ClosedVUs(vus=4, duration_s=4.0)))
        await run(manager, order)
        for _ in range(3):
            await manager.steer("w1", order, "scale", 8)
        await manager.until(
            lambda: any(delta.vus == 8 for delta in manager.deltas(order).values()), "8 VUs"
        )
        await manager.ended(order)
        assert max(delta.vus for delta in manager.deltas(order).values()) == 8

    cluster.play(story())


def test_a_part_kept_for_its_teardown_keeps_no_core() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        torn: list[bool] = []
        manager.settles = lambda event: not isinstance(event, PartEnd) or bool(torn)
        order = manager.order(facts(tears_down=True), cores=2)
        await run(manager, order)
        await manager.ended(order)
        await manager.all_free("w1", CORES)
        await cluster.world.sleep(20.0)
        (kept,) = (await manager.parts_of("w1")).parts
        assert (kept.state, kept.cores_done) == ("ended", 2)
        assert manager.progress(order)[-1].cores_done == 2

        assert (await manager.tear_down("w1", order)).known
        assert (await manager.torn_down(order)).warning == ""
        torn.append(True)
        assert cluster.did("torn down") == [order.part]
        assert not (await manager.tear_down("w1", order)).known
        await manager.until(lambda: len(cluster.worker.outbox) == 0, "an empty outbox")

    cluster.play(story())


def test_cores_without_load_are_free_while_their_part_runs() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        load = ClosedVUs(vus=1, duration_s=30.0)
        order = manager.order(facts(load=load), cores=3)
        await run(manager, order)
        await manager.until(lambda: manager.free_cores("w1") == CORES - 1, "two cores to be free")
        assert manager.progress(order)[-1].cores_done == 2
        other = manager.order(facts("Other"), job="other", cores=3)
        assert (await manager.dispatch("w1", other)).accepted

    cluster.play(story())


def test_a_settled_end_frees_a_part_that_another_tears_down() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(tears_down=True), cores=2)
        await run(manager, order)
        await manager.ended(order)
        await manager.all_free("w1", CORES)
        assert cluster.did("torn down") == []

    cluster.play(story())


def test_a_part_that_goes_on_elsewhere_makes_only_what_is_left() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        timed = manager.order(
            facts("Timed", ClosedVUs(vus=2, duration_s=10.0)), attempt=2, resume_at_s=7.0
        )
        counted = manager.order(
            facts("Counted", SharedIterations(2, 100)), attempt=2, iterations_done=60
        )
        for order in (timed, counted):
            await run(manager, order)
        assert (await manager.ended(counted)).iterations == 40
        end = await manager.ended(timed)
        assert end.iterations == 3 * 2 * 5
        assert end.measured_s == pytest.approx(3.0)
        assert min(entry.elapsed_s for entry in manager.progress(timed)) >= 7.0

    cluster.play(story())


def test_a_hundred_failing_parts_leave_no_growth() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        for number in range(100):
            mishap = ("raises in prepare", "raises in run", "dies")[number % 3]
            order = manager.order(
                facts(tags={"mishap": mishap}, load=ClosedVUs(vus=1, duration_s=0.4)),
                job=f"job{number}",
                cores=CORES,
            )
            assert (await manager.dispatch("w1", order)).accepted
            if mishap != "raises in prepare":
                await manager.prepared(order)
                await manager.start("w1", order)
            await manager.ended(order)
        await manager.all_free("w1", CORES)
        await manager.until(lambda: cluster.worker.parts.empty, "an empty worker")
        assert (len(cluster.worker.outbox), cluster.runner.busy) == (0, 0)
        assert len(manager.told(PartPrepared, order)) <= 1
        names = cluster.world.host("w1").tasks.names()
        assert not [name for name in names if "job" in name]

    cluster.play(story())
