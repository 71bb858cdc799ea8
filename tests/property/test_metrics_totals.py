"""Totals against a count of every moment."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.metrics import totals
from hyperscale.metrics.results import Point, Results, WorkflowResult

LOADS = st.lists(
    st.tuples(st.integers(0, 20), st.lists(st.integers(0, 50), max_size=12)), max_size=6
)


def workflow(started_s: int, vus: list[int]) -> WorkflowResult:
    return WorkflowResult(
        name="W",
        started_s=started_s,
        elapsed_s=len(vus),
        vus_max=max(vus, default=0),
        series=[Point(at_s=at, width_s=1, vus=count) for at, count in enumerate(vus)],
    )


@given(LOADS)
def test_every_second_is_counted_as_it_was(loads: list[tuple[int, list[int]]]) -> None:
    results = Results(workflows=[workflow(*load) for load in loads])
    seconds: dict[int, int] = {}
    for started_s, vus in loads:
        for at, count in enumerate(vus):
            seconds[started_s + at] = seconds.get(started_s + at, 0) + count
    assert totals.load_seconds(results) == len(seconds)
    assert totals.vus_max(results) == max(seconds.values(), default=0)


@given(LOADS, st.floats(0, 100))
def test_when_a_run_began_does_not_matter(
    loads: list[tuple[int, list[int]]], later_s: float
) -> None:
    results = Results(workflows=[workflow(*load) for load in loads])
    before = (totals.load_seconds(results), totals.vus_max(results))
    for each in results.workflows:
        each.started_s += later_s
    assert abs(totals.load_seconds(results) - before[0]) < 1e-6
    assert totals.vus_max(results) <= sum(each.vus_max for each in results.workflows)
