"""When and where a failed attempt is repeated; ageing; dedup keys."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.queue.identity import INSTANCES, content_digest, dedup_key, instance_id
from hyperscale.scheduler.queue.job import Failure, new_job
from hyperscale.scheduler.queue.lifecycle import decide_retry
from hyperscale.scheduler.queue.placement import BOOST_AGE, next_boost_at, rank_at
from hyperscale.scheduler.queue.spec import JobSpec, RetryPolicy

STEADY = RetryPolicy(max_retries=10, jitter=0.0)


def test_delays_double_up_to_the_cap() -> None:
    delays = [decide_retry(STEADY, Failure.ERROR, n, "j") for n in range(6)]
    assert [retry and retry.delay_s for retry in delays] == [2, 4, 8, 16, 16, 16]


def test_jitter_spreads_jobs_within_half_and_is_the_same_again() -> None:
    policy = RetryPolicy()
    delays = set()
    for n in range(200):
        retry = decide_retry(policy, Failure.ERROR, 0, f"job-{n}")
        assert retry is not None
        assert 1.0 <= retry.delay_s <= 3.0
        assert retry == decide_retry(policy, Failure.ERROR, 0, f"job-{n}")
        delays.add(retry.delay_s)
    assert len(delays) == 200


def test_three_retries_are_four_runs() -> None:
    assert decide_retry(RetryPolicy(), Failure.ERROR, 2, "j") is not None
    assert decide_retry(RetryPolicy(), Failure.ERROR, 3, "j") is None
    assert decide_retry(RetryPolicy(max_retries=0), Failure.ERROR, 0, "j") is None


@pytest.mark.parametrize("failure", Failure)
def test_every_class_has_its_route(failure: Failure) -> None:
    retry = decide_retry(STEADY, failure, 0, "j")
    if failure in (Failure.PERMANENT, Failure.CANCELLED, Failure.NEVER_STARTED):
        assert retry is None
        return
    assert retry is not None
    if failure is Failure.TRANSIENT:
        assert 0 <= retry.delay_s < 1
    else:
        assert retry.delay_s == 2
    elsewhere = failure in (Failure.EXHAUSTED, Failure.TIMEOUT, Failure.WORKER_LOST)
    assert retry.elsewhere is elsewhere


def test_waiting_betters_the_rank_step_by_step() -> None:
    job = new_job("j", JobSpec(name="n", kind="k", priority=120), 1000)
    assert rank_at(job, 1000 + BOOST_AGE - 1) == 120
    assert rank_at(job, 1000 + BOOST_AGE) == 70
    assert rank_at(job, 1000 + 100 * BOOST_AGE) == 0
    assert rank_at(job, 0) == 120
    at = next_boost_at(job)
    while at is not None:
        better = replace(job, rank=rank_at(job, at))
        assert better.rank < job.rank
        job, at = better, next_boost_at(better)
    assert job.rank == 0


def test_the_digest_knows_content_and_not_order_or_labels() -> None:
    one = JobSpec(name=" Smoke ", kind="http", payload={"a": "1", "b": "2"})
    two = JobSpec(name="smoke", kind="http", payload={"b": "2", "a": "1"}, tags={"x": "y"})
    assert content_digest(one) == content_digest(two)
    others = [
        replace(one, payload={"a": "1"}),
        replace(one, kind="python"),
        replace(one, priority=1),
        replace(one, capabilities=("gpu",)),
    ]
    digests = {content_digest(spec) for spec in [one, *others]} | {content_digest(one, 5)}
    assert len(digests) == 6


def test_keys() -> None:
    assert dedup_key("mine", "d") == "mine"
    by_content = dedup_key(None, "d")
    assert by_content != dedup_key(None, "e")
    for bad in ("", "  ", "x" * 257, by_content):
        with pytest.raises(InvalidJob):
            dedup_key(bad, "d")


@given(st.text(), st.integers(0, 2**53))
def test_an_instance_is_the_uuid_of_its_schedule_and_tick(schedule_id: str, tick: int) -> None:
    known = uuid.uuid5(INSTANCES, f"{schedule_id}\x00{tick}")
    assert instance_id(schedule_id, tick) == str(known)


def test_an_instance_is_its_schedule_and_tick() -> None:
    assert instance_id("s", 5) == instance_id("s", 5)
    assert len({instance_id("s", 5), instance_id("s", 6), instance_id("t", 5)}) == 3
