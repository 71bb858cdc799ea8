"""States as bytes: what they hold, and that other work gets its turn meanwhile."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec
import pytest

from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.records.api import Record
from hyperscale.ledger.records.entries import Entry
from hyperscale.ledger.records.messages import State
from hyperscale.ledger.records.snapshots import (
    BITE_BYTES,
    Captured,
    PackedState,
    PartialState,
    Snapshot,
    decode,
    records_of,
)
from hyperscale.ledger.unreadable import UnreadableRecord

T = TypeVar("T")


def on_a_loop(story: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @functools.wraps(story)
    def test() -> None:
        asyncio.run(story())

    return test


def record(index: int, size_bytes: int = 3) -> Record:
    return Record(index, f"j{index}", 1, bytes(size_bytes), Fence(1))


async def all_of(jobs: list[msgspec.Raw]) -> list[Record]:
    return [one async for one in records_of(jobs)]


async def turns_during(work: Awaitable[T]) -> tuple[T, int]:
    """What others could do in the meantime."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.ensure_future(other())
    try:
        return await work, turns
    finally:
        task.cancel()


@on_a_loop
async def test_a_state_is_read_back_as_it_was() -> None:
    jobs = [(record(1), record(2)), (), tuple(record(n) for n in range(3, 90))]
    captured = Captured(90, 4, jobs, 5, 91, (Entry(91, 5, record(91)),), True)
    snapshot = decode(await captured.encode())
    assert await all_of(snapshot.jobs) == [one for job in jobs for one in job]
    rest = (snapshot.index, snapshot.index_term, snapshot.term, snapshot.commit_index)
    assert rest == (90, 4, 5, 91)
    assert snapshot.tail == captured.tail
    assert snapshot.newcomer


@on_a_loop
async def test_states_that_earlier_versions_wrote_are_read() -> None:
    pieces = [msgspec.msgpack.encode(job) for job in ([record(1)], [record(2), record(3)])]
    written = msgspec.msgpack.encode((1, 3, 1, pieces, 1, 3, (), False))
    assert await all_of(decode(written).jobs) == [record(1), record(2), record(3)]
    assert Snapshot.__struct_fields__[3] == "jobs"


@on_a_loop
async def test_one_large_job_does_not_hold_the_loop() -> None:
    parts = 32
    captured = Captured(parts, 1, [tuple(record(n, BITE_BYTES // 2) for n in range(parts))])
    state, turns = await turns_during(captured.encode())
    assert turns >= parts // 2 - 1
    found, turns = await turns_during(all_of(decode(state).jobs))
    assert len(found) == parts
    assert turns >= parts // 2 - 1


@on_a_loop
async def test_many_small_records_do_not_hold_it_either() -> None:
    captured = Captured(9, 1, [tuple(record(n, 0) for n in range(5_000))])
    state, turns = await turns_during(captured.encode())
    assert turns >= 3
    _, turns = await turns_during(all_of(decode(state).jobs))
    assert turns >= 3


@on_a_loop
async def test_what_is_no_job_is_refused_when_it_is_read() -> None:
    with pytest.raises(UnreadableRecord, match="not one of job records"):
        await all_of(decode(msgspec.msgpack.encode((1, 3, 1, ["text"], 1, 3, (), False))).jobs)
    with pytest.raises(UnreadableRecord, match="not one of job records"):
        await all_of(decode(msgspec.msgpack.encode((1, 3, 1, [b"\x91\x01"], 1, 3, ()))).jobs)


def test_a_state_travels_in_parts() -> None:
    packed, incoming = PackedState(7, 1, bytearray(range(100))), PartialState(1_000)
    taken = 0
    while (whole := incoming.whole()) is None:
        part = packed.part(2, taken, 33)
        assert incoming.take("m1", part) == incoming.take("m1", part)  # a repeated one does no harm
        taken += len(part.data)
    assert whole == packed.data
    assert incoming.whole() is None
    with pytest.raises(ValueError, match="too large"):
        incoming.take("m1", State(2, 7, 1, 1_001, 0, b""))
