"""From records to spans: who is whose child, who is told of, and that ids follow from the job."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.scheduler.instants import SECOND
from hyperscale.scheduler.queue.job import Failure, Job, JobState, new_job
from hyperscale.scheduler.queue.reports import Completed, Failed
from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.telemetry.spans import REMEMBERED_MAX, Span, Spans, is_traceparent

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
NOW = 1_800_000_000 * SECOND


def a_job(job_id: str = "j-1", traceparent: str = "", **fields: object) -> Job:
    tags = {"traceparent": traceparent} if traceparent else {}
    job = new_job(job_id, JobSpec(name="probe", kind="http", tags=tags), NOW)
    return msgspec.structs.replace(job, **fields)


def claimed(job: Job, token: int = 7) -> Job:
    return msgspec.structs.replace(
        job, state=JobState.CLAIMED, token=token, worker="w-1", claimed_at=NOW + SECOND
    )


def started(job: Job) -> Job:
    return msgspec.structs.replace(job, state=JobState.EXECUTING, started_at=NOW + 2 * SECOND)


def whole_life(spans: Spans, job: Job, failed: bool = False) -> list[Span]:
    told = spans.submitted(job, NOW, NOW + 5)
    told += spans.claimed(claimed(job))
    spans.started(started(claimed(job)))
    about = {"job_id": job.id, "worker": "w-1", "token": 7}
    if failed:
        back = msgspec.structs.replace(job, retries=1, error="no answer")
        report = Failed(**about, failure=Failure.ERROR, error="no answer")
        return told + spans.ended(back, report, NOW + 9 * SECOND, NOW + 9 * SECOND + 40)
    done = msgspec.structs.replace(started(claimed(job)), state=JobState.COMPLETED, worker="")
    return told + spans.ended(done, Completed(**about), NOW + 9 * SECOND, NOW + 9 * SECOND + 40)


def test_each_step_is_the_child_of_the_one_before() -> None:
    submit, claim, run, complete = whole_life(Spans(1.0), a_job())
    assert [one.name for one in (submit, claim, run, complete)] == [
        "submit", "claim", "run", "complete",
    ]  # fmt: skip
    assert submit.parent_id is None
    assert (claim.parent_id, run.parent_id, complete.parent_id) == (
        submit.span_id, claim.span_id, run.span_id,
    )  # fmt: skip
    assert {one.trace_id for one in (claim, run, complete)} == {submit.trace_id}
    assert (claim.start, claim.end) == (NOW, NOW + SECOND)
    assert (run.start, run.end) == (NOW + 2 * SECOND, NOW + 9 * SECOND)
    assert run.attributes["job.worker"] == "w-1"


def test_a_traceparent_makes_the_job_part_of_the_callers_trace() -> None:
    submit, *_ = whole_life(Spans(0.0), a_job(traceparent=f"00-{TRACE}-{PARENT}-01"))
    assert f"{submit.trace_id:032x}" == TRACE
    assert submit.parent_id is not None
    assert f"{submit.parent_id:016x}" == PARENT


def test_a_caller_who_does_not_sample_is_obeyed_unless_it_fails() -> None:
    job = a_job(traceparent=f"00-{TRACE}-{PARENT}-00")
    assert whole_life(Spans(1.0), job) == []
    told = whole_life(Spans(1.0), job, failed=True)
    assert [one.name for one in told] == ["submit", "claim", "run", "complete"]


def test_a_failure_outside_the_share_is_told_whole_and_says_why() -> None:
    told = whole_life(Spans(0.0), a_job(), failed=True)
    submit, claim, run, complete = told
    assert run.error == "no answer"
    assert (claim.parent_id, run.parent_id) == (submit.span_id, claim.span_id)
    assert run.start == NOW + 2 * SECOND
    assert complete.error == ""


def test_a_retry_has_spans_of_its_own() -> None:
    spans = Spans(1.0)
    first, again = spans.claimed(claimed(a_job(), 7)), spans.claimed(claimed(a_job(), 8))
    assert first[0].span_id != again[0].span_id
    assert first[0].parent_id == again[0].parent_id


def test_lost_jobs_are_always_told() -> None:
    (lost,) = Spans(0.0).lost(a_job(error="worker w-1 was lost"))
    assert lost.error == "worker w-1 was lost"


def test_two_processes_agree_on_every_id() -> None:
    submitting, running = Spans(1.0), Spans(1.0)
    (submit,) = submitting.submitted(a_job(), NOW, NOW)
    (claim,) = running.claimed(claimed(a_job()))
    assert claim.parent_id == submit.span_id
    assert claim.trace_id == submit.trace_id


def test_what_never_ends_is_forgotten() -> None:
    spans = Spans(0.0)
    for number in range(REMEMBERED_MAX + 10):
        spans.claimed(claimed(a_job(f"j-{number}")))
    assert len(spans._begun) == REMEMBERED_MAX


@given(st.uuids(), st.floats(0, 1))
def test_a_job_is_told_whole_or_not_at_all(name: object, share: float) -> None:
    told = whole_life(Spans(share), a_job(str(name)))
    assert len(told) in (0, 4)
    assert all(one.start <= one.end for one in told)
    assert len({one.span_id for one in told}) == len(told)


def test_the_share_is_kept_roughly() -> None:
    spans = Spans(0.25)
    told = sum(bool(spans.submitted(a_job(f"job-{n}"), NOW, NOW)) for n in range(4000))
    assert 850 < told < 1150


@pytest.mark.parametrize(
    ("text", "good"),
    [
        (f"00-{TRACE}-{PARENT}-01", True),
        (f"00-{'0' * 32}-{PARENT}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"01-{TRACE}-{PARENT}-01", False),
        (f"00-{TRACE.upper()}-{PARENT}-01", False),
        (f"00-{TRACE}-{PARENT}-01\n", False),
        ("", False),
    ],
)
def test_only_a_good_traceparent_is_taken(text: str, good: bool) -> None:
    assert is_traceparent(text) is good


def test_while_the_share_is_raised_more_is_told_and_whole() -> None:
    spans, job = Spans(0.0), a_job()
    assert spans.submitted(job, NOW, NOW) == spans.claimed(claimed(job)) == []
    done = msgspec.structs.replace(started(claimed(job)), state=JobState.COMPLETED)
    told = spans.ended(done, Completed(job_id=job.id, worker="w-1", token=7), NOW, NOW, raised=1.0)
    assert [one.name for one in told] == ["submit", "claim", "run", "complete"]


@pytest.mark.parametrize(("share", "flags"), [(1.0, "01"), (0.0, "00")])
def test_what_a_run_calls_is_its_child(share: float, flags: str) -> None:
    spans, job = Spans(share), a_job()
    _, trace, parent, sampled = spans.traceparent(job.id, 7, job.spec.tags).split("-")
    *_, run, _ = whole_life(Spans(1.0), job)
    assert (trace, parent, sampled) == (f"{run.trace_id:032x}", f"{run.span_id:016x}", flags)


def test_the_callers_word_on_sampling_is_handed_on() -> None:
    for flags in ("00", "01"):
        tags = {"traceparent": f"00-{TRACE}-{PARENT}-{flags}"}
        text = Spans(0.5).traceparent("j-1", 7, tags)
        assert is_traceparent(text)
        assert text.startswith(f"00-{TRACE}-")
        assert text.endswith(f"-{flags}")
