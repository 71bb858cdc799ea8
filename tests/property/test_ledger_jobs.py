"""Laws of the fold from job events to job states, over random lives and random nonsense."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.cluster.clocks import Stamp
from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.jobs import (
    EventRefused,
    JobAccepted,
    JobBook,
    JobCancellationAcked,
    JobCancellationRequested,
    JobCompleted,
    JobCreated,
    JobEvent,
    JobFailed,
    JobProgressReported,
    JobSettings,
    JobState,
    JobTimedOut,
    Status,
    fold,
)
from hyperscale.ledger.jobs.codec import decode, encode
from hyperscale.ledger.jobs.state import TRANSITIONS, judge

DCS = ("east", "west")

texts = st.text(max_size=8)
counts = st.integers(0, 5)
dcs = st.sampled_from((*DCS, "nowhere"))
fences = st.builds(Fence, st.integers(1, 2), st.integers(0, 1), st.just(0))
stamps = st.builds(Stamp, st.integers(0, 40), st.integers(0, 2), st.sampled_from("ab"))


def events_of(job_id: str) -> st.SearchStrategy[JobEvent]:
    head = (st.just(job_id), stamps, fences)
    return st.one_of(
        st.builds(JobCreated, *head, st.binary(max_size=4), st.just(DCS), texts),
        st.builds(JobAccepted, *head, dcs, counts),
        st.builds(JobProgressReported, *head, dcs, counts, counts),
        st.builds(JobCancellationRequested, *head, texts, texts),
        st.builds(JobCancellationAcked, *head, dcs, counts),
        st.builds(JobCompleted, *head, texts, st.binary(max_size=4)),
        st.builds(JobFailed, *head, texts, st.one_of(st.just(""), dcs)),
        st.builds(JobTimedOut, *head, texts, st.one_of(st.none(), stamps)),
    )


def ordered(events: list[JobEvent]) -> list[JobEvent]:
    """Mostly in the order of time and leaders, so that lives get long."""
    return sorted(events, key=lambda event: (event.hlc, event.fence))


lives = st.lists(events_of("job"), max_size=40)
wild_or_ordered = st.one_of(lives, lives.map(ordered))


@given(events_of("job"))
def test_bytes_and_back(event: JobEvent) -> None:
    assert decode(encode(event)) == event


@given(wild_or_ordered)
@settings(max_examples=150)
def test_an_event_either_follows_the_table_or_changes_nothing(events: list[JobEvent]) -> None:
    state: JobState | None = None
    for event in events:
        status = Status.ABSENT if state is None else state.status
        try:
            following = fold(state, event)
        except EventRefused:
            assert judge(state, event) is not None
            continue
        assert judge(state, event) is None
        assert following.status is TRANSITIONS[status][event.code]
        if state is not None:
            check_step(state, following)
        state = following


def check_step(before: JobState, after: JobState) -> None:
    assert before.status is not Status.ENDED
    assert after.fence >= before.fence
    assert after.last_hlc > before.last_hlc
    assert after.events == before.events + 1
    assert [part.dc_id for part in after.parts] == [part.dc_id for part in before.parts]
    for old, new in zip(before.parts, after.parts, strict=True):
        assert new.completed >= old.completed
        assert new.failed >= old.failed
        assert (new.accepted, new.cancelled) >= (old.accepted, old.cancelled)
    if before.cancel_requestor:
        assert (after.cancel_reason, after.cancel_requestor) == (
            before.cancel_reason,
            before.cancel_requestor,
        )


@given(st.lists(st.one_of(events_of("a"), events_of("b")), max_size=60).map(ordered))
@settings(max_examples=100)
def test_a_book_rebuilt_from_what_was_written_is_the_same(events: list[JobEvent]) -> None:
    live, log = written(JobBook(), events)
    again = JobBook()
    for lsn, payload in log:
        event = decode(payload, lsn)
        assert event is not None
        again.apply(0.0, lsn, event)
    assert again.refused == 0
    assert list(again.states()) == list(live.states())
    from_pieces = JobBook()
    for piece in live.pieces():
        from_pieces.restore(0.0, piece)
    assert list(from_pieces.states()) == list(live.states())


@given(lives.map(ordered), st.integers(1, 6))
@settings(max_examples=100)
def test_the_past_is_what_it_was_and_trimming_does_not_change_the_present(
    events: list[JobEvent], events_max: int
) -> None:
    whole, log = written(JobBook(), events)
    trimmed, _ = written(JobBook(JobSettings(events_max=events_max)), events)
    assert trimmed.state("job") == whole.state("job")
    seen: JobState | None = None
    for lsn, payload in log:
        event = decode(payload)
        assert event is not None
        seen = fold(seen, event)
        assert whole.as_of_lsn("job", lsn) == seen
        assert whole.as_of("job", event.hlc) == seen
        if log[-1][0] - lsn < events_max:
            assert trimmed.as_of_lsn("job", lsn) == seen


def written(book: JobBook, events: list[JobEvent]) -> tuple[JobBook, list[tuple[int, bytes]]]:
    """What a ledger does: judge, write, believe."""
    log: list[tuple[int, bytes]] = []
    for event in events:
        try:
            book.check(event)
        except EventRefused:
            continue
        log.append((len(log) + 1, encode(event)))
        book.apply(0.0, len(log), event)
    return book, log
