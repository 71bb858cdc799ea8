"""Aggregates of several machines added up: nothing lost, nothing doubled, in any order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.delta import (
    CheckDelta,
    Delta,
    ErrorDelta,
    GroupDelta,
    MetricDelta,
    RequestDelta,
    RequestKey,
    StepDelta,
)
from hyperscale.metrics.exported import DamagedState
from hyperscale.metrics.histogram import Sparse
from hyperscale.metrics.merging import merge_deltas

Told = tuple[int, float, Delta]  # core, load time, delta


def sparse(bucket: int, count: int) -> Sparse:
    # Whole numbers, so that sums do not depend on their order.
    return Sparse.of([bucket], [count], low=0.5, high=2.0, total=float(count), squares=float(count))


@st.composite
def request_deltas(draw: st.DrawFn) -> RequestDelta:
    count = draw(st.integers(1, 300))
    failed = draw(st.integers(0, count))
    service = sparse(draw(st.integers(600, 900)), count)
    step, name = draw(st.sampled_from(["a", "b"])), draw(st.sampled_from(["/", "/items/{id}"]))
    return RequestDelta(
        RequestKey(step, "GET", name, tags=draw(st.sampled_from([(), (("kind", "api"),)]))),
        count=count,
        failed=failed,
        unsent=draw(st.integers(0, failed)),
        bytes_in=count * 7,
        bytes_out=count,
        service=service,
        response=draw(st.none() | st.just(sparse(950, count))),
        phases={"wait": service} if draw(st.booleans()) else {},
        statuses={draw(st.sampled_from([200, 503])): count},
        errors=[ErrorDelta("status", "503", failed, ["no"])] if failed else [],
    )


@st.composite
def step_deltas(draw: st.DrawFn) -> StepDelta:
    runs = draw(st.integers(0, 40))
    return StepDelta(
        draw(st.sampled_from(["a", "b"])),
        runs=runs,
        failed=draw(st.integers(0, runs)),
        interrupted=draw(st.integers(0, 2)),
        duration=sparse(720, runs) if runs else None,
        skips=draw(st.sampled_from([{}, {"login got no answer": 2}])),
        errors=draw(st.sampled_from([[], [ErrorDelta("exception", "KeyError", 1, ["'price'"])]])),
    )


@st.composite
def deltas(draw: st.DrawFn, seq: int) -> Delta:
    return Delta(
        seq=seq,
        vus=draw(st.integers(0, 50)),
        dropped=draw(st.integers(0, 3)),
        interrupted=draw(st.integers(0, 3)),
        iteration=draw(st.none() | st.just(sparse(700, 5))),
        requests=draw(st.lists(request_deltas(), max_size=3, unique_by=lambda one: one.key)),
        steps=draw(st.lists(step_deltas(), max_size=2, unique_by=lambda step: step.name)),
        groups=[GroupDelta("buying", sparse(710, 3))] if draw(st.booleans()) else [],
        checks=[CheckDelta("ok", draw(st.integers(0, 5)), 1, ["bad"])],
        metrics=[
            MetricDelta("m", sparse(2000, 2), 1.0, "distribution", tags)
            for tags in draw(st.sampled_from([[], [()], [(), (("page", "home"),)]]))
        ],
        lag=sparse(500, 2),
        cpu=draw(st.sampled_from([0.25, 0.5, 1.0])),
        rss_mb=64.0,
        stopped_iterations=draw(st.integers(0, 2)),
        unmeasured=draw(st.sampled_from([{}, {"warmup": 3}])),
        cpu_s=draw(st.sampled_from([0.0, 0.0625, 0.25])),
    )


@st.composite
def machines(draw: st.DrawFn, cores: int = 2) -> list[Told]:
    """What the cores of one machine tell, over as long as it takes to widen the timeline."""
    told: list[Told] = []
    for core in range(cores):
        at_s = 0.0
        for seq in range(1, draw(st.integers(1, 5))):
            at_s += draw(st.sampled_from([0.1, 0.9, 40.0, 700.0]))
            told.append((core, at_s, draw(deltas(seq))))
    return sorted(told, key=lambda each: each[1])


def aggregate(told: Sequence[Told] = (), core_base: int = 0) -> WorkflowAggregate:
    made = WorkflowAggregate("W", ["a", "b"], ["ok"], {"m": "distribution"})
    for core, at_s, delta in told:
        made.apply(core_base + core, delta, at_s)
    return made


def totals(of: WorkflowAggregate) -> dict[str, object]:
    """All that must not depend on where and in which order it was added up."""
    result = of.freeze()
    return {
        "counts": (result.requests, result.failed, result.iterations, result.elapsed_s),
        "lost": (result.dropped_iterations, result.interrupted_iterations),
        "vus": result.vus,
        "iteration": result.iteration,
        "steps": [
            (s.name, s.count, s.failed, s.bytes_in, s.bytes_out, s.service, s.response, s.phases)
            for s in result.steps
        ],
        "requests": [
            sorted((r.method, r.name, str(r.tags), r.count, r.failed, r.unsent) for r in s.requests)
            for s in result.steps
        ],
        "runs": [
            (s.runs, s.runs_failed, s.runs_interrupted, s.skips, s.duration) for s in result.steps
        ],
        "groups": [(g.name, g.duration) for g in result.groups],
        "stopped": (result.stopped_iterations, result.stopped_users, result.unmeasured),
        "step series": [
            [(p.at_s, p.requests, p.failed, p.p99_ms) for p in s.series] for s in result.steps
        ],
        "statuses": [s.statuses for s in result.steps],
        "errors": [sorted((e.outcome, e.detail, e.count) for e in s.errors) for s in result.steps],
        "checks": [(c.passed, c.failed) for c in result.checks],
        "metrics": sorted(
            (m.name, str(m.tags), m.count, m.value, str(m.distribution)) for m in result.metrics
        ),
        "series": [
            (p.at_s, p.width_s, p.requests, p.failed, p.iterations, p.dropped, p.bytes_in, p.p99_ms)
            for p in result.series
        ],
        "cores": of.core_use(),
        "cpu": result.cpu_seconds,
    }


@settings(deadline=None)
@given(machines(), machines())
def test_absorbing_is_the_same_as_having_been_told(one: list[Told], other: list[Told]) -> None:
    there = aggregate(other)
    here = aggregate(one)
    here.absorb(there.export(), core_base=2)
    both = aggregate(one)
    for core, at_s, delta in other:
        both.apply(2 + core, delta, at_s)
    assert totals(here) == totals(both)
    assert here.vus_max >= max(aggregate(one).vus_max, there.vus_max)


@settings(deadline=None)
@given(machines(), machines(), machines())
def test_the_order_of_machines_does_not_matter(
    first: list[Told], second: list[Told], third: list[Told]
) -> None:
    states = [aggregate(told, 2 * n).export() for n, told in enumerate((first, second, third))]
    forward, backward, nested = aggregate(), aggregate(), aggregate()
    for state in states:
        forward.absorb(state)
    for state in reversed(states):
        backward.absorb(state)
    pair = aggregate()
    pair.absorb(states[1])
    pair.absorb(states[2])
    nested.absorb(states[0])
    nested.absorb(pair.export())
    assert totals(forward) == totals(backward) == totals(nested)


@settings(deadline=None)
@given(machines())
def test_a_state_survives_its_own_journey(told: list[Told]) -> None:
    there = aggregate(told)
    there.mark("worker lost", 1.5)
    here = aggregate()
    here.absorb(there.export())
    assert totals(here) == totals(there)
    assert here.freeze().series == there.freeze().series
    assert here.freeze().marks == there.freeze().marks
    assert here.vus_max == there.vus_max
    assert here.export() == there.export()


@settings(deadline=None)
@given(st.lists(deltas(1), min_size=1, max_size=5))
def test_a_merged_delta_counts_as_its_parts(several: list[Delta]) -> None:
    each = aggregate([(core, 0.2, delta) for core, delta in enumerate(several)])
    merged = aggregate([(0, 0.2, merge_deltas(several, 1))])
    left, right = totals(each), totals(merged)
    left.pop("cores")
    right.pop("cores")
    assert left == right


@settings(deadline=None)
@given(machines(), st.integers(0, 20))
def test_deltas_go_on_where_a_snapshot_ended(told: list[Told], cut: int) -> None:
    """A part is told as one source: snapshot first, then only what came after it."""
    whole, part = aggregate(), aggregate()
    vus: dict[int, int] = {}
    for seq, (core, at_s, delta) in enumerate(told, 1):
        vus[core] = delta.vus
        merged = merge_deltas([delta], seq, sum(vus.values()))
        whole.apply(0, merged, at_s)
        if seq <= cut:
            part.apply(core, delta, at_s)
    resumed = aggregate()
    resumed.restore(0, part.export(), min(cut, len(told)))
    vus.clear()
    for seq, (core, at_s, delta) in enumerate(told, 1):
        vus[core] = delta.vus
        resumed.apply(0, merge_deltas([delta], seq, sum(vus.values())), at_s)
    left, right = totals(resumed), totals(whole)
    for timed in (
        "cores",
        "series",
        "step series",
    ):  # two cores told as one share their moments differently
        left.pop(timed)
        right.pop(timed)
    assert left == right


@settings(deadline=None)
@given(machines(), st.data())
def test_damage_is_told_and_changes_nothing(told: list[Told], data: st.DataObject) -> None:
    here = aggregate(told)
    before = here.export()
    state = bytearray(before)
    for _ in range(data.draw(st.integers(1, 4))):
        state[data.draw(st.integers(0, len(state) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(state[: data.draw(st.integers(0, len(state)))])
    try:
        aggregate(told).absorb(damaged)
    except DamagedState:
        with pytest.raises(DamagedState):
            here.absorb(damaged)
        assert here.export() == before
