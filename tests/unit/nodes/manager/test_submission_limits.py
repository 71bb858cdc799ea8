"""A submission is counted before anything of it is built."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hyperscale.engine import results as engine_results
from hyperscale.nodes.manager import dispatch
from hyperscale.nodes.manager.submissions import record_of
from hyperscale.nodes.protocol.jobs import Body, SubmitJob
from hyperscale.nodes.protocol.submission_limits import (
    LOAD_BYTES_MAX,
    STEPS_MAX,
    THRESHOLDS_MAX,
    check_sizes,
)
from hyperscale.workload.facts import StepFacts, WorkflowFacts
from hyperscale.workload.hooks import HookType
from hyperscale.workload.load import RampingVUs, Stage
from hyperscale.workload.thresholds import parse_thresholds
from tests.unit.nodes.manager.cases import FACTS, submitted

STEP = StepFacts(name="s", hook_type=HookType.TEST)
(THRESHOLD,) = parse_thresholds({"http_reqs": "count>0"})


def ask(*workflows: WorkflowFacts) -> SubmitJob:
    body = Body(workflows=workflows, source=b"", overrides=b"")
    return SubmitJob(job_id="j", body=msgspec.msgpack.encode(body))


def with_(name: str = "W", **facts: Any) -> WorkflowFacts:
    return msgspec.structs.replace(FACTS, name=name, **facts)


@pytest.fixture
def nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def built(*_: object) -> None:
        raise AssertionError("an aggregate was built")

    monkeypatch.setattr(dispatch, "aggregate_of", built)
    monkeypatch.setattr(engine_results, "aggregate_of", built)


@pytest.mark.usefixtures("nothing_is_built")
@pytest.mark.parametrize(
    ("workflows", "sentence"),
    [
        ([with_(steps=(STEP,) * (STEPS_MAX + 1))], "at most 10,000 steps"),
        (
            [with_("A", steps=(STEP,) * STEPS_MAX), with_("B", steps=(STEP,))],
            "at most 10,000 steps, checks and metrics, not 10,001",
        ),
        ([with_(thresholds=(THRESHOLD,) * (THRESHOLDS_MAX + 1))], "1,000 thresholds"),
        (
            [
                with_("A", thresholds=(THRESHOLD,) * THRESHOLDS_MAX),
                with_("B", thresholds=(THRESHOLD,)),
            ],
            "at most 1,000 thresholds, not 1,001",
        ),
        ([with_(tags={str(n): "" for n in range(1_001)})], "tags"),
        ([with_(depends=tuple(map(str, range(1_001))))], "depends"),
        ([with_(str(n)) for n in range(1_001)], "1 to 1,000 workflows"),
        (
            [with_(load=RampingVUs(stages=(Stage(1.0, 1.0),) * LOAD_BYTES_MAX))],
            "load of a workflow",
        ),
    ],
)
def test_too_much_is_refused_before_it_is_built(
    workflows: list[WorkflowFacts], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        submitted(ask(*workflows))


def test_what_was_counted_is_what_a_job_is_made_of() -> None:
    """A field that could be long and is not counted would pass."""
    known = {"load", "steps", "thresholds", "depends", "tags", "provides"}
    rest = {field.name for field in msgspec.structs.fields(WorkflowFacts)} - known
    assert rest == {
        "name", "is_test", "priority", "sets_up", "tears_down", "per_vu_connections",
            "first_vu",
    }  # fmt: skip


def test_thresholds_are_judged_in_steps() -> None:
    facts = with_(steps=(STEP,), thresholds=(THRESHOLD,) * 200)
    steps = sum(1 for _ in record_of(ask(facts)))
    assert steps >= 200 // dispatch.JUDGED_IN_A_STEP


def test_the_most_is_taken() -> None:
    check_sizes(ask(with_(steps=(STEP,) * STEPS_MAX)).body)
