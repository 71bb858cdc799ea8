"""What a gate is sent by people who mean harm, or by the managers of one datacenter that do."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.engine.results import aggregate_of
from hyperscale.metrics.results import decode
from hyperscale.nodes.protocol.datacenters import DatacenterReport
from hyperscale.nodes.protocol.jobs import Body, JobUpdate, Snapshot
from tests.unit.nodes.gate.lone_gate import COMPLETED, LoneGate, PlayedDatacenter, play
from tests.unit.nodes.manager.cases import FACTS, state

OTHER = aggregate_of(msgspec.structs.replace(FACTS, name="Other")).export()
HOSTILE = {
    "results": JobUpdate(view=COMPLETED, results=b'{"name": 1}', final=True),
    "deep results": JobUpdate(view=COMPLETED, results=b"[" * 100_000, final=True),
    "state": JobUpdate(view=COMPLETED, states={FACTS.name: b"\xff" * 9}, final=True),
    "state of another": JobUpdate(view=COMPLETED, states={FACTS.name: OTHER}, final=True),
    "snapshot": JobUpdate(
        snapshots=(Snapshot(workflow=FACTS.name, index=1, elapsed_s=1.0, state=b"\x00"),)
    ),
}


@pytest.mark.parametrize("update", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_one_datacenter_tells_does_not_keep_the_others_from_their_end(
    update: JobUpdate,
) -> None:
    hostile = PlayedDatacenter(update)
    honest = PlayedDatacenter(JobUpdate(view=COMPLETED, states={FACTS.name: state(10)}, final=True))

    async def story(lone: LoneGate) -> None:
        assert (await lone.submit()).accepted
        job = await lone.ended()
        assert job.completed is not None
        results = decode(job.completed.results)
        each = {one.name: (one.status, one.requests) for one in results.datacenters}
        assert each == {"eu": ("lost", 0), "us": ("completed", 10)}
        assert any(line.startswith("datacenter eu was lost") for line in results.lost)
        while not hostile.steered:  # nothing of it goes on there unseen
            await lone.host.clock.sleep(0.1)
        assert hostile.steered == ["cancel"]

    play(story, eu=hostile, us=honest)


@pytest.mark.parametrize(
    "told",
    [
        {"facts": {"cores_free": -1}},
        {"facts": {"cores": 2**63}},
        {"facts": {"queued": 1.5}},
        {"leader_at": ("10.0.0.1", 99_999)},
        {"managers": [("x" * 256, 7_000)]},
    ],
)
def test_what_no_datacenter_is_like_is_no_report(told: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(told, DatacenterReport)


def test_what_no_listing_could_hold_is_refused() -> None:
    async def story(lone: LoneGate) -> None:
        for job_id in ("", "j" * 129, "j\x1b[2J"):
            refused = await lone.submit(job_id)
            assert "a job's id has 1 to 128 printable characters" in refused.error
        assert "a job's name has at most" in (await lone.submit(name="n" * 1_001)).error
        assert "a job's requester has at most" in (await lone.submit(remark="r" * 1_001)).error
        assert lone.gate.ledger.jobs.jobs() == []

    play(story, eu=PlayedDatacenter())


def test_code_and_variables_are_sealed_where_gates_keep_them() -> None:
    datacenter = PlayedDatacenter()

    async def story(lone: LoneGate) -> None:
        assert (await lone.submit(source=b"TOPSECRET", env={"API_KEY": "TOPSECRET"})).accepted
        job = await lone.ended()
        assert b"TOPSECRET" not in job.submitted.body
        (message,) = datacenter.submitted
        sent = msgspec.msgpack.decode(message.body, type=Body)
        assert (sent.source, sent.env, sent.sealed) == (
            b"TOPSECRET",
            {"API_KEY": "TOPSECRET"},
            b"",
        )

    play(story, secret="correct horse battery staple", eu=datacenter)


def test_a_gate_that_was_not_told_of_a_datacenter_says_so_and_goes_on() -> None:
    async def story(lone: LoneGate) -> None:
        del lone.gate._clusters["us"]
        assert (await lone.submit()).accepted
        job = await lone.ended()
        assert job.ends["us"].reason == "its gate was started without --datacenter us=HOST:PORT"

    play(story, eu=PlayedDatacenter(), us=PlayedDatacenter())
