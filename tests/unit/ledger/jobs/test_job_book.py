"""Histories, questions about the past, limits and checkpoints of the book of jobs."""

from __future__ import annotations

import pytest

from hyperscale.ledger.jobs import HistoryTrimmed, JobBook, JobSettings, Status, TooManyJobs
from hyperscale.ledger.jobs.events import JobEvent
from tests.unit.ledger.jobs.samples import Life, at


def written(book: JobBook, *events: JobEvent, start: int = 1) -> None:
    for lsn, event in enumerate(events, start):
        book.check(event)
        book.apply(0.0, lsn, event)


def a_life() -> list[JobEvent]:
    life = Life()
    return [life.created(), life.accepted(), life.progress(5), life.progress(9), life.completed()]


def test_the_past_can_be_asked_by_record_and_by_moment() -> None:
    book = JobBook()
    events = a_life()
    written(book, *events)
    job_id = events[0].job_id
    assert book.as_of_lsn(job_id, 0) is None
    assert [state.status.name for lsn in range(1, 6) if (state := book.as_of_lsn(job_id, lsn))] == [
        "CREATED",
        "RUNNING",
        "RUNNING",
        "RUNNING",
        "ENDED",
    ]
    assert book.as_of_lsn(job_id, 99) == book.state(job_id)
    assert book.as_of(job_id, at(9)) is None
    between = book.as_of(job_id, at(35))
    assert between is not None
    assert between.parts[0].completed == 5
    assert book.as_of(job_id, at(40)) == book.as_of_lsn(job_id, 4)
    assert book.as_of_lsn("nobody", 3) is None
    assert book.as_of("nobody", at(3)) is None


def test_a_record_taken_twice_changes_nothing() -> None:
    book = JobBook()
    events = a_life()
    written(book, *events)
    before = book.state(events[0].job_id)
    for lsn, event in enumerate(events, 1):
        book.apply(0.0, lsn, event)
    assert book.state(events[0].job_id) == before
    assert (len(book.history(events[0].job_id)), book.refused) == (5, 0)


def test_a_written_event_that_cannot_follow_is_counted_and_ignored() -> None:
    book = JobBook()
    life = Life()
    assert book.apply(0.0, 1, life.accepted()) is None
    assert (len(book), book.refused) == (0, 1)


def test_a_long_history_is_folded_and_says_from_where_it_is_kept() -> None:
    book = JobBook(JobSettings(events_max=3))
    events = a_life()
    written(book, *events)
    job_id = events[0].job_id
    assert [lsn for lsn, _ in book.history(job_id)] == [3, 4, 5]
    assert (state := book.state(job_id)) is not None
    assert state.status is Status.ENDED
    with pytest.raises(HistoryTrimmed, match="from record 2 on"):
        book.as_of_lsn(job_id, 1)
    with pytest.raises(HistoryTrimmed):
        book.as_of(job_id, events[0].hlc)
    assert book.as_of(job_id, at(1)) is None
    running = book.as_of_lsn(job_id, 2)
    assert running is not None
    assert running.status is Status.RUNNING


def test_there_is_a_limit_of_jobs_and_ended_ones_make_room() -> None:
    book = JobBook(JobSettings(jobs_max=2))
    passed, failed, third = Life("a"), Life("b"), Life("c")
    written(book, passed.created(), passed.accepted(), passed.completed(), failed.created())
    written(book, failed.failed(), failed.completed("failed"), start=5)
    with pytest.raises(TooManyJobs):
        book.check(third.created())
    assert book.sweep(299.0) == 0
    assert book.sweep(300.0) == 1
    assert ("a" in book, "b" in book) == (False, True)
    book.check(third.created())
    assert book.sweep(3_600.0) == 1


def test_a_checkpoint_gives_back_the_same_book() -> None:
    book = JobBook(JobSettings(events_max=3))
    written(book, *a_life())
    other = Life("other")
    written(book, other.created(), start=10)
    again = JobBook(JobSettings(events_max=3))
    for piece in book.pieces():
        again.restore(0.0, piece)
    assert list(again.states()) == list(book.states())
    assert again.history(Life().job_id) == book.history(Life().job_id)
    written(again, other.accepted(), start=11)
    assert again.sweep(300.0) == 1
