"""Totals and timeline under any interleaving of cores, with repeated and late deltas."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.metrics.histogram import Sparse
from hyperscale.metrics.interval import Amounts
from hyperscale.metrics.results import WorkflowResult
from hyperscale.metrics.timeline import Timeline


def sparse(bucket: int, count: int) -> Sparse:
    return Sparse.of([bucket], [count], low=0.001, high=0.002, total=0.0015 * count, squares=1.0)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, Delta]]:
    """Deltas of up to three cores, in order per core, interleaved, some of them repeated."""
    queues = []
    for core in range(draw(st.integers(1, 3))):
        counts = draw(st.lists(st.integers(1, 500), max_size=8))
        queues.append(
            [
                (
                    core,
                    Delta(
                        seq=seq,
                        vus=draw(st.integers(0, 50)),
                        dropped=draw(st.integers(0, 3)),
                        iteration=sparse(700, count),
                        requests=[
                            RequestDelta(
                                RequestKey("a"),
                                count=count,
                                failed=count // 2,
                                bytes_in=count * 7,
                                service=sparse(draw(st.integers(600, 900)), count),
                            )
                        ],
                    ),
                )
                for seq, count in enumerate(counts, 1)
            ]
        )
    history: list[tuple[int, Delta]] = []
    while any(queues):
        queue = draw(st.sampled_from([q for q in queues if q]))
        history.append(queue.pop(0))
        if draw(st.booleans()):
            history.append(draw(st.sampled_from(history)))
    return history


def numbers(result: WorkflowResult) -> tuple[object, ...]:
    step = result.steps[0]
    service = (step.service.count, step.service.buckets, step.service.counts)
    return step.count, step.failed, step.bytes_in, service, result.iterations


@given(histories(), st.lists(st.floats(0, 900), min_size=80, max_size=80))
def test_totals_are_the_sum_over_cores_and_duplicates_do_nothing(
    history: list[tuple[int, Delta]], times: list[float]
) -> None:
    aggregate = WorkflowAggregate("W", ["a"])
    unique: dict[tuple[int, int], Delta] = {}
    seen = 0
    for (core, delta), at_s in zip(history, times, strict=False):
        known = (core, delta.seq) in unique
        assert aggregate.apply(core, delta, at_s) is not known
        unique[core, delta.seq] = delta
        assert aggregate.requests >= seen
        seen = aggregate.requests
    result = aggregate.freeze()
    assert result.requests == sum(d.requests[0].count for d in unique.values())
    assert result.failed == sum(d.requests[0].failed for d in unique.values())
    assert result.dropped_iterations == sum(d.dropped for d in unique.values())
    assert result.steps[0].service.count == result.requests
    last = {core: delta.vus for (core, _), delta in sorted(unique.items(), key=lambda i: i[0])}
    assert result.vus == sum(last.values())
    assert sum(point.requests for point in result.series) == result.requests
    assert sum(point.bytes_in for point in result.series) == result.steps[0].bytes_in
    assert sum(point.iterations for point in result.series) == result.iterations
    assert len(result.series) <= 901

    other = WorkflowAggregate("W", ["a"])
    for (core, _), delta in sorted(unique.items(), key=lambda item: item[0]):
        other.apply(core, delta)
    assert numbers(other.freeze()) == numbers(result)


@given(
    st.lists(st.tuples(st.floats(0, 1.2), st.integers(0, 1000)), max_size=200),
    st.integers(2, 12),
)
def test_widening_keeps_totals_and_the_bound(
    steps: list[tuple[float, int]], points_max: int
) -> None:
    timeline = Timeline(points_max)
    now_s, total = 0.0, 0
    for pause_s, requests in steps:
        start_s, now_s = now_s, now_s + pause_s
        latencies = [(sparse(800, requests), None)] if requests else []
        timeline.add(start_s, now_s, Amounts(requests=requests, failed=requests // 3), latencies)
        total += requests
        assert len(timeline) <= points_max
    timeline.advance(now_s + 0.01)
    points = timeline.points()
    assert sum(point.requests for point in points) == total
    assert all(point.requests >= 0 for point in points)
    assert [point.at_s for point in points] == sorted(point.at_s for point in points)
    end_s = points[-1].at_s + points[-1].width_s
    assert abs(end_s - timeline.now_s) < 1e-9
