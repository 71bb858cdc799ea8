"""What is said when a node ends by itself, and that it is not said of others."""

from __future__ import annotations

import asyncio

import pytest

from hyperscale.ledger.wal import LogFailed
from hyperscale.nodes.member.process import first_of, stopped


def test_a_disk_is_blamed_for_what_it_did() -> None:
    for failure in (OSError(5, "Input/output error"), LogFailed("records", OSError(28, "full"))):
        assert "m1 stopped, because its disk failed: " in stopped("m1", failure).message


def test_a_disk_is_not_blamed_for_a_bug() -> None:
    said = stopped("m1", KeyError("a workflow"))
    assert said.message == "m1 stopped, because of an error in its own code: KeyError('a workflow')"
    assert "disk" not in said.hint


def test_what_is_not_first_is_cancelled() -> None:
    async def story() -> None:
        cancelled = asyncio.Event()

        async def slow() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        await first_of(slow(), asyncio.sleep(0))
        assert cancelled.is_set()

    asyncio.run(story())


def test_what_the_first_died_of_is_told() -> None:
    async def fail() -> None:
        raise OSError("no space")

    async def story() -> None:
        with pytest.raises(OSError, match="no space"):
            await first_of(asyncio.Event().wait(), fail())

    asyncio.run(story())


def test_nothing_goes_on_when_nobody_waits_any_more() -> None:
    async def story() -> None:
        waiting = asyncio.create_task(first_of(asyncio.Event().wait(), asyncio.Event().wait()))
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 4
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(story())
