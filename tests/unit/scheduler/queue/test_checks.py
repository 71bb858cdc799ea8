"""Each bad value has its own sentence."""

from __future__ import annotations

from typing import Any

import pytest

from hyperscale.errors import BadInput, ExitCode
from hyperscale.scheduler.errors import InvalidJob, SchedulerError
from hyperscale.scheduler.queue.spec import (
    JobSpec,
    RetryPolicy,
    check_spec,
    clamp_priority,
    normal_capabilities,
)
from hyperscale.scheduler.schedules.schedule import (
    MisfirePolicy,
    ScheduleDefinition,
    check_definition,
    check_schedule_id,
)
from hyperscale.scheduler.worker.registration import Worker, check_worker


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"name": "  "}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"kind": "no blanks"}, "kind"),
        ({"priority": -1}, "priority"),
        ({"priority": 2001}, "priority"),
        ({"capabilities": ("b", "a")}, "sorted"),
        ({"capabilities": ("a,b",)}, "capability"),
        ({"capabilities": tuple(f"c{i:02}" for i in range(17))}, "16"),
        ({"tags": {f"t{i}": "" for i in range(33)}}, "tags"),
        ({"tags": {"bad tag": ""}}, "tag"),
        ({"tags": {"t": "x" * 201}}, "value of tag"),
        ({"payload": {"k": "x" * 70_000}}, "payload"),
        ({"payload": {"k": "é" * 40_000}}, "payload has 80001 bytes"),
        ({"timeout_s": 0.0}, "timeout"),
        ({"stall_timeout_s": -1.0}, "stall"),
        ({"retry": RetryPolicy(max_retries=-1)}, "max_retries"),
        ({"retry": RetryPolicy(initial_s=20.0)}, "delays"),
        ({"retry": RetryPolicy(factor=0.5)}, "factor"),
        ({"retry": RetryPolicy(jitter=2.0)}, "jitter"),
    ],
)
def test_a_bad_spec_is_named(fields: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidJob, match=word) as refusal:
        check_spec(JobSpec(**{"name": "n", "kind": "python"} | fields))
    assert isinstance(refusal.value, BadInput)
    assert isinstance(refusal.value, SchedulerError)
    assert refusal.value.exit_code is ExitCode.BAD_INPUT


def test_a_good_spec_passes() -> None:
    spec = JobSpec(name="n", kind="python", capabilities=normal_capabilities(["b", "a", "b"]))
    assert check_spec(spec) is spec
    full = JobSpec(name="n", kind="python", payload={"kk": "é" * 32_767})
    assert check_spec(full) is full
    assert spec.capabilities == ("a", "b")
    assert spec.priority == 500


def test_priorities_out_of_range_are_adjusted() -> None:
    assert [clamp_priority(p) for p in (-5, 0, 77, 2000, 99_999)] == [0, 0, 77, 2000, 2000]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"name": ""}, "name"),
        ({"cron": ""}, "either"),
        ({"run_at": 5}, "either"),
        ({"jitter_s": -1.0}, "jitter"),
        ({"misfire": MisfirePolicy(cap=0)}, "cap"),
        ({"misfire": MisfirePolicy(grace_s=-1)}, "grace"),
        ({"start_at": 10, "end_at": 10}, "end"),
    ],
)
def test_a_bad_definition_is_named(fields: dict[str, Any], word: str) -> None:
    good: dict[str, Any] = {"name": "s", "cron": "* * * * *"}
    job = JobSpec(name="n", kind="python")
    with pytest.raises(InvalidJob, match=word):
        check_definition(ScheduleDefinition(job=job, **(good | fields)))
    assert check_definition(ScheduleDefinition(job=job, **good))


def test_schedule_ids_are_labels() -> None:
    assert check_schedule_id("nightly-1") == "nightly-1"
    with pytest.raises(InvalidJob):
        check_schedule_id("no\x00")


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"id": "ab"}, "DNS"),
        ({"id": "Upper-case"}, "DNS"),
        ({"id": "x" * 64}, "DNS"),
        ({"capacity": 0}, "capacity"),
        ({"capabilities": ("no blank",)}, "capability"),
        ({"metadata": {f"m{i}": "" for i in range(33)}}, "metadata"),
    ],
)
def test_a_bad_worker_is_named(fields: dict[str, Any], word: str) -> None:
    good: dict[str, Any] = {"id": "host-1a2b", "instance": "i", "capacity": 1}
    with pytest.raises(InvalidJob, match=word):
        check_worker(Worker(**(good | fields), started_at=0, seen_at=0))
    assert check_worker(Worker(**good, started_at=0, seen_at=0))
