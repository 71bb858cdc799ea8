"""A worker and its managers in a simulated world: leaders change, go silent, are overloaded."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.engine.results import aggregate_of
from hyperscale.nodes.protocol.parts import DispatchPart, PartEnd, WorkerPulse
from hyperscale.sim.links import only, partition
from hyperscale.workload.load import ClosedVUs
from tests.fixtures.scripted_manager import ScriptedManager, facts
from tests.unit.nodes.worker.sim_cluster import CORES, SimCluster

LONG = ClosedVUs(vus=4, duration_s=120.0)
FENCE_S = 6.0
LEASE_S = 3.0


async def begin(cluster: SimCluster) -> ScriptedManager:
    await cluster.world.sleep(0.1)
    await cluster.m1.worker("w1")
    return cluster.m1


async def run(manager: ScriptedManager, order: DispatchPart) -> None:
    assert (await manager.dispatch("w1", order)).accepted
    await manager.prepared(order)
    await manager.start("w1", order)


def lose_leader(cluster: SimCluster, *names: str) -> None:
    """These have heard the last of it just now: what they promised it lasts for a lease."""
    for name in names:
        manager = cluster.managers[name]
        manager.leaderless_since = manager.host.clock.now() + LEASE_S


def succeed(cluster: SimCluster, name: str, term: int) -> ScriptedManager:
    """Another manager leads from now on, and the others know."""
    leader = cluster.managers[name]
    for manager in cluster.managers.values():
        manager.leads = False
        manager.term = term
        manager.other_leader = leader.place
    leader.leads = True
    leader.registrations.clear()
    return leader


def test_a_worker_registers_with_who_leads_whomever_it_asks() -> None:
    cluster = SimCluster(managers=3)

    async def story() -> None:
        await cluster.world.sleep(0.05)
        leader = succeed(cluster, "m3", 4)
        said = await leader.worker("w1")
        assert (said.total_cores, said.free_cores, said.parts) == (CORES, CORES, ())
        await leader.until(lambda: leader.reports, "reports")
        assert cluster.worker.registration.term == 4

    cluster.play(story())


def test_the_death_of_the_leader_does_not_touch_the_load() -> None:
    cluster = SimCluster(managers=3)

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=ClosedVUs(vus=4, duration_s=30.0)), cores=2)
        await run(manager, order)
        await cluster.world.sleep(3.0)
        cluster.world.crash("m1", for_good=True)
        lose_leader(cluster, "m2", "m3")
        await cluster.world.sleep(12.0)  # longer than the fence: the others have no leader either
        leader = succeed(cluster, "m2", 2)

        said = await leader.worker("w1")
        assert [(status.part, status.state) for status in said.parts] == [(order.part, "running")]
        end = await leader.ended(order)
        assert (end.outcome, end.iterations) == ("completed", 30 * 4 * 5)
        assert cluster.loaded[order.fence] == end.iterations

    cluster.play(story())


def test_managers_that_are_all_started_again_in_time_do_not_touch_the_load() -> None:
    """None of them may vote for a while; the one that led says that it does not any more."""
    cluster = SimCluster(managers=3)

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=LONG), cores=2)
        await run(manager, order)
        await cluster.world.sleep(3.0)
        for name in cluster.managers:
            cluster.world.crash(name)
            cluster.world.restart_after(name, FENCE_S - 3.0)
        await cluster.world.sleep(3 * FENCE_S)
        assert cluster.last_load_at > cluster.world.now - 0.3

    cluster.play(story())


@pytest.mark.parametrize("phase_s", [0.0, 0.2, 0.4, 0.6, 0.8])
def test_who_is_heard_in_the_last_second_is_heard_by_the_generators(phase_s: float) -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=LONG), cores=2)
        await run(manager, order)
        await cluster.world.sleep(3.0 + phase_s)
        contact, clock = cluster.worker.contact, cluster.world.host("w1").clock
        cluster.world.crash("m1", for_good=True)
        await cluster.world.sleep(contact.remaining_s(clock.now()) - 0.3)
        contact.led(clock.now(), "m1", 1)
        await cluster.world.sleep(FENCE_S - 0.5)
        assert cluster.last_load_at > cluster.world.now - 0.3

    cluster.play(story())


def test_a_manager_that_is_elected_and_not_ready_is_contact() -> None:
    """It fetches the log: nobody else can move the work, and it counts from when it takes over."""
    cluster = SimCluster(managers=3)

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=LONG), cores=2)
        await run(manager, order)
        manager.leads, manager.elected = False, True
        await cluster.world.sleep(3 * FENCE_S)
        assert cluster.last_load_at > cluster.world.now - 0.3

    cluster.play(story())


def test_a_new_leader_hears_of_what_is_prepared() -> None:
    cluster = SimCluster(managers=2)

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts())
        await manager.dispatch("w1", order)
        await manager.prepared(order)
        cluster.world.crash("m1", for_good=True)
        leader = succeed(cluster, "m2", 2)

        said = await leader.worker("w1")
        (status,) = said.parts
        assert (status.state, status.part) == ("prepared", order.part)
        assert status.prepared is not None
        assert status.prepared.fence == order.fence
        assert (await leader.start("w1", order)).state == "running"

    cluster.play(story())


def test_a_result_survives_the_leader_that_did_not_take_it() -> None:
    cluster = SimCluster(managers=2)

    async def story() -> None:
        manager = await begin(cluster)
        manager.settles = lambda event: not isinstance(event, PartEnd)
        order = manager.order(facts())
        await run(manager, order)
        await manager.ended(order)
        await manager.until(lambda: len(manager.told(PartEnd, order)) >= 3, "it to be told again")
        assert {event.state for event in manager.told(PartEnd, order)} == {
            manager.told(PartEnd, order)[0].state
        }
        held = await manager.parts_of("w1")
        assert [status.state for status in held.parts] == ["ended"]

        cluster.world.crash("m1", for_good=True)
        leader = succeed(cluster, "m2", 2)
        assert (await leader.ended(order)).outcome == "completed"
        await leader.until(lambda: len(cluster.worker.outbox) == 0, "an empty outbox")
        assert (await leader.parts_of("w1")).parts == ()

    cluster.play(story())


def test_a_leader_that_forgot_us_is_introduced_again() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=LONG))
        await run(manager, order)
        before = len(manager.registrations)
        manager.knows = False
        await manager.until(lambda: len(manager.registrations) > before, "a registration")
        manager.knows = True
        assert manager.registrations[-1].parts[0].state == "running"

    cluster.play(story())


def test_a_command_of_a_new_term_brings_a_registration_there() -> None:
    cluster = SimCluster(managers=2)

    async def story() -> None:
        await begin(cluster)
        leader = cluster.managers["m2"]
        await leader.until(
            lambda: leader.node.membership.core.member("w1") is not None, "w1 as a member"
        )
        leader.leads, leader.term = True, 9
        await leader.parts_of("w1")
        await leader.worker("w1")
        await leader.until(lambda: leader.reports, "reports")

    cluster.play(story())


@pytest.mark.parametrize("how", ["deaf", "partition", "streams"])
def test_a_worker_without_managers_ends_its_load_in_time(how: str) -> None:
    cluster = SimCluster(managers=2)

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=LONG), cores=2)
        await run(manager, order)
        await cluster.world.sleep(2.0)
        if how == "deaf":  # their probes are answered as ever
            for each in cluster.managers.values():
                each.deaf = True
        else:
            cut = partition({"w1"}, {"m1", "m2"})
            cluster.world.network.cut(cut if how == "partition" else only("streams", cut))
        silent_at = cluster.world.now
        await cluster.world.sleep(20.0)
        assert cluster.last_load_at > silent_at  # not at the first missed answer
        assert cluster.last_load_at <= silent_at + FENCE_S + 0.2

        if how == "deaf":  # it can be spoken to, and would be cut off at once
            refused = await manager.dispatch("w1", manager.order(facts("Other")))
            assert (refused.accepted, refused.no_room) == (False, True)
        cluster.world.network.heal_all()
        for each in cluster.managers.values():
            each.deaf = False
        end = await manager.ended(order)
        assert end.outcome == "cut off"
        assert cluster.loaded[order.fence] == end.iterations
        await manager.all_free("w1", CORES)

    cluster.play(story())


@pytest.mark.parametrize("leads", [True, False])
def test_a_worker_cut_off_with_a_minority_ends_its_load_in_time(leads: bool) -> None:
    """The manager it is left with answers as ever, but its lease is over: the others have one."""
    cluster = SimCluster(managers=3)

    async def story() -> None:
        manager = await begin(cluster)
        near = manager if leads else succeed(cluster, "m2", 2)
        order = near.order(facts(load=LONG), cores=2)
        await near.worker("w1")
        await run(near, order)
        await cluster.world.sleep(2.0)
        cluster.world.network.cut(partition({"w1", "m1"}, {"m2", "m3"}))
        manager.leads, manager.other_leader = False, None
        silent_at = cluster.world.now
        await cluster.world.sleep(20.0)
        assert cluster.last_load_at > silent_at  # not at the first missed answer
        assert cluster.last_load_at <= silent_at + FENCE_S + 0.2
        held = await manager.parts_of("w1")
        assert [status.state for status in held.parts] == ["ended"]

    cluster.play(story())


def test_a_worker_cut_off_from_its_leader_alone_ends_its_load_in_time() -> None:
    """The others answer it, and their leader gives its work away."""
    cluster = SimCluster(managers=3)

    async def story() -> None:
        manager = await begin(cluster)
        for name in ("m2", "m3"):
            cluster.managers[name].other_leader = manager.place
        order = manager.order(facts(load=LONG), cores=2)
        await run(manager, order)
        await cluster.world.sleep(2.0)
        cluster.world.network.cut(only("streams", partition({"w1"}, {"m1"})))
        silent_at = cluster.world.now
        await cluster.world.sleep(20.0)
        assert cluster.managers["m2"].registrations, "the others were asked"
        assert silent_at < cluster.last_load_at <= silent_at + FENCE_S + 0.2

    cluster.play(story())


def test_a_leader_that_takes_no_reports_is_still_a_leader() -> None:
    """It is overloaded for longer than the fence: the worker makes sure that it leads."""
    cluster = SimCluster(managers=3)

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=LONG), cores=2)
        await run(manager, order)
        manager.overloaded = True
        await cluster.world.sleep(4 * FENCE_S)
        assert cluster.last_load_at > cluster.world.now - 0.2
        assert not manager.told(PartEnd, order)

    cluster.play(story())


def test_a_frozen_worker_does_not_go_on_when_it_thaws() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=LONG))
        await run(manager, order)
        await cluster.world.sleep(2.0)
        frozen_at = cluster.world.now
        cluster.world.pause("w1", 20.0)
        await cluster.world.sleep(21.0)
        end = await manager.ended(order)
        assert end.outcome == "cut off"
        assert end.measured_s <= frozen_at + FENCE_S
        await manager.until(lambda: manager.extensions, "a request for an extension")

    cluster.play(story())


def test_an_overloaded_leader_gets_no_numbers_and_later_all_of_them() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=LONG), cores=2)
        await run(manager, order)
        await manager.until(lambda: manager.deltas(order), "numbers")
        manager.level = 3
        await cluster.world.sleep(1.0)
        told, reports = len(manager.deltas(order)), len(manager.reports)
        await cluster.world.sleep(10.0)
        assert len(manager.deltas(order)) == told
        assert 9 <= len(manager.reports) - reports <= 12

        manager.level = 0
        await cluster.world.sleep(2.0)
        told_all = sum(r.count for d in manager.deltas(order).values() for r in d.requests)
        assert told_all >= cluster.loaded[order.fence] - 8  # but for the last tenth of a second

    cluster.play(story())


def test_a_delay_spaces_the_reports() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        manager.level, manager.delay_ms = 1, 450
        order = manager.order(facts(load=LONG))
        await run(manager, order)
        await cluster.world.sleep(1.0)
        before = len(manager.reports)
        await cluster.world.sleep(10.0)
        assert 17 <= len(manager.reports) - before <= 20

    cluster.play(story())


def test_a_snapshot_is_sent_when_it_is_asked_for_and_deltas_go_on_from_it() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=LONG), cores=2)
        await run(manager, order)
        await cluster.world.sleep(3.0)
        manager.wanted = (order.part,)

        def arrived() -> list[object]:
            return [entry for entry in manager.progress(order) if entry.snapshot]

        await manager.until(arrived, "a snapshot")
        manager.wanted = ()
        await cluster.world.sleep(2.0)
        snapshot = [entry for entry in manager.progress(order) if entry.snapshot][-1]
        total = aggregate_of(order.facts)
        total.restore(0, snapshot.snapshot, snapshot.snapshot_seq)
        for delta in manager.deltas(order).values():
            total.apply(0, delta)
        assert cluster.loaded[order.fence] - 8 <= total.requests <= cluster.loaded[order.fence]

    cluster.play(story())


def test_a_part_nobody_waits_for_is_ended() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=LONG))
        await run(manager, order)
        manager.unwanted = ((order.part, order.fence),)
        assert (await manager.ended(order)).outcome == "cancelled"
        await manager.all_free("w1", CORES)

    cluster.play(story())


def test_draining_finishes_what_runs_and_takes_nothing_new() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=ClosedVUs(vus=2, duration_s=8.0)))
        await run(manager, order)
        host = cluster.world.host("w1")
        leaving = host.tasks.spawn("leave", leave(cluster))
        await manager.until(lambda: manager.reports[-1].draining, "to hear of it")
        refused = await manager.dispatch("w1", manager.order(facts("Other")))
        assert (refused.accepted, refused.no_room) == (False, True)

        end = await manager.ended(order)
        assert (end.outcome, end.measured_s) == ("completed", pytest.approx(8.0))
        await leaving
        assert [word.worker for word in manager.left] == ["w1"]
        await manager.until(
            lambda: not manager.node.membership.core.member("w1").live,  # type: ignore[union-attr]
            "w1 to have left",
        )

    async def leave(world: SimCluster) -> None:
        await world.worker.drain()
        await world.worker.stop()

    cluster.play(story())


def test_a_drain_that_takes_too_long_gives_its_work_back() -> None:
    cluster = SimCluster(drain_s=3.0)

    async def story() -> None:
        manager = await begin(cluster)
        order = manager.order(facts(load=LONG))
        await run(manager, order)
        await cluster.world.host("w1").tasks.spawn("drain", cluster.worker.drain())
        assert (await manager.ended(order)).outcome == "cut off"
        assert len(cluster.worker.outbox) == 0

    cluster.play(story())


def test_probes_carry_how_the_worker_is() -> None:
    cluster = SimCluster()

    async def story() -> None:
        manager = await begin(cluster)

        def pulse() -> WorkerPulse | None:
            vitals = manager.node.vitals.get("w1")
            if vitals is None or not vitals.pulse:
                return None
            return msgspec.msgpack.decode(vitals.pulse, type=WorkerPulse)

        def seen(state: str, free: int) -> bool:
            now = pulse()
            return now is not None and (now.state, now.free_cores) == (state, free)

        await manager.until(lambda: seen("healthy", CORES), "a healthy worker")
        await run(manager, manager.order(facts(load=LONG), cores=3))
        await manager.until(lambda: seen("healthy", 1), "one core free")
        cluster.worker.parts.drain_state.leaving = True
        await manager.until(lambda: seen("draining", 1), "a draining worker")

    cluster.play(story())
