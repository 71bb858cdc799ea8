"""What is told of a job by a gate that does not own it, or has just begun to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec

from hyperscale.nodes.gate.events import Begun, Created, Lost, Told
from hyperscale.nodes.gate.jobs import GateJobs
from hyperscale.nodes.gate.views import JobViewer
from hyperscale.nodes.protocol.jobs import Body
from tests.unit.nodes.manager.cases import FACTS, state


def test_a_job_whose_owner_is_silent_is_told_of_as_it_was_written_down() -> None:
    body = msgspec.msgpack.encode(Body(workflows=(FACTS,), source=b"", overrides=b""))
    jobs = GateJobs()
    for event in (
        Created(name="shop", body=body, digest="d1", datacenters={"ap": 0, "eu": 0, "us": 0}),
        Begun(("ap", "eu", "us")),
        Told("eu", 10, 2.0, {FACTS.name: state(10)}),
        Lost("us", "it is silent", {FACTS.name: state(7)}, 1.0),
    ):
        jobs.apply(1.0, "j1", event)
    job, owner = jobs.job("j1"), SimpleNamespace(owned=lambda job_id: None)
    assert job is not None
    clock: Any = SimpleNamespace(now=lambda: 4.0)
    view = JobViewer(clock, owner).of(job)  # type: ignore[arg-type]
    assert view.status == "running"
    assert [(one.name, one.status, one.requests) for one in view.datacenters] == [
        ("ap", "running", 0),
        ("eu", "running", 10),
        ("us", "lost", 7),
    ]
