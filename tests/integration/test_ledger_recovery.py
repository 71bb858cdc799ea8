"""Jobs and keys on a real log with checkpoints and compaction, through restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hyperscale.ledger.checkpoints import Checkpoints
from hyperscale.ledger.idempotency import Kind
from hyperscale.ledger.journal import Book, JournalSlot, UnreadableRecord, distribute
from hyperscale.ledger.snapshot import restore_snapshot, take_snapshot
from hyperscale.ledger.wal import WalSettings, WriteAheadLog
from hyperscale.runtime.real import RealHost
from tests.fixtures.journals import HandClock
from tests.unit.ledger.idempotency.node import Node, key

SMALL = WalSettings(segment_bytes_max=8_192)


class Life:
    """One run of a node: checkpoint, log, ledgers, in the order a node starts them."""

    def __init__(self, host: RealHost) -> None:
        self.host = host
        self.slot = JournalSlot()
        self.clock = HandClock()
        self.node = Node(self.slot, self.clock, host.tasks)
        self.checkpoints = Checkpoints(host, "checkpoints", kept=1)

    async def start(self) -> WriteAheadLog:
        checkpoint = await self.checkpoints.load()
        after_lsn = 0
        if checkpoint is not None:
            await restore_snapshot(self.node.jobs, checkpoint.state)
            after_lsn = checkpoint.facts.lsn
        books: list[Book] = [self.node.jobs, self.node.ledger]
        log = await WriteAheadLog.open(
            self.host, "wal", SMALL, after_lsn=after_lsn, deliver=distribute(books)
        )
        self.slot.fill(log)
        await self.node.submissions.recover()
        return log

    async def checkpoint(self, log: WriteAheadLog) -> int:
        lsn, state = await take_snapshot(self.node.jobs, self.node.ledger)
        await self.checkpoints.save(lsn, state)
        return await log.compact(self.checkpoints.safe_lsn)


def test_a_compacted_log_and_its_checkpoint_give_back_everything(tmp_path: Path) -> None:
    async def first() -> None:
        async with RealHost("node", tmp_path) as host:
            life = Life(host)
            log = await life.start()
            for start in range(0, 200, 20):
                numbers = range(start, start + 20)
                await asyncio.gather(*(life.node.submit(key(n), f"job-{n}") for n in numbers))
            life.clock.time += 400
            await life.node.ledger.sweep(life.node.answer_of)
            await life.node.submit(key(200), "job-200")
            assert await life.checkpoint(log) > 3
            await life.node.submit(key(201), "job-201")
            await log.close()

    async def second() -> None:
        async with RealHost("node", tmp_path) as host:
            life = Life(host)
            log = await life.start()
            assert log.first_lsn > 300
            assert len(list(life.node.jobs.states())) == 202
            for number in (200, 201):
                answer = await life.node.submit(key(number), "again")
                assert (answer.kind, answer.job_id) == (Kind.ACCEPTED, f"job-{number}")
                assert answer.duplicate
            await log.close()

    asyncio.run(first())
    asyncio.run(second())


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("node", tmp_path) as host:
            life = Life(host)
            for state in (b"\xc1", b"\x93\x02\x00\x90"):
                with pytest.raises(UnreadableRecord):
                    await restore_snapshot(life.node.jobs, state)

    asyncio.run(main())
