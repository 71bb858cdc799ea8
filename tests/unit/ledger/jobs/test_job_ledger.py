"""Job events on a journal: judged before they are written, believed after."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hyperscale.ledger.jobs import EventRefused, JobLedger, Status
from hyperscale.ledger.journal import Family, UnreadableRecord, rebuild
from hyperscale.runtime.tasks import RealTasks
from tests.fixtures.journals import HandClock, MemoryJournal, MemoryRecord
from tests.unit.ledger.jobs.samples import Life


def on_ledger(test: Callable[[JobLedger, MemoryJournal], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        journal, tasks = MemoryJournal(), RealTasks()
        await test(JobLedger(journal, HandClock(), tasks), journal)
        await tasks.stop()

    asyncio.run(main())


async def rebuilt(journal: MemoryJournal, after_lsn: int = 0) -> JobLedger:
    ledger = JobLedger(journal, HandClock(), RealTasks())
    await rebuild(journal, [ledger], after_lsn)
    return ledger


def test_what_was_written_is_there_after_a_restart() -> None:
    async def restart(ledger: JobLedger, journal: MemoryJournal) -> None:
        life = Life()
        lsns = [await ledger.record(e) for e in (life.created(), life.accepted(), life.cancel())]
        assert lsns == [1, 2, 3]
        again = await rebuilt(journal)
        assert again.state(life.job_id) == ledger.state(life.job_id)
        assert again.history(life.job_id) == ledger.history(life.job_id)

    on_ledger(restart)


def test_a_refused_event_is_not_written() -> None:
    async def refuse(ledger: JobLedger, journal: MemoryJournal) -> None:
        with pytest.raises(EventRefused):
            await ledger.record(Life().accepted())
        assert (journal.records, ledger.refused) == ([], 1)

    on_ledger(refuse)


def test_of_two_events_that_exclude_each_other_one_is_written() -> None:
    async def race(ledger: JobLedger, journal: MemoryJournal) -> None:
        life = Life()
        await ledger.record(life.created())
        await ledger.record(life.accepted())
        ends = (life.completed("passed"), life.completed("failed"))
        results = await asyncio.gather(*map(ledger.record, ends), return_exceptions=True)
        assert [type(result) for result in results] == [int, EventRefused]
        assert len(journal.records) == 3

    on_ledger(race)


def test_nothing_is_believed_before_it_is_durable() -> None:
    async def slow(ledger: JobLedger, journal: MemoryJournal) -> None:
        journal.gate = asyncio.Event()
        life = Life()
        writing = asyncio.ensure_future(ledger.record(life.created()))
        for _ in range(10):
            await asyncio.sleep(0)
        assert life.job_id not in ledger
        journal.gate.set()
        await writing
        assert life.job_id in ledger

    on_ledger(slow)


def test_a_caller_that_goes_away_does_not_make_book_and_disk_differ() -> None:
    async def gone(ledger: JobLedger, journal: MemoryJournal) -> None:
        journal.gate = asyncio.Event()
        life = Life()
        writing = asyncio.ensure_future(ledger.record(life.created()))
        await asyncio.sleep(0)
        writing.cancel()
        journal.gate.set()
        await ledger.record(life.accepted())
        state = ledger.state(life.job_id)
        assert state is not None
        assert state.status is Status.RUNNING

    on_ledger(gone)


def test_a_checkpoint_and_the_rest_of_the_log_give_the_whole() -> None:
    async def checkpoint(ledger: JobLedger, journal: MemoryJournal) -> None:
        life, other = Life("a"), Life("b")
        await ledger.record(life.created())
        journal.gate = asyncio.Event()
        writing = asyncio.ensure_future(ledger.record(other.created()))
        for _ in range(5):
            await asyncio.sleep(0)
        covered = ledger.applied_lsn
        assert covered == 1
        pieces = list(ledger.pieces())
        journal.gate.set()
        await writing
        await ledger.record(life.accepted())
        assert ledger.applied_lsn == 3
        again = JobLedger(journal, HandClock(), RealTasks())
        for piece in pieces:
            again.restore(piece)
        again.resume_after(covered)
        await rebuild(journal, [again])
        assert sorted(again.states(), key=str) == sorted(ledger.states(), key=str)

    on_ledger(checkpoint)


def test_a_record_of_a_newer_version_is_skipped_only_where_it_may_be() -> None:
    async def newer(ledger: JobLedger, journal: MemoryJournal) -> None:
        journal.records.append(MemoryRecord(1, bytes((Family.JOB, 200)) + b"\x90"))
        again = await rebuilt(journal)
        assert again.skipped == 1
        for unknown in (bytes((Family.JOB, 99)), bytes((77, 1)), b""):
            journal.records[0] = MemoryRecord(1, unknown)
            with pytest.raises(UnreadableRecord):
                await rebuilt(journal)

    on_ledger(newer)
