from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from hyperscale.metrics import exported
from hyperscale.metrics.aggregate import MARKS_MAX, WorkflowAggregate
from hyperscale.metrics.delta import (
    CheckDelta,
    Delta,
    ErrorDelta,
    MetricDelta,
    RequestDelta,
    RequestKey,
)
from hyperscale.metrics.exported import STATE_BYTES_MAX, DamagedState
from hyperscale.metrics.histogram import VALUES, Sparse, summarise
from hyperscale.metrics.results import StepResult


def latencies(*seconds: float) -> Sparse:
    found = summarise(np.array(seconds))
    assert found is not None
    return found


def requests(seq: int, count: int, seconds: float = 0.01, **fields: object) -> Delta:
    step = RequestDelta(RequestKey("get"), count=count, service=latencies(*[seconds] * count))
    return Delta(seq=seq, requests=[step], **fields)


def test_facts_and_templates_appear_in_the_result():
    template = StepResult(name="get", workflow="W", method="GET", target="/x", group="shop")
    aggregate = WorkflowAggregate("W", [template])
    aggregate.facts.load = "10 VUs for 30s"
    aggregate.facts.state = "running"
    aggregate.apply(0, requests(1, 5), 0.5)
    result = aggregate.freeze()
    assert (result.name, result.load, result.state) == ("W", "10 VUs for 30s", "running")
    assert (result.steps[0].method, result.steps[0].group, result.steps[0].count) == (
        "GET",
        "shop",
        5,
    )
    assert template.count == 0


def test_rates_are_counts_over_the_time_of_load():
    aggregate = WorkflowAggregate("W", ["get"])
    aggregate.apply(0, requests(1, 30), 1.0)
    aggregate.apply(1, requests(1, 10), 1.0)
    aggregate.advance(4.0)
    result = aggregate.freeze()
    assert result.elapsed_s == 4.0
    assert result.steps[0].rate == 10.0
    assert result.cores == 2


def test_time_never_goes_back():
    aggregate = WorkflowAggregate("W", ["get"])
    aggregate.advance(5.0)
    aggregate.advance(3.0)
    assert aggregate.elapsed_s == 5.0


def test_response_is_service_until_something_was_late():
    aggregate = WorkflowAggregate("W", ["get"])
    aggregate.apply(0, requests(1, 10), 0.1)
    step = aggregate.freeze().steps[0]
    assert step.response == step.service
    late = RequestDelta(
        RequestKey("get"), count=1, service=latencies(0.01), response=latencies(2.0)
    )
    aggregate.apply(0, Delta(seq=2, requests=[late]), 0.2)
    step = aggregate.freeze().steps[0]
    assert (step.service.count, step.response.count) == (11, 11)
    assert (step.service.max_ms, step.response.max_ms) == (10.0, 2000.0)


def test_errors_of_all_cores_are_one_list_most_frequent_first():
    aggregate = WorkflowAggregate("W", ["get"])
    for core, counts in enumerate(((1, 4), (2, 9))):
        errors = [
            ErrorDelta("status", "503", counts[0], [f"503 from {core}"]),
            ErrorDelta("timeout", "read", counts[1], ["a", "b"]),
        ]
        step = RequestDelta(RequestKey("get"), count=sum(counts), failed=sum(counts), errors=errors)
        aggregate.apply(core, Delta(seq=1, requests=[step]), 0.1)
    first, second = aggregate.freeze().steps[0].errors
    assert (first.outcome, first.count, first.samples) == ("timeout", 13, ["a", "b", "a"])
    assert (second.detail, second.count) == ("503", 3)
    assert second.samples == ["503 from 0", "503 from 1"]


def test_vus_are_summed_over_cores_and_end_with_their_core():
    aggregate = WorkflowAggregate("W")
    aggregate.apply(0, Delta(seq=1, vus=6), 0.1)
    aggregate.apply(1, Delta(seq=1, vus=4), 0.1)
    aggregate.gone(1)
    aggregate.advance(1.5)
    result = aggregate.freeze()
    assert (result.vus, result.vus_max) == (6, 10)


def test_custom_metrics_by_kind():
    aggregate = WorkflowAggregate(
        "W", metrics={"orders": "count", "hit": "rate", "size": "distribution", "queue": "sample"}
    )

    def values(name: str, *numbers: float) -> MetricDelta:
        found = summarise(np.array(numbers), VALUES)
        assert found is not None
        return MetricDelta(name, found, numbers[-1])

    deltas = [
        values("orders", 3.0, 5.0),
        values("hit", 1.0, 0.0, 1.0, 1.0),
        values("size", -2.0, 10.0),
        values("queue", 9.0, 4.0),
    ]
    aggregate.apply(0, Delta(seq=1, metrics=deltas), 0.5)
    aggregate.advance(2.0)
    orders, hit, size, queue = aggregate.freeze().metrics
    assert (orders.value, orders.per_second, orders.distribution) == (8.0, 4.0, None)
    assert (hit.value, hit.per_second, hit.count) == (0.75, 1.5, 4)
    assert (size.value, size.distribution.min_ms, size.distribution.max_ms) == (4.0, -2.0, 10.0)
    assert (queue.value, queue.distribution.max_ms) == (4.0, 9.0)


def test_checks_add_up_and_keep_few_samples():
    aggregate = WorkflowAggregate("W", checks=["ok"])
    for core in range(4):
        check = CheckDelta("ok", 2, 1, [f"core {core}"])
        aggregate.apply(core, Delta(seq=1, checks=[check]), 0.1)
    check = aggregate.freeze().checks[0]
    assert (check.passed, check.failed) == (8, 4)
    assert check.samples == ["core 0", "core 1", "core 2"]


def test_recent_rate_looks_at_the_last_seconds_only():
    aggregate = WorkflowAggregate("W", ["get"])
    for tick in range(1, 101):
        count = 100 if tick <= 50 else 10
        aggregate.apply(0, requests(tick, count), tick * 0.1)
    assert aggregate.recent_rate(3) == pytest.approx(100, rel=0.02)
    assert aggregate.recent_rate(60) == pytest.approx(550, rel=0.02)
    aggregate.advance(20.0)
    assert aggregate.recent_rate(3) == 0.0


def test_core_use_tells_how_busy_each_core_was():
    aggregate = WorkflowAggregate("W")
    for seq, cpu in enumerate((0.5, 0.95, 0.97, 0.98), 1):
        delta = Delta(seq=seq, lag=latencies(0.001 * seq), cpu=cpu, rss_mb=50 + seq)
        aggregate.apply(3, delta, seq * 0.1)
    use = aggregate.core_use()[0]
    assert (use.core, use.workflow, use.rss_mb) == (3, "W", 54)
    assert use.cpu_mean == pytest.approx(0.85)
    assert (use.cpu_max, use.busy_share) == (0.98, 0.75)
    assert use.lag_p99_ms == pytest.approx(4.0)


def test_marks_are_kept_in_order_and_bounded():
    aggregate = WorkflowAggregate("W")
    aggregate.advance(2.5)
    aggregate.mark("paused")
    aggregate.mark("resumed", 4.0)
    for _ in range(MARKS_MAX * 2):
        aggregate.mark("again")
    marks = aggregate.freeze().marks
    assert [(mark.at_s, mark.text) for mark in marks[:2]] == [(2.5, "paused"), (4.0, "resumed")]
    assert len(marks) == MARKS_MAX


def test_a_frozen_result_does_not_change_afterwards():
    aggregate = WorkflowAggregate("W", ["get"], ["ok"])
    aggregate.apply(0, requests(1, 5, checks=[CheckDelta("ok", 1, 0, [])]), 0.5)
    before = aggregate.freeze()
    aggregate.apply(0, requests(2, 5, checks=[CheckDelta("ok", 1, 1, ["bad"])]), 5.0)
    assert (before.requests, len(before.series), before.checks[0].passed) == (5, 1, 1)
    assert before.checks[0].samples == []


def test_a_live_result_has_percentiles_without_buckets():
    aggregate = WorkflowAggregate("W", ["get"])
    aggregate.apply(0, requests(1, 5), 0.5)
    service = aggregate.freeze(buckets=False).steps[0].service
    assert service.p99_ms == 10.0
    assert service.buckets == []


def test_users_of_machines_at_work_together_add_up_and_those_of_attempts_do_not():
    first, beside, after = (WorkflowAggregate("W", ["get"]) for _ in range(3))
    first.apply(0, requests(1, 5, vus=3), 0.5)
    first.apply(0, requests(2, 5, vus=3), 1.5)
    first.gone(0)
    beside.apply(0, requests(1, 5, vus=2), 1.5)
    after.apply(0, requests(1, 5, vus=3), 12.0)
    merged = WorkflowAggregate("W", ["get"])
    for state in (first.export(), beside.export(), after.export()):
        merged.absorb(state)
    result = merged.freeze()
    assert (result.vus_max, result.vus, result.cores) == (5, 5, 1)
    assert result.series[0].vus == 3
    assert result.series[-1].vus == 5  # beside has not ended


def test_users_too_quick_to_be_seen_are_known_by_their_number():
    parts = [WorkflowAggregate("W", ["get"]) for _ in range(2)]
    merged = WorkflowAggregate("W", ["get"])
    for part in parts:
        part.apply(0, requests(1, 5, vus=0), 0.05)
        part.peaked(2)
        merged.absorb(part.export())
    assert merged.freeze().vus_max == 4


def test_a_long_timeline_travels_coarser(monkeypatch: pytest.MonkeyPatch):
    aggregate = WorkflowAggregate("W", ["get"])
    for seq in range(1, 400):
        aggregate.apply(0, requests(seq, 3, 0.001 * seq), float(seq))
    before = aggregate.freeze()
    whole = aggregate.export()
    monkeypatch.setattr("hyperscale.metrics.exported.STATE_BYTES_AIM", len(whole) // 3)
    small = aggregate.export()
    assert len(small) <= len(whole) // 3
    merged = WorkflowAggregate("W", ["get"])
    merged.absorb(small)
    after = merged.freeze()
    assert after.requests == before.requests == sum(point.requests for point in after.series)
    assert after.steps[0].requests == before.steps[0].requests
    assert after.steps[0].duration == before.steps[0].duration
    assert sum(point.requests for point in after.steps[0].series) == after.requests
    assert len(after.series) < len(before.series)


def test_states_of_another_workflow_or_version_are_refused():
    aggregate = WorkflowAggregate("W", ["get"])
    aggregate.apply(0, requests(1, 5), 0.5)
    state = aggregate.export()
    for stranger in (WorkflowAggregate("X", ["get"]), WorkflowAggregate("W", ["put"])):
        with pytest.raises(DamagedState, match="another workflow"):
            stranger.absorb(state)
    newer = bytearray(state)
    newer[3] = 5  # behind the length of the array
    with pytest.raises(DamagedState, match="version 5, this program reads 4"):
        aggregate.absorb(bytes(newer))
    with pytest.raises(DamagedState, match="bytes"):
        aggregate.absorb(bytes(STATE_BYTES_MAX + 1))


@pytest.mark.parametrize(
    ("now_s", "widths_s"),
    [
        (0.5, []),
        (3.5, [1, 1, 1]),
        (1.0, [1, 1, 1]),
        (math.nan, [1]),
        (-1.0, [1]),
        (2.0**25, [2**26]),
        (3.5, [1, 3]),
        (2.5, [1, 2]),
        (0.5, [0, 1]),
    ],
)
def test_borders_that_nothing_could_be_added_to_are_refused(now_s: float, widths_s: list[int]):
    aggregate = WorkflowAggregate("W", ["get"])
    state = exported.decode(aggregate.export())
    state.timeline.now_s = now_s
    slot = state.timeline.slots[0]
    state.timeline.slots = [msgspec.structs.replace(slot, width_s=width_s) for width_s in widths_s]
    with pytest.raises(DamagedState, match="a timeline"):
        aggregate.absorb(msgspec.msgpack.encode(state))
    assert aggregate.elapsed_s == 0.0


def test_numbers_beyond_any_measure_can_be_read():
    aggregate = WorkflowAggregate("W", ["get"])
    aggregate.apply(0, requests(1, 5), 0.5)
    state = exported.decode(aggregate.export())
    for request in state.requests:
        if request.service is not None:
            request.service = msgspec.structs.replace(request.service, total=1e300, squares=1e308)
    aggregate.absorb(msgspec.msgpack.encode(state))
    aggregate.freeze()


def test_nesting_without_end_is_damage():
    with pytest.raises(DamagedState):
        WorkflowAggregate("W", ["get"]).absorb(b"\x91" * 100_000)
