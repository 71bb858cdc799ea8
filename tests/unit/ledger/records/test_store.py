"""Writes and checkpoints of the records: in order, and never an older one over a newer."""

from __future__ import annotations

import asyncio

import pytest

from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.records import Record
from hyperscale.ledger.records.entries import LogEntry
from hyperscale.ledger.records.replica import TermPromise, Write
from hyperscale.ledger.records.snapshots import Captured
from hyperscale.ledger.records.store import Found, Store, _encode
from hyperscale.ledger.unreadable import UnreadableRecord
from hyperscale.ledger.wal import Record as WalRecord
from tests.unit.ledger.records.cluster import SETTINGS
from tests.unit.sim.worlds import finish, world_of


def record(index: int) -> Record:
    return Record(index, "job", 1, b"", Fence(1))


def write(index: int, term: int = 1, commit: int = 0) -> Write:
    return Write(LogEntry(index, term, record(index)), commit)


def test_a_slow_checkpoint_does_not_take_the_place_of_a_state_received_after_it() -> None:
    async def story() -> None:
        store = Store(world.host("a"), "records", SETTINGS)
        await store.open()
        store.put([TermPromise(1), write(1), write(2)], 3)
        many = [(record(1),)] * 500
        older = store.save(Captured(1, 1, many, 1, 1, (LogEntry(2, 1, record(2)),)))
        newer = store.save(Captured(9, 1, [(record(9),)], 1, 9), first=True)
        assert await newer
        await older
        await store.close()
        found = await Store(world.host("a"), "records", SETTINGS).open()
        assert (found.base_index, found.commit_index, found.entries) == (9, 9, [])

    world = world_of("a")
    finish(world, story())


def test_a_checkpoint_that_fails_is_no_failure_of_the_log() -> None:
    async def story() -> None:
        store = Store(world.host("a"), "records", SETTINGS)
        await store.open()
        written: list[int] = []
        store.on_written = written.append
        store.put([TermPromise(1)], 1)
        disk = world.machines["a"].disk
        await asyncio.sleep(1)
        disk.capacity = disk.used_bytes
        assert not await store.save(Captured(0, 0, [(record(1),)]))
        disk.capacity = None
        store.put([write(1)], 2)
        await asyncio.sleep(1)
        assert written == [1, 2]
        assert store.failure is None
        assert store.checkpoints_failed == 1

    world = world_of("a")
    finish(world, story())


def replayed(*writes: TermPromise | Write) -> Found:
    found = Found()
    found.replay([WalRecord(lsn, _encode(one)) for lsn, one in enumerate(writes, 1)])
    return found


def test_a_write_takes_the_place_of_all_from_its_index_on() -> None:
    found = replayed(TermPromise(1), write(1), write(2), write(3), TermPromise(4), write(2, term=4))
    assert found.term == 4
    assert [(entry.index, entry.term) for entry in found.entries] == [(1, 1), (2, 4)]


@pytest.mark.parametrize(
    "writes",
    [
        (write(1), write(3)),
        (write(1), write(2, commit=1), write(1, term=2)),
    ],
)
def test_a_log_that_does_not_follow_from_its_checkpoint_is_refused(
    writes: tuple[Write, ...],
) -> None:
    with pytest.raises(UnreadableRecord, match="does not follow"):
        replayed(*writes)


def test_a_newer_format_is_refused_by_name() -> None:
    with pytest.raises(UnreadableRecord, match="record 7 of the job records") as refused:
        Found().replay([WalRecord(7, b"\x92\x63\x01")])
    assert "newer" in refused.value.hint
