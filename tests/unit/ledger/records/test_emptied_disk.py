"""A voter that comes back with an empty disk: it has forgotten what it confirmed and promised."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from hyperscale.ledger.checkpoints import Policy
from hyperscale.ledger.records import QuorumTimeout, QuorumUnavailable
from hyperscale.ledger.wal.repair import repair
from tests.unit.ledger.records.cluster import FENCE, SETTINGS, Cluster, payloads, play


async def wipe(cluster: Cluster, name: str) -> None:
    await cluster.kill(name)
    disk = cluster.world.host(name).disk
    for file in await disk.list("records/wal"):
        await disk.remove(f"records/wal/{file}")
    await disk.sync_directory("records/wal")
    await cluster.start(name)


async def begun(cluster: Cluster) -> None:
    """`a` leads, and all three have the first record."""
    await cluster.start_all()
    await cluster.nodes["a"].lead(1)
    await cluster.nodes["a"].append("job", 1, b"one", FENCE)
    await cluster.settled()
    await cluster.belong()


def test_it_does_not_help_to_lose_what_it_had_confirmed() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        cluster.cut = {"c"}
        await cluster.nodes["a"].append("job", 1, b"two", FENCE)
        await wipe(cluster, "b")
        cluster.cut = {"a"}
        with pytest.raises(QuorumUnavailable):
            await cluster.nodes["c"].lead(2)
        cluster.cut = set()
        await cluster.nodes["c"].lead(2)
        assert payloads(cluster.nodes["c"], "job") == [b"one", b"two"]

    play(story)


def test_its_leader_brings_it_up_to_date_without_haste() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        await wipe(cluster, "b")
        requests = 0

        def count(_sender: str, to: str, data: bytes) -> bytes:
            nonlocal requests
            requests += to == "b"
            return data

        cluster.meddle = count
        await cluster.nodes["a"].append("job", 1, b"two", FENCE)
        await cluster.settled()
        assert payloads(cluster.nodes["b"], "job") == [b"one", b"two"]
        assert requests < 20

    play(story)


def test_once_up_to_date_it_counts_again() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        await wipe(cluster, "b")
        await cluster.nodes["a"].append("job", 1, b"two", FENCE)
        await cluster.settled()
        await cluster.belong()
        await cluster.kill("b")
        await cluster.start("b")
        cluster.cut = {"a"}
        await cluster.nodes["b"].lead(2)
        assert payloads(cluster.nodes["b"], "job") == [b"one", b"two"]
        await cluster.nodes["b"].append("job", 1, b"three", FENCE)

    play(story)


def test_it_stays_new_until_then_also_over_a_restart() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        cluster.cut = {"c"}
        await cluster.nodes["a"].append("job", 1, b"two", FENCE)
        cluster.cut = {"a"}
        await wipe(cluster, "b")
        with pytest.raises(QuorumUnavailable):
            await cluster.nodes["c"].lead(2)
        await cluster.kill("b")
        await cluster.start("b")
        with pytest.raises(QuorumUnavailable):
            await cluster.nodes["c"].lead(3)

    play(story)


def test_an_old_leader_cannot_confirm_with_one_that_forgot_its_promise() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        cluster.cut = {"a"}
        await cluster.nodes["c"].lead(2)
        await wipe(cluster, "b")
        cluster.cut = {"c"}
        with pytest.raises((QuorumTimeout, QuorumUnavailable)):
            await cluster.nodes["a"].append("job", 1, b"old", FENCE)
        cluster.cut = set()
        await cluster.nodes["c"].append("job", 1, b"new", FENCE)
        await cluster.settled()
        assert payloads(cluster.nodes["a"], "job") == [b"one", b"new"]

    play(story)


def test_the_newcomer_itself_may_lead_when_the_others_are_there() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        await wipe(cluster, "a")
        await cluster.nodes["a"].lead(2)
        assert payloads(cluster.nodes["a"], "job") == [b"one"]
        await cluster.nodes["a"].append("job", 1, b"two", FENCE)
        assert not cluster.nodes["a"].status().newcomer

    play(story)


def test_a_new_cluster_begins_with_a_majority() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start("a")
        await cluster.start("b")
        await cluster.nodes["b"].lead(1)
        await cluster.nodes["b"].append("job", 1, b"one", FENCE)
        await cluster.start("c")
        await cluster.settled()
        await cluster.belong()
        cluster.cut = {"b"}
        await cluster.nodes["c"].lead(2)
        assert payloads(cluster.nodes["c"], "job") == [b"one"]

    play(story)


async def repaired(cluster: Cluster, name: str, word: bytes) -> None:
    """A bit of what it confirmed has rotted; somebody cuts the log there."""
    await cluster.kill(name)
    host, image = cluster.world.host(name), cluster.world.machines[name].disk
    for segment in await host.disk.list("records/wal"):
        data = image.file(f"records/wal/{segment}").data
        if word in bytes(data):
            data[bytes(data).index(word)] ^= 1
    assert await repair(host.disk, host.clock, "records/wal") is not None
    await cluster.start(name)


async def without_log(cluster: Cluster, name: str, _word: bytes) -> None:
    """A checkpoint is left, the log is on a volume that is not there."""
    await cluster.until(lambda: bool(cluster.nodes[name]._durable.replica.log.base_index))
    await wipe(cluster, name)


@pytest.mark.parametrize("forget", [repaired, without_log])
def test_who_has_forgotten_in_part_does_not_count_either(
    forget: Callable[[Cluster, str, bytes], Awaitable[None]],
) -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        cluster.cut = {"c"}
        for text in (b"two", b"three", b"four"):
            await cluster.nodes["a"].append("job", 1, text, FENCE)
        await cluster.settled()
        await forget(cluster, "b", b"two")
        cluster.cut = {"a"}
        with pytest.raises(QuorumUnavailable):
            await cluster.nodes["c"].lead(2)
        cluster.cut = set()
        await cluster.nodes["c"].lead(2)
        everything = [b"one", b"two", b"three", b"four"]
        assert payloads(cluster.nodes["c"], "job") == everything
        await cluster.settled()
        await cluster.belong()
        await cluster.kill("b")
        await cluster.start("b")
        assert not cluster.nodes["b"].status().newcomer, "it counts, also after another start"
        await cluster.settled()
        assert payloads(cluster.nodes["b"], "job") == everything

    settings = SETTINGS
    if forget is without_log:
        settings = replace(
            SETTINGS, checkpoint=Policy(records=1, seconds=1), entries_kept=1, tidy_s=0.1
        )
    play(story, settings=settings)
