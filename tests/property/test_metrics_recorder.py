"""Folding against counting by hand, whatever the rows and however often it folds."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.metrics import delta as wire
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.recorder import WorkflowRecorder
from hyperscale.workload.scope import Label

Row = tuple[float, float, float, float, int, int, int]


@st.composite
def row(draw: st.DrawFn) -> Row:
    started = draw(st.floats(0, 1e6))
    wait = draw(st.floats(0, 60))
    read = draw(st.floats(0, 60))
    return (
        started,
        started,
        started + wait,
        started + wait + read,
        draw(st.one_of(st.just(0.0), st.floats(0, 10))),
        draw(st.sampled_from([0, 200, 204, 404, 503])),
        draw(st.integers(0, 10**9)),
        draw(st.integers(0, 10**6)),
    )


failure = st.tuples(
    st.sampled_from(["refused", "timeout"]),
    st.sampled_from("ab"),
    st.sampled_from([(True, True), (False, True), (False, False)]),  # timed, sent
)


@given(
    st.lists(st.tuples(st.lists(row(), max_size=20), st.lists(failure, max_size=5)), max_size=6),
    st.booleans(),
)
def test_folds_add_up_to_what_was_recorded(
    folds: list[tuple[list[Row], list[tuple[str, str, tuple[bool, bool]]]]],
    by_status: bool,
) -> None:
    recorder = WorkflowRecorder(["login"], by_status=by_status)
    aggregate = WorkflowAggregate("W", ["login"])
    requests = recorder.steps["login"].of(Label("GET", "/"))
    extend = requests.samples.extend
    for rows, failures in folds:
        for one in rows:
            extend(one)
            recorder.iterations.append(one[3] - one[0])
        for outcome, detail, (timed, sent) in failures:
            requests.failure(outcome, detail, "why", timed=timed, sent=sent)
        delta = recorder.fold()
        if delta is not None:
            aggregate.apply(0, wire.decode(wire.encode(delta)))
    assert recorder.fold() is None
    result = aggregate.freeze()
    step = result.steps[0]
    rows = [one for part, _ in folds for one in part]
    failures = [one for _, part in folds for one in part]
    told = [timing for _, _, timing in failures]
    assert step.count == len(rows) + told.count((False, True))
    assert step.unsent == told.count((False, False))
    assert step.failed == len(failures)
    assert sum(one.count for one in step.requests) == step.count
    assert sum(one.failed for one in step.requests) == step.failed
    assert step.bytes_in == sum(one[6] for one in rows)
    assert step.bytes_out == sum(one[7] for one in rows)
    assert step.statuses == {str(k): v for k, v in Counter(one[5] for one in rows).items() if k}
    assert {(e.outcome, e.detail): e.count for e in step.errors} == Counter(
        (outcome, detail) for outcome, detail, _ in failures
    )
    assert step.service.count == step.response.count == len(rows)
    assert result.iterations == len(rows)
    if rows:
        assert step.service.max_ms == max(one[3] - one[0] for one in rows) * 1000
        assert step.response.max_ms == max(one[3] - one[0] + one[4] for one in rows) * 1000
        total_ms = sum(one[3] - one[0] for one in rows) * 1000
        assert math.isclose(step.service.mean_ms * len(rows), total_ms, abs_tol=1e-6)
        assert step.phases["wait"].count == step.phases["read"].count == len(rows)
