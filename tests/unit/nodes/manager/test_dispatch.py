"""What managers make of a submission, and what a worker gets of it."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.cluster.jobs.apply import apply
from hyperscale.cluster.jobs.records import Dispatched, PartEnded, Submitted
from hyperscale.cluster.jobs.state import ReplicatedState
from hyperscale.engine.messages import Stamped
from hyperscale.nodes.manager import dispatch, part_end
from hyperscale.nodes.manager.results import merged
from hyperscale.nodes.protocol.jobs import Body, SubmitJob
from hyperscale.workload.load import ClosedVUs, SharedIterations
from tests.unit.nodes.manager.cases import FACTS, JOB, end, placement, submitted

REPORT = msgspec.structs.replace(
    FACTS, name="Report", depends=("Shop",), load=SharedIterations(vus=1, iterations=5)
)
PROVIDER = msgspec.structs.replace(
    FACTS, provides={"token": ("Report",), "secret": ("Other",)}, tears_down=True
)


def ask(*workflows: object, **facts: object) -> SubmitJob:
    body = Body(workflows=workflows, source=b"code", overrides=b"", **facts)  # type: ignore[arg-type]
    return SubmitJob(job_id=JOB, body=msgspec.msgpack.encode(body))


def body_of(record: Submitted) -> Body:
    return msgspec.msgpack.decode(record.body, type=Body)


def test_limits_cover_the_whole_life_of_the_load() -> None:
    load = ClosedVUs(vus=1, duration_s=60.0, warmup_s=5.0, start_time_s=3.0, graceful_stop_s=7.0)
    facts = msgspec.structs.replace(FACTS, load=load)
    assert dispatch.limit_s(facts) == 60 + 5 + 3 + 7 + dispatch.LIMIT_SLACK_S


def test_a_job_may_take_as_long_as_its_layers_one_after_the_other() -> None:
    record = submitted(ask(FACTS, REPORT))
    parts = [dispatch.limit_s(FACTS), dispatch.limit_s(REPORT)]
    assert record.timeout_s == sum(parts) + dispatch.JOB_SLACK_S
    assert submitted(ask(FACTS, timeout_s=12.0)).timeout_s == 12.0


def test_what_becomes_of_lost_load_is_the_jobs_choice() -> None:
    assert submitted(ask(FACTS)).lost_load == "squeeze"
    assert submitted(ask(FACTS, lost_load="drop")).lost_load == "drop"
    with pytest.raises(msgspec.ValidationError, match="find"):
        submitted(ask(FACTS, lost_load="find"))


@pytest.mark.parametrize("job_id", ["", "x" * 200, "a\nb"])
def test_a_job_needs_a_sensible_id(job_id: str) -> None:
    with pytest.raises(ValueError, match="id"):
        submitted(msgspec.structs.replace(ask(FACTS), job_id=job_id))


def test_a_job_needs_workflows() -> None:
    with pytest.raises(ValueError, match="workflows"):
        submitted(ask())


def test_the_same_test_asked_for_again_is_the_same_job() -> None:
    first = submitted(ask(FACTS, started_at="2026-01-01", command="hyperscale run a.py"))
    again = submitted(ask(FACTS, started_at="2026-01-02", command="hyperscale submit a.py"))
    other = submitted(ask(FACTS, seed=1))
    assert first.digest == again.digest != other.digest


def test_bytes_that_are_no_body_are_refused() -> None:
    with pytest.raises(msgspec.MsgspecError):
        submitted(SubmitJob(job_id=JOB, body=b"\xc1"))


def test_a_dependant_gets_what_was_left_for_it_and_nothing_else() -> None:
    record = submitted(ask(PROVIDER, REPORT))
    replicated = ReplicatedState()
    first, second = placement(0), placement(1)
    old, new = Stamped(2, 0, b"old"), Stamped(1, 3, b"new")
    ends = [
        end(first, 10, context={"order": new}, provided={"token": old, "secret": old}),
        end(second, 20, context={"order": old}, provided={"token": new}),
    ]
    apply(replicated, record)
    apply(replicated, Dispatched(JOB, 0.1, "Shop", 4, (first, second)))
    for where, ended in zip((first, second), ends, strict=True):
        result = part_end.encode_end(ended)
        apply(
            replicated,
            PartEnded(JOB, 1.0, where.part, where.fence, where.worker, "completed", 1.0, result),
        )
    where = placement(0)
    where = msgspec.structs.replace(
        where, part=msgspec.structs.replace(where.part, workflow="Report")
    )
    sent = dispatch.dispatch_of(body_of(record), replicated.jobs[JOB], where, 2, True, 7)
    assert sent.context == {"order": new}
    assert sent.used == {"Shop": {"token": new}}
    assert (sent.source, sent.term, sent.facts) == (b"code", 7, REPORT)
    whole = merged(PROVIDER, replicated.jobs[JOB].workflows["Shop"], replicated.jobs[JOB])
    assert whole.requests == 30


def test_a_workflow_can_use_as_many_cores_as_it_has_users_with_something_to_do() -> None:
    few = msgspec.structs.replace(FACTS, load=SharedIterations(vus=8, iterations=3))
    many = msgspec.structs.replace(FACTS, load=SharedIterations(vus=8, iterations=30))
    assert [dispatch.needs_of(facts).peak_vus for facts in (few, many)] == [3, 8]
