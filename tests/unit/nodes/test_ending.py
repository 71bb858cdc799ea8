"""What is said when a node ends by itself, and that it is not said of others."""

from __future__ import annotations

import asyncio

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
        await asyncio.wait_for(cancelled.wait(), 5.0)

    asyncio.run(story())
