"""The table of a job's life, and the two halves it is stored in."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hyperscale.scheduler.errors import IllegalTransition
from hyperscale.scheduler.queue.job import (
    ENDS,
    HEAD_FIELDS,
    RUN_FIELDS,
    TRANSITIONS,
    Event,
    Failure,
    Job,
    JobState,
    new_job,
)
from hyperscale.scheduler.queue.lifecycle import to
from hyperscale.scheduler.queue.spec import JobSpec, RetryPolicy
from hyperscale.scheduler.store import codec

SPEC = JobSpec(name="n", kind="python")


def test_every_state_has_a_row() -> None:
    assert set(TRANSITIONS) == set(JobState)


def test_the_ends_lead_nowhere() -> None:
    assert {JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED} == ENDS


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("event", Event)
def test_what_is_not_in_the_table_is_refused(state: JobState, event: Event) -> None:
    job = replace(new_job("a", SPEC, 0), state=state)
    if event in TRANSITIONS[state]:
        assert to(job, event) is TRANSITIONS[state][event]
    else:
        with pytest.raises(IllegalTransition):
            to(job, event)


def test_every_field_is_in_one_half() -> None:
    assert sorted(HEAD_FIELDS + RUN_FIELDS) == sorted(Job.__struct_fields__)


def test_a_job_survives_its_bytes() -> None:
    job = replace(
        new_job(
            "ä",
            JobSpec(
                name="n",
                kind="http",
                payload={"k": "v"},
                capabilities=("a", "b"),
                tags={"t": "x"},
                timeout_s=1.5,
                retry=RetryPolicy(max_retries=0),
            ),
            10**15,
            tick=5,
            schedule_id="s",
        ),
        state=JobState.EXECUTING,
        progress=0.25,
        failure=Failure.TIMEOUT,
        lease_until=10**15 + 1,
    )
    assert codec.decode_job(codec.encode_head(job), codec.encode_run(job)) == job
