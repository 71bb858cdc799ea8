"""Sample logs in, the fault by name out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.scheduler.telemetry import analysis, events
from hyperscale.scheduler.telemetry import journal as journal_module
from hyperscale.scheduler.telemetry.analysis import diagnose
from hyperscale.scheduler.telemetry.journal import Journal, failures, judge, read


def line(second: float, event: str, level: str = "info", node: str = "n-1", **said: Any) -> bytes:
    minute, rest = divmod(second, 60)
    return json.dumps(
        {
            "timestamp": f"2027-01-31T06:{int(minute):02}:{rest:06.3f}Z",
            "level": level,
            "component": "scheduler.jobs",
            "event": event,
            "node_id": node,
            **said,
        }
    ).encode()


def job(second: float, event: str, job_id: str = "j-1", **said: Any) -> bytes:
    return line(second, event, job_id=job_id, correlation_id=f"c-{job_id}", **said)


def journal(*lines: bytes) -> Journal:
    return read((f"log:{number}", one) for number, one in enumerate(lines, 1))


def names(*lines: bytes) -> list[str]:
    return [one.name for one in diagnose(journal(*lines))]


SUBMITTED = job(0, "job submitted", operation_result="PENDING")
CLAIMED = job(1, "job claimed", worker_id="w-1", fencing_token=7)
COMPLETED = job(2, "job ended", operation_result="COMPLETED")


def test_a_job_that_went_well_is_no_failure() -> None:
    book = journal(SUBMITTED, CLAIMED, COMPLETED)
    verdict = judge(book.about("j-1"), book.end)
    assert (verdict.kind, verdict.duration_s) == ("completed", 2.0)
    assert failures(book) == []
    assert diagnose(book) == []


def test_lines_are_put_in_order_and_found_by_either_id() -> None:
    worker = line(1.5, "executor failed", "error", node="n-2", job_id="j-1", error="boom")
    book = journal(COMPLETED, worker, CLAIMED, SUBMITTED)
    story = book.about("c-j-1")
    assert [one.event for one in story] == [
        "job submitted", "job claimed", "executor failed", "job ended",
    ]  # fmt: skip
    assert story == book.about("j-1")
    verdict = judge(story, book.end)
    assert verdict.path == ("n-1/scheduler.jobs", "n-2/scheduler.jobs", "n-1/scheduler.jobs")
    assert verdict.symptoms == ("executor failed: boom",)


@pytest.mark.parametrize(
    ("lines", "kind", "cause"),
    [
        ([SUBMITTED, line(90, "leading", epoch=1)], "never claimed", "no worker took it"),
        ([SUBMITTED], "waiting", "submitted shortly before the logs end"),
        ([SUBMITTED, CLAIMED], "under way", "claimed, and the logs end before it does"),
        (
            [SUBMITTED, CLAIMED, job(2, "job goes back", error="no answer")],
            "retrying",
            "no answer",
        ),
        (
            [CLAIMED, job(2, "job ended", operation_result="FAILED", error="exit code 3")],
            "failed",
            "exit code 3",
        ),
        (
            [CLAIMED, job(60, "job lost", error="worker w-1 was lost")],
            "worker lost",
            "worker w-1 was lost",
        ),
        (
            [CLAIMED, job(9, "report refused", warning_reason="stale fencing token")],
            "report refused",
            "stale fencing token",
        ),
        ([CLAIMED, job(2, "job ended", operation_result="CANCELLED")], "cancelled", None),
    ],
)
def test_a_failure_has_a_kind_and_a_cause(lines: list[bytes], kind: str, cause: str | None) -> None:
    book = journal(*lines)
    verdict = judge(book.about("j-1"), book.end)
    assert verdict.kind == kind
    assert cause is None or verdict.cause == cause


def test_an_unreadable_line_is_told_with_its_place() -> None:
    book = journal(
        SUBMITTED, b"Traceback (most recent call last):", b'{"level": "info"}', b"", b"[]"
    )
    assert len(book.entries) == 1
    assert book.bad_total == 3
    assert book.bad[0].startswith("log:2: ")
    assert book.bad[1] == 'log:3: has no timestamp: {"level": "info"}'


LOST = [
    one
    for n in range(3)
    for one in (
        job(10 * n, "job claimed", worker_id="w-1", fencing_token=n),
        job(10 * n + 5, "job lost", error="claimed and never started"),
    )
]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("completed twice", [COMPLETED, job(3, "job ended", operation_result="COMPLETED")]),
        ("claimed twice", [CLAIMED, job(1.1, "job claimed", worker_id="w-2", fencing_token=7)]),
        ("stale reports", [job(9, "report refused", warning_reason="stale fencing token")]),
        ("bouncing", LOST),
        (
            "retry storm",
            [SUBMITTED, *(job(n + 2, "job goes back", error="no answer") for n in range(20))],
        ),
        ("two leaders", [line(0, "leading", epoch=4), line(1, "leading", node="n-2", epoch=4)]),
        ("unsteady lead", [line(60 * n, "leading", epoch=n) for n in range(3)]),
        ("store away", [line(0, "the store does not answer", "error", error="refused")]),
        ("heartbeats lost", [line(0, "heartbeat not delivered", "warning")]),
        ("mass silence", [line(0, "most workers are silent at once, waiting", "warning")]),
        (
            "id taken",
            [line(0, "another process took this worker's id: stopping", "error", worker="w-1")],
        ),
        ("id taken", [line(0, "registration refused", "warning", worker_id="w-1")]),
        ("election away", [line(0, "election service does not answer", "warning", error="cut")]),
        ("standstill", [line(0, "a term ended by an error", "error", error="boom")]),
        ("ticks wait", [line(0, "ticks wait", "error", error="the store holds 9 jobs")]),
        ("key reused", [job(0, "key used for other content", warning_reason="other content")]),
        ("cut off", [line(0, "silent workers answer, waiting", "warning", workers=["w-1"])]),
        ("late", [job(99, "job claimed", worker_id="w-1", fencing_token=7, waited_s=99.0)]),
        ("skewed", [job(5, "job submitted"), line(1, "job claimed", node="n-2", job_id="j-1")]),
        ("set aside", [line(0, "schedule set aside", "error", schedule_id="s-1")]),
    ],
)
def test_each_fault_is_named(name: str, lines: list[bytes]) -> None:
    assert names(*lines) == [name]


def test_each_event_has_somebody_who_writes_it_and_somebody_who_looks_for_it() -> None:
    room = Path(events.__file__).parents[1]
    readers = {Path(analysis.__file__), Path(journal_module.__file__)}
    written = "".join(one.read_text() for one in room.rglob("*.py") if one not in readers)
    read = "".join(one.read_text() for one in readers)
    named = {f"events.{name}" for name in vars(events) if name.isupper()}
    assert {name for name in named if name not in written or name not in read} == set()


def test_two_terms_an_hour_apart_are_no_trouble() -> None:
    assert names(line(0, "leading", epoch=1), line(5, "leading", node="n-2", epoch=2)) == []


@given(st.lists(st.binary(max_size=60) | st.sampled_from([SUBMITTED, CLAIMED, COMPLETED, *LOST])))
def test_whatever_is_in_the_files_there_is_an_answer(lines: list[bytes]) -> None:
    book = journal(*lines)
    diagnose(book)
    failures(book)
    assert len(book.entries) + book.bad_total <= len(lines)
