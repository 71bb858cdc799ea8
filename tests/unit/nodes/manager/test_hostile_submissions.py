"""Submissions no honest client would make: refused, or carried out; never the manager's end."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from hyperscale.nodes.protocol.jobs import Body, SubmitJob
from hyperscale.nodes.protocol.parts import PartEnd
from hyperscale.workload.thresholds import Threshold
from tests.unit.nodes.manager.cases import FACTS, state
from tests.unit.nodes.manager.lone_manager import LoneManager, play


def strange(**facts: Any) -> Any:
    return msgspec.structs.replace(FACTS, **facts)


def threshold(**given: Any) -> Threshold:
    facts: dict[str, Any] = {
        "expression": "p(95)<5", "scope": "http_req_duration", "aggregation": "p",
        "percentile": 95.0, "metric": "http_req_duration", "operator": "<", "value": 5.0,
    }  # fmt: skip
    return Threshold(**(facts | given))


STRANGE = {
    "threshold of nobody": strange(thresholds=(threshold(metric="nobody"),)),
    "threshold of nobody, aborting": strange(thresholds=(threshold(metric="nobody", abort=True),)),
    "percentile of 1000": strange(thresholds=(threshold(percentile=1000.0),)),
    "value of a trend": strange(thresholds=(threshold(aggregation="value"),)),
    "two steps of a name": strange(steps=FACTS.steps * 2),
    "empty name": strange(name=""),
    "odd name": strange(name="a/b\n\x00\N{SNOWMAN}"),
    "provides to nobody": strange(provides={"k": ("nobody",)}),
}


@pytest.mark.parametrize("facts", STRANGE.values(), ids=STRANGE.keys())
def test_a_strange_job_does_not_end_the_manager(facts: Any) -> None:
    async def story(lone: LoneManager) -> None:
        lone.register(cores=4)
        ack = await lone.submit(facts)
        if ack.accepted:
            await lone.until(lambda: bool(lone.dispatched()))
            order = lone.dispatched()[-1]
            await lone.prepare(order)
            await lone.manager.host.clock.sleep(3.0)
            measured = state(10) if facts.name == FACTS.name else b""
            await lone.tell(
                PartEnd(part=order.part, fence=order.fence, worker="w1", outcome="completed",
                        measured_s=60.0, iterations=10, state=measured)
            )  # fmt: skip
            job = lone.manager.jobs.job("j1")
            assert job is not None
            await lone.until(lambda: job.is_over)
        names = lone.manager.host.tasks.names()
        assert {"jobs timer", "windows", "thresholds", "orphans"} <= set(names)

    play(story)


@pytest.mark.parametrize("timeout_s", [math.nan, -1.0, 0.0])
def test_a_time_limit_that_is_none(timeout_s: float) -> None:
    async def story(lone: LoneManager) -> None:
        ack = await lone.submit(timeout_s=timeout_s)
        assert not ack.accepted

    play(story)


@pytest.mark.parametrize("wrong", [{"vus": 0}, {"vus": -4}, {"duration_s": -1.0}])
def test_a_load_that_cannot_be_is_refused_in_words(wrong: dict[str, Any]) -> None:
    """And at once: a client asks again for a minute after a handler that raised."""

    async def story(lone: LoneManager) -> None:
        facts = msgspec.msgpack.decode(msgspec.msgpack.encode(FACTS))
        facts["load"] |= wrong
        body = {"workflows": [facts], "source": b"", "overrides": b""}
        ask = SubmitJob(job_id="j1", body=msgspec.msgpack.encode(body))
        ack = await lone.client_api.submit(lone.call("submit.job", "client", "c1"), ask)
        assert not ack.accepted
        assert ack.error

    play(story)


@pytest.mark.parametrize("field", ["name", "correlation_id", "requested_by"])
def test_what_is_in_every_listing_is_short(field: str) -> None:
    async def story(lone: LoneManager) -> None:
        long = {field: "x" * 1_001}
        body = Body(workflows=(FACTS,), source=b"", overrides=b"", name=long.pop("name", ""))
        ask = SubmitJob(job_id="j1", body=msgspec.msgpack.encode(body), **long)
        ack = await lone.client_api.submit(lone.call("submit.job", "client", "c1"), ask)
        assert not ack.accepted
        assert "at most 1000 characters" in ack.error

    play(story)
