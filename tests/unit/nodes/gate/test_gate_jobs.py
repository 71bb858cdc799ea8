"""A job of a gate is the fold of what its group has committed."""

from __future__ import annotations

from collections.abc import Generator

import msgspec
import pytest
from msgspec.structs import replace

from hyperscale.errors import BadInput
from hyperscale.metrics.results import Results
from hyperscale.nodes.gate.events import (
    AnyEvent,
    Begun,
    Commanded,
    Completed,
    Created,
    Ended,
    Judged,
    Lost,
    Told,
    decode,
    encode,
    request_of,
)
from hyperscale.nodes.gate.jobs import GateJob, GateJobs
from hyperscale.nodes.gate.merging import aggregates_of, results_of, status_of
from hyperscale.nodes.gate.settings import datacenters_of
from hyperscale.nodes.protocol.jobs import Body, SteerJob
from hyperscale.runtime.host import Address
from tests.unit.nodes.manager.cases import FACTS, state

CREATED = Created(name="shop", body=b"", digest="d1", datacenters={"eu": 0, "us": 0})


def job_of(*events: AnyEvent) -> GateJob:
    jobs = GateJobs()
    for event in (CREATED, *events):
        jobs.apply(1.0, "j1", decode(encode(event)))
    found = jobs.job("j1")
    assert found is not None
    return found


def command(action: str, command_id: str = "c1") -> Commanded:
    return Commanded(SteerJob(job_id="j1", action=action, command_id=command_id))  # type: ignore[arg-type]


def test_the_first_end_of_a_datacenter_counts() -> None:
    job = job_of(Ended("eu", "completed"), Lost("eu", "late"), Ended("us", "failed", "why"))
    assert job.ends == {"eu": Ended("eu", "completed"), "us": Ended("us", "failed", "why")}
    assert job.running_in == []


def test_the_first_end_of_a_job_counts() -> None:
    ends = Ended("eu", "completed"), Ended("us", "completed")
    job = job_of(*ends, Completed("completed", "", b"1"), Completed("failed", "", b"2"))
    assert job.completed == Completed("completed", "", b"1")


def test_a_job_is_not_over_before_its_datacenters() -> None:
    with pytest.raises(AssertionError, match="over everywhere"):
        job_of(Ended("eu", "completed"), Completed("completed", "", b""))


def test_a_datacenter_that_was_not_asked_ends_nothing() -> None:
    with pytest.raises(AssertionError, match="its own datacenters"):
        job_of(Ended("mars", "completed"))


@pytest.mark.parametrize(
    ("events", "status", "reason"),
    [
        ([Ended("eu", "completed"), Ended("us", "completed")], "completed", ""),
        ([Ended("eu", "completed"), Lost("us", "cut off")], "partial", "us: cut off"),
        ([Lost("eu", "cut off"), Lost("us", "cut off")], "failed", "cut off"),
        (
            [command("cancel"), Ended("eu", "cancelled"), Ended("us", "completed")],
            "cancelled",
            "",
        ),
        ([Ended("eu", "timeout", "a"), Ended("us", "timeout", "b")], "timeout", "eu: a; us: b"),
    ],
)
def test_one_status_for_all(events: list[AnyEvent], status: str, reason: str) -> None:
    assert status_of(job_of(*events)) == (status, reason)


def test_what_was_told_last_counts_until_the_end() -> None:
    told = [Told("eu", requests, 1.0, {"Shop": b"%d" % requests}) for requests in (5, 9, 7)]
    job = job_of(*told)
    assert job.told == {"eu": told[1]}
    assert job_of(*told, Lost("eu", "cut off"), told[1]).told == {}


def test_the_first_beginning_counts() -> None:
    job = job_of(Begun(("eu", "us")), Begun(("us",)))
    assert job.begun == Begun(("eu", "us"))
    assert job.is_held


def test_how_a_threshold_stands_is_known() -> None:
    job = job_of(Judged("Shop", 0, 3.5, None), Judged("Shop", 0, 3.5, 512.0))
    assert job.judged == {("Shop", 0): (3.5, 512.0)}


def test_it_is_paused_until_it_is_resumed() -> None:
    assert job_of(command("pause", "a"), command("scale", "b")).is_paused
    assert not job_of(command("pause", "a"), command("resume", "b")).is_paused


def test_two_commands_are_two_requests_and_a_copy_is_none() -> None:
    assert request_of(command("pause", "a")) == request_of(command("pause", "a"))
    assert request_of(command("pause", "a")) != request_of(command("pause", "b"))


def test_datacenters_are_told_by_name_and_address() -> None:
    assert datacenters_of(["eu=10.0.0.1:7000", "eu=10.0.0.2:7001", "us=10.1.0.1:7000"]) == {
        "eu": (Address("10.0.0.1", 7000), Address("10.0.0.2", 7001)),
        "us": (Address("10.1.0.1", 7000),),
    }


@pytest.mark.parametrize("text", ["eu", "=10.0.0.1", "e u=10.0.0.1", "eu=10.0.0.1:99999"])
def test_a_datacenter_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(BadInput, match="--datacenter"):
        datacenters_of([text])


def done(steps: Generator[None, None, Results]) -> Results:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Results = end.value
            return found


def test_a_job_took_at_least_as_long_as_its_load() -> None:
    """A gate that was started again has known it for a moment."""
    body = msgspec.msgpack.encode(Body(workflows=(FACTS,), source=b"", overrides=b""))
    job = GateJob("j1", replace(CREATED, body=body, datacenters={"eu": 0}), 0.0)
    job.apply(1.0, Lost("eu", "its host burned", {FACTS.name: state(10)}, 1.0))
    (told,) = aggregates_of(job, job.ends["eu"])
    results = done(results_of(job, "shop", 0.001, ()))
    assert results.elapsed_s == told.elapsed_s > 0.001
