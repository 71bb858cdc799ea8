"""Checkpoints: whole or not there, the newest that is whole, and the log's tail on top."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hyperscale.ledger.checkpoints import Checkpoints, Policy, restore
from hyperscale.ledger.wal import LogCompacted, Record, WriteAheadLog
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World
from tests.unit.ledger.wal.logs import DIRECTORY, SMALL, simulate


def names(world: World) -> list[str]:
    disk = world.machines["a"].disk
    return [path.removeprefix("ckpt/") for path, _ in disk.files() if path.startswith("ckpt/")]


def test_the_newest_of_three_is_loaded() -> None:
    async def story(world: World, host: SimHost) -> None:
        checkpoints = Checkpoints(host, "ckpt")
        assert await checkpoints.load() is None
        for lsn in (9, 100, 20, 3_000, 400):
            await checkpoints.save(lsn, b"state %d" % lsn)
        assert len(names(world)) == 3
        loaded = await Checkpoints(host, "ckpt").load()
        assert loaded is not None
        assert (loaded.facts.lsn, loaded.state) == (3_000, b"state 3000")

    simulate(story)


def test_the_log_may_go_only_up_to_the_oldest_kept() -> None:
    async def story(world: World, host: SimHost) -> None:
        checkpoints = Checkpoints(host, "ckpt")
        assert checkpoints.safe_lsn == 0
        for lsn, safe in ((10, 0), (20, 0), (30, 10), (40, 20)):
            await checkpoints.save(lsn, b"")
            assert checkpoints.safe_lsn == safe
        await checkpoints.save(50, b"", replicated_lsn=5)
        assert checkpoints.safe_lsn == 5, "later records are still owed to replication"
        again = Checkpoints(host, "ckpt")
        await again.load()
        assert again.safe_lsn == 5

    simulate(story)


def test_no_flipped_bit_is_loaded() -> None:
    async def story(world: World, host: SimHost) -> None:
        checkpoints = Checkpoints(host, "ckpt")
        await checkpoints.save(1, b"old")
        await checkpoints.save(2, b"the new state")
        newest = world.machines["a"].disk.file(f"ckpt/{names(world)[-1]}")
        for bit in range(len(newest.data) * 8):
            newest.data[bit // 8] ^= 1 << bit % 8
            loaded = await checkpoints.load()
            assert loaded is not None
            assert loaded.state == b"old"
            assert len(checkpoints.passed_over) == 1
            newest.data[bit // 8] ^= 1 << bit % 8
        for size in range(len(newest.data)):
            whole = newest.data[:]
            newest.data = newest.data[:size]
            loaded = await checkpoints.load()
            assert loaded is not None
            assert loaded.state == b"old"
            newest.data = whole

    simulate(story)


def test_a_crash_at_any_moment_of_a_save_leaves_the_old_or_the_new() -> None:
    outcomes = set()
    for step in range(40):

        async def story(world: World, host: SimHost, step: int = step) -> bytes:
            checkpoints = Checkpoints(host, "ckpt")
            await checkpoints.save(1, b"old")
            host.tasks.spawn("save", checkpoints.save(2, b"new" * 1_000))
            await asyncio.sleep(step * 0.0002)
            world.crash("a", "torn" if step % 2 else "lost-unsynced")
            world.restart("a")
            await asyncio.sleep(0)
            loaded = await Checkpoints(world.host("a"), "ckpt").load()
            assert loaded is not None
            return loaded.state[:3]

        outcomes.add(simulate(story))
    assert outcomes == {b"old", b"new"}


def test_two_saves_at_once_do_not_disturb_each_other() -> None:
    async def story(world: World, host: SimHost) -> None:
        checkpoints = Checkpoints(host, "ckpt")
        await asyncio.gather(*(checkpoints.save(lsn, bytes(3 << 20)) for lsn in (1, 2, 3, 4)))
        assert len(names(world)) == 3
        loaded = await Checkpoints(host, "ckpt").load()
        assert loaded is not None
        assert loaded.facts.lsn == 4

    simulate(story)


def test_a_large_state_is_written_in_bites() -> None:
    async def story(world: World, host: SimHost) -> None:
        state = bytes(range(256)) * 20_000
        checkpoints = Checkpoints(host, "ckpt")
        await checkpoints.save(1, state)
        loaded = await checkpoints.load()
        assert loaded is not None
        assert loaded.state == state

    simulate(story)


class Sum:
    """A state that depends on every record."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def load(self, state: bytes) -> None:
        self.seen = [int(word) for word in state.split()]

    def apply(self, records: Sequence[Record]) -> None:
        self.seen += [int(record.payload) for record in records]

    def save(self) -> bytes:
        return b" ".join(b"%d" % number for number in self.seen)


def test_checkpoint_and_tail_give_the_whole() -> None:
    async def story(world: World, host: SimHost) -> None:
        for life in range(6):
            state, checkpoints = Sum(), Checkpoints(host, "ckpt")
            restored = await restore(host, DIRECTORY, checkpoints, state.load, state.apply, SMALL)
            assert state.seen == list(range(life * 10))
            assert restored.replayed == (5 if life else 0)
            log = restored.log
            for number in range(life * 10, life * 10 + 5):
                lsn = await log.append(b"%d" % number)
                state.seen.append(number)
            await checkpoints.save(lsn, state.save())
            await log.compact(checkpoints.safe_lsn)
            for number in range(life * 10 + 5, life * 10 + 10):
                await log.append(b"%d" % number)
            await log.close()

    simulate(story)


def test_losing_every_checkpoint_after_compaction_is_refused() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await WriteAheadLog.open(host, DIRECTORY, SMALL)
        checkpoints = Checkpoints(host, "ckpt", kept=1)
        for number in range(20):
            lsn = await log.append(b"%d" % number * 20)
        await checkpoints.save(lsn, b"")
        assert await log.compact(checkpoints.safe_lsn) > 0
        await log.close()
        world.machines["a"].disk.file(f"ckpt/{names(world)[0]}").data[-1] ^= 1
        state = Sum()
        with pytest.raises(LogCompacted, match="begins after"):
            await restore(host, DIRECTORY, checkpoints, state.load, state.apply, SMALL)

    simulate(story)


def test_when_a_checkpoint_is_due() -> None:
    policy = Policy(records=100, seconds=300.0)
    assert not policy.due(now=1e9, last_at=0.0, last_lsn=50, lsn=50), "nothing has changed"
    assert not policy.due(now=299.0, last_at=0.0, last_lsn=50, lsn=149)
    assert policy.due(now=300.0, last_at=0.0, last_lsn=50, lsn=51)
    assert policy.due(now=1.0, last_at=0.0, last_lsn=50, lsn=150)


def test_one_that_does_not_fit_takes_no_room_from_the_log() -> None:
    async def story(world: World, host: SimHost) -> None:
        checkpoints, disk = Checkpoints(host, "ckpt"), world.machines["a"].disk
        await checkpoints.save(1, b"small")
        before = names(world)
        disk.capacity = 3 << 20
        for lsn in (2, 3):
            with pytest.raises(OSError, match="space"):
                await checkpoints.save(lsn, bytes(4 << 20))
            assert names(world) == before
        left = await host.disk.open("ckpt/checkpoint_00000000000000000009.ckpt.new")
        await left.append_and_sync(b"of a node that was killed while it wrote")
        await left.close()
        loaded = await checkpoints.load()
        assert loaded is not None
        assert loaded.state == b"small"
        assert names(world) == before

    simulate(story)
