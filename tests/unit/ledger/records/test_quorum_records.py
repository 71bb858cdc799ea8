"""Job records among voters, as a manager sees them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import InvariantBroken
from hyperscale.errors import BadInput, RunFailed
from hyperscale.ledger.checkpoints import Policy
from hyperscale.ledger.records import (
    Deposed,
    LocalRecords,
    NotLeader,
    QuorumTimeout,
    QuorumUnavailable,
    RecordsFull,
    RecordTooLarge,
    StaleFence,
)
from hyperscale.ledger.records.entries import Entry
from hyperscale.ledger.records.messages import Append, encode
from hyperscale.ledger.wal import LogFailed
from tests.unit.ledger.records.cluster import FENCE, SETTINGS, Cluster, payloads, play
from tests.unit.sim.worlds import finish, world_of


def test_a_record_is_on_every_replica_in_order() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        leader = cluster.nodes["a"]
        await leader.lead(1)
        indexes = await asyncio.gather(
            *(leader.append("job", n, b"%d" % n, FENCE) for n in range(200))
        )
        assert indexes == sorted(indexes)
        await cluster.settled()
        for node in cluster.nodes.values():
            assert payloads(node, "job") == [b"%d" % n for n in range(200)]
        assert [record.kind for record in cluster.applied["c"]] == list(range(200))

    play(story)


def test_many_callers_share_few_requests() -> None:
    async def story(cluster: Cluster) -> None:
        requests = 0

        def count(_sender: str, _to: str, data: bytes) -> bytes:
            nonlocal requests
            requests += 1
            return data

        await cluster.start_all()
        leader = cluster.nodes["a"]
        await leader.lead(1)
        cluster.meddle = count
        await asyncio.gather(*(leader.append(f"job {n}", 1, b"", FENCE) for n in range(1_000)))
        assert requests < 40

    play(story)


def test_one_voter_down_changes_nothing_two_down_stop_the_leader() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        leader = cluster.nodes["a"]
        await leader.lead(1)
        cluster.cut = {"b"}
        await leader.append("job", 1, b"one down", FENCE)
        cluster.cut = {"b", "c"}
        with pytest.raises(QuorumTimeout) as unknown:
            await leader.append("job", 1, b"two down", FENCE)
        assert unknown.value.maybe_written
        await asyncio.sleep(SETTINGS.reachable_s)
        with pytest.raises(QuorumUnavailable, match="1 of 3") as refused:
            await leader.append("job", 1, b"refused", FENCE)
        assert not refused.value.maybe_written
        cluster.cut = set()
        await cluster.until(lambda: len(leader.status().reachable) == 3)
        await leader.append("job", 1, b"back", FENCE)
        assert payloads(leader, "job") == [b"one down", b"two down", b"back"]

    play(story)


def test_a_new_leader_fetches_what_it_lacks() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        await cluster.nodes["a"].lead(1)
        await cluster.belong()
        cluster.cut = {"c"}
        for n in range(30):
            await cluster.nodes["a"].append("job", 1, b"%d" % n, FENCE)
        cluster.cut = set()
        await cluster.kill("a")
        assert payloads(cluster.nodes["c"], "job") == []
        await cluster.nodes["c"].lead(2)
        assert payloads(cluster.nodes["c"], "job") == [b"%d" % n for n in range(30)]
        await cluster.start("a")
        await cluster.nodes["c"].append("job", 1, b"new", FENCE)
        await cluster.settled()
        assert payloads(cluster.nodes["a"], "job")[-1] == b"new"

    play(story)


def test_who_is_deposed_confirms_nothing_more() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        old, new = cluster.nodes["a"], cluster.nodes["b"]
        await old.lead(1)
        await old.append("job", 1, b"kept", FENCE)
        cluster.cut = {"a"}
        pending = asyncio.ensure_future(old.append("job", 1, b"lost", FENCE))
        await asyncio.sleep(0.1)
        await new.lead(2)
        await new.append("job", 2, b"new", Fence(2))
        cluster.cut = set()
        with pytest.raises(Deposed) as told:
            await pending
        assert told.value.maybe_written
        with pytest.raises(NotLeader):
            await old.append("job", 1, b"late", FENCE)
        await cluster.settled()
        assert payloads(old, "job") == [b"kept", b"new"]
        with pytest.raises(NotLeader):
            await old.lead(1)

    play(story)


def test_all_die_and_everything_acknowledged_is_there() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        await cluster.nodes["a"].lead(1)
        for n in range(20):
            await cluster.nodes["a"].append(f"job {n % 3}", 1, b"%d" % n, FENCE)
        for name in cluster.names:
            await cluster.kill(name)
        await cluster.start_all()
        await cluster.nodes["b"].lead(2)
        assert cluster.nodes["b"].jobs() == ["job 0", "job 1", "job 2"]
        assert payloads(cluster.nodes["b"], "job 2") == [b"%d" % n for n in range(2, 20, 3)]

    play(story)


def test_lead_needs_a_majority_and_may_be_tried_again() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        cluster.cut = {"b", "c"}
        with pytest.raises(QuorumUnavailable, match="2 are needed"):
            await cluster.nodes["a"].lead(1)
        with pytest.raises(NotLeader):
            await cluster.nodes["a"].append("job", 1, b"", FENCE)
        cluster.cut = {"c"}
        await cluster.nodes["a"].lead(1)
        await cluster.nodes["a"].append("job", 1, b"", FENCE)

    play(story)


def test_checkpoints_bound_log_and_memory_and_a_laggard_gets_the_state() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        leader = cluster.nodes["a"]
        await leader.lead(1)
        await leader.append("stays", 1, b"s", FENCE)
        await leader.append("nightly", 1, b"monday", FENCE)
        await cluster.settled()
        cluster.cut = {"c"}
        await leader.forget("nightly")
        await leader.append("nightly", 1, b"tuesday", FENCE)
        for n in range(600):
            await leader.append(f"job {n}", 1, b"x" * 100, FENCE)
            if n >= 10:
                await leader.forget(f"job {n - 10}")
        await leader.append("huge", 7, b"h" * 900, FENCE)
        durable = leader._durable
        await cluster.until(lambda: durable.replica.log.base_index > 1_000)
        assert durable.replica.log.last_index - durable.replica.log.base_index < 200
        assert leader.status().disk_bytes < 150_000
        cluster.cut = set()
        await cluster.settled()
        assert cluster.nodes["c"].jobs() == leader.jobs()
        assert payloads(cluster.nodes["c"], "huge") == [b"h" * 900]
        assert cluster.forgotten["c"] == ["nightly"], "Monday's, before Tuesday's is told"
        seen = [record.index for record in cluster.applied["c"]]
        assert seen == sorted(seen)
        await cluster.kill("c")
        await cluster.start("c")
        assert cluster.nodes["c"].jobs() == leader.jobs()

    play(
        story,
        settings=replace(
            SETTINGS,
            checkpoint=Policy(records=50, seconds=5),
            entries_kept=20,
            part_bytes=100,
            tidy_s=0.1,
        ),
    )


def test_a_new_leader_that_lacks_dropped_entries_fetches_the_state() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        leader = cluster.nodes["a"]
        await leader.lead(1)
        await leader.append("gone", 1, b"", FENCE)
        await cluster.settled()
        cluster.cut = {"c"}
        await leader.forget("gone")
        for n in range(100):
            await leader.append(f"job {n}", 1, b"x" * 50, FENCE)
        for name in ("a", "b"):
            log = cluster.nodes[name]._durable.replica.log
            await cluster.until(lambda log=log: log.base_index > 80)
        await cluster.kill("a")
        cluster.cut = set()
        await cluster.nodes["c"].lead(2)
        assert cluster.nodes["c"].jobs() == [f"job {n}" for n in range(100)]
        assert cluster.forgotten["c"] == ["gone"]
        await cluster.nodes["c"].append("after", 1, b"", Fence(2))
        await cluster.settled()

    play(
        story,
        settings=replace(
            SETTINGS,
            checkpoint=Policy(records=30, seconds=5),
            entries_kept=5,
            part_bytes=999,
            tidy_s=0.1,
        ),
    )


def test_an_ended_job_is_forgotten_after_its_time_everywhere() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        leader = cluster.nodes["a"]
        await leader.lead(1)
        await leader.append("short", 9, b"done", FENCE, keep_s=20.0)
        await leader.append("long", 9, b"failed", FENCE, keep_s=60.0)
        await leader.append("open", 1, b"", FENCE)
        await asyncio.sleep(19)
        await cluster.nodes["b"].lead(2)  # the new leader keeps the time too
        assert "short" in cluster.nodes["b"].jobs()
        await asyncio.sleep(3)
        assert [node.jobs() for node in cluster.nodes.values()] == [["long", "open"]] * 3
        await asyncio.sleep(60)
        assert [node.jobs() for node in cluster.nodes.values()] == [["open"]] * 3
        assert cluster.forgotten["c"] == ["short", "long"]

    play(story)


def test_what_is_refused_before_anything_is_written() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        leader = cluster.nodes["a"]
        with pytest.raises(NotLeader):
            await leader.append("job", 1, b"", FENCE)
        await leader.lead(1)
        await leader.append("job", 1, b"", Fence(1, 2, 3))
        with pytest.raises(StaleFence):
            await leader.append("job", 1, b"", Fence(1, 2, 2))
        newer = asyncio.ensure_future(leader.append("job", 1, b"", Fence(1, 3)))
        await asyncio.sleep(0)
        with pytest.raises(StaleFence):
            await leader.append("job", 1, b"", Fence(1, 2, 9))
        await newer
        with pytest.raises(RecordTooLarge):
            await leader.append("job", 1, bytes(1001), FENCE)
        await leader.append("other", 1, b"", FENCE)
        with pytest.raises(RecordsFull):
            await leader.append("third", 1, b"", FENCE)
        await leader.append("other", 1, b"goes on", FENCE)
        assert leader.status().last_index == 5
        with pytest.raises(BadInput):
            await leader.handle("stranger", b"")
        with pytest.raises(BadInput):
            await leader.handle("b", b"\x01nonsense")

    play(story, settings=replace(SETTINGS, record_bytes_max=1000, jobs_max=2))


def test_a_cancelled_caller_harms_nobody() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        leader = cluster.nodes["a"]
        await leader.lead(1)
        calls = [asyncio.ensure_future(leader.append("job", n, b"", FENCE)) for n in range(10)]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        await asyncio.wait(calls)
        assert all(call.done() and not call.cancelled() for call in calls[1::2])
        assert [record.kind for record in leader.records("job")] == list(range(10))
        assert leader.status().pending == 0

    play(story)


def test_a_failed_disk_fails_the_waiters_and_the_node() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        leader = cluster.nodes["a"]
        await leader.lead(1)
        await cluster.belong()
        cluster.world.machines["a"].disk.sync_errors = 1.0
        with pytest.raises(LogFailed):
            await leader.append("job", 1, b"", FENCE)
        assert isinstance(await leader.failed(), LogFailed)
        assert leader.status().role == "failed"
        for call in (leader.append("job", 1, b"", FENCE), leader.lead(2), leader.handle("b", b"")):
            with pytest.raises(LogFailed):
                await call
        cluster.world.machines["a"].disk.heal()
        await cluster.nodes["b"].lead(2)

    play(story)


def test_a_listener_that_raises_ends_the_records() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        leader = cluster.nodes["a"]
        await leader.lead(1)
        leader.on_applied.append(lambda record: 1 / 0)  # type: ignore[arg-type,return-value]
        with pytest.raises(Exception, match="ZeroDivisionError"):
            await leader.append("job", 1, b"", FENCE)
        assert "ZeroDivisionError" in str(await leader.failed())

    play(story)


def test_two_calls_to_lead_one_term_both_succeed() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        leader = cluster.nodes["a"]
        await asyncio.gather(leader.lead(1), leader.lead(1))
        assert leader.status().last_index == 1, "one barrier"
        older, newer = await asyncio.gather(leader.lead(2), leader.lead(3), return_exceptions=True)
        assert isinstance(older, NotLeader)
        assert newer is None
        assert leader.status().term == 3

    play(story)


def test_a_contradiction_of_what_is_committed_ends_the_records() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        await cluster.nodes["a"].lead(1)
        await cluster.nodes["a"].append("job", 1, b"", FENCE)
        await cluster.settled()
        victim = cluster.nodes["b"]
        lie = encode(Append(9, 1, 1, 2, (Entry(2, 9),)))
        with pytest.raises(InvariantBroken):
            await victim.handle("c", lie)
        assert "contradict those of c" in str(await victim.failed())
        with pytest.raises(RunFailed):
            await victim.handle("c", lie)

    play(story)


def test_records_of_a_node_alone() -> None:
    async def story() -> None:
        host = world.host("a")
        records = LocalRecords(host, "records", "a", SETTINGS)
        await records.open()
        await records.lead(1)
        await asyncio.gather(*(records.append("job", n, b"", FENCE) for n in range(50)))
        await records.close()
        with pytest.raises(Exception, match="closed"):
            await records.append("job", 1, b"", FENCE)
        again = LocalRecords(host, "records", "a", SETTINGS)
        await again.open()
        with pytest.raises(NotLeader, match="promised term 1"):
            await again.lead(1)
        await again.lead(2)
        assert [record.kind for record in again.records("job")] == list(range(50))
        await again.close()

    world = world_of("a")
    finish(world, story())


def test_no_room_while_a_majority_is_silent() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        leader = cluster.nodes["a"]
        await leader.lead(1)
        cluster.cut = {"b", "c"}
        calls = [asyncio.ensure_future(leader.append("job", 1, b"", FENCE)) for _ in range(12)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(result) for result in results] == [QuorumTimeout] * 10 + [RecordsFull] * 2

    play(story, settings=replace(SETTINGS, pending_max=10))


def test_a_voter_that_takes_no_state_is_not_pressed() -> None:
    """Packing the state costs as much as a checkpoint."""
    settings = replace(
        SETTINGS,
        checkpoint=Policy(records=10, seconds=1e9),
        entries_kept=0,
        tidy_s=0.1,
        state_bytes_max=500,
    )

    async def story(cluster: Cluster) -> None:
        await cluster.start_all()
        leader = cluster.nodes["a"]
        await leader.lead(1)
        await cluster.belong()
        cluster.cut = {"c"}
        for n in range(30):
            await leader.append("job", n, b"x" * 100, FENCE)
        await asyncio.sleep(1.0)
        asked = 0

        def count(_sender: str, to: str, data: bytes) -> bytes:
            nonlocal asked
            asked += to == "c"
            return data

        cluster.meddle, cluster.cut = count, set()
        await asyncio.sleep(2.0)
        assert 0 < asked < 20

    play(story, settings=settings)
