"""Points add up to the results, whatever comes between."""

from __future__ import annotations

import msgspec

from hyperscale.reporting.points import Meter, Points, Row, history
from tests.unit.reporting.growing import STEPS, growing


def rows_of(points: list[Points], about: str, **labels: str) -> list[Row]:
    found = [row for each in points for row in each.rows if row.about == about]
    return [row for row in found if row.labels.items() >= labels.items()]


def test_counts_add_up_and_totals_are_what_they_added_up_to() -> None:
    meter = Meter("r", 100.0)
    seen = [growing(1), growing(2), growing(2), growing(5, finished=True)]
    points = [meter.take(results, 101.5 + at) for at, results in enumerate(seen)]
    workflow = rows_of(points, "workflow", workflow="Shop")
    assert [row.counts["requests"] for row in workflow] == [100, 100, 0, 300]
    assert [row.totals["requests"] for row in workflow] == [100, 200, 200, 500]
    for step in STEPS:
        mine = rows_of(points, "step", step=step)
        assert sum(row.counts["failed"] for row in mine) == 25
        errors = rows_of(points, "error", step=step, outcome="status", detail="503")
        assert sum(row.counts["count"] for row in errors) == 25
    assert sum(row.counts["passed"] for row in rows_of(points, "check")) == 250
    (last,) = rows_of(points[-1:], "run")
    assert (last.gauges["passed"], last.gauges["exit_code"]) == (1.0, 0.0)
    assert "passed" not in rows_of(points[:1], "run")[0].gauges


def test_a_workflow_that_has_ended_is_told_once() -> None:
    meter = Meter("r", 0.0)
    points = [meter.take(growing(3, finished=True), 1.0 + at) for at in range(3)]
    assert len(rows_of(points, "workflow")) == 1


def test_what_shrinks_takes_nothing_back() -> None:
    """Another manager may not have heard all yet."""
    meter = Meter("r", 0.0)
    points = [meter.take(growing(seconds), 1.0 + at) for at, seconds in enumerate((3, 2, 4))]
    assert [row.counts["requests"] for row in rows_of(points, "workflow")] == [300, 0, 100]


def test_latencies_are_those_of_a_second_that_is_over() -> None:
    meter = Meter("r", 0.0)
    first, second = meter.take(growing(1), 1.0), meter.take(growing(2), 2.0)
    assert "p95_ms" not in rows_of([first], "workflow")[0].gauges
    assert rows_of([second], "workflow")[0].gauges["p95_ms"] == 12.25
    idle = growing(2)
    idle.workflows[0].series[0].requests = 0
    assert "p95_ms" not in rows_of([Meter("r", 0.0).take(idle, 1.0)], "workflow")[0].gauges


def test_no_two_points_are_of_the_same_second() -> None:
    meter = Meter("r", 10.5)
    times = [meter.take(growing(1), at).time_s for at in (11.5, 12.4, 12.6, 12.7, 14.0)]
    assert len({int(at) for at in times}) == 5


def test_history_adds_up_as_well() -> None:
    points = history(growing(4, finished=True), "r")
    assert sum(row.counts["requests"] for row in rows_of(points, "workflow")) == 400
    assert sum(row.counts["requests"] for row in rows_of(points, "step", step="order")) == 200
    assert [each.time_s for each in points] == sorted(each.time_s for each in points)
    assert history(msgspec.structs.replace(growing(4), started_at=""), "r") == []


def test_rows_of_other_workflows_are_left_out() -> None:
    points = Meter("r", 0.0).take(growing(2), 1.0)
    assert {row.about for row in points.only(frozenset({"Login"})).rows} == {"run"}
    assert points.only(frozenset({"Shop"})).rows == points.rows
