"""The page of two or more runs: what is said of them, and what the script is given to draw."""

from __future__ import annotations

import json

import pytest

from hyperscale.metrics.results import Results
from hyperscale.ui.html.comparison import render_comparison_report
from tests.unit.ui.sample import sample_results
from tests.unit.ui_html.page import Page


def run(slower: float = 1.0) -> Results:
    results = sample_results("finished")
    for workflow in results.workflows:
        for point in workflow.series:
            point.p50_ms *= slower
            point.ranges = [40, 3, 0, 7]
        for step in workflow.steps:
            step.series = []
            step.service.buckets = [
                bucket + int(64 * (slower - 1)) for bucket in step.service.buckets
            ]
            step.service.max_ms *= slower
    return results


def test_what_got_worse_is_said_with_its_numbers() -> None:
    page = Page(render_comparison_report([("before.json", run()), ("after.json", run(2.0))]))
    words = " ".join(element.text for element in page.elements)
    assert "Worse" in words
    assert "before.json and after.json" in words
    assert any("p50" in e.text for e in page.elements if e.tag == "th")
    assert "From run to run" not in words


def test_of_many_runs_the_trend_is_drawn_and_the_first_and_last_are_compared() -> None:
    runs = [(f"run{place}.json", run()) for place in range(7)]
    page = Page(render_comparison_report(runs))
    words = " ".join(element.text for element in page.elements)
    assert "From run to run" in words
    assert "No change between the first and the last" in words
    tips = [e.attributes["data-tip"] for e in page.elements if "data-tip" in e.attributes]
    assert sum("run3.json" in tip for tip in tips) >= 2
    # Of seven courses the first and the last three stand side by side, with their points.
    (data,) = [e.text for e in page.elements if e.attributes.get("id") == "hyperscale-series"]
    assert len(json.loads(data)["workflows"]) == 4 * len(runs[0][1].workflows)


def test_a_heat_map_has_the_scale_of_all_runs() -> None:
    other = run()
    other.workflows[0].series[0].ranges = [10, 1]
    page = Page(render_comparison_report([("a", run()), ("b", other)]))
    lows = {
        e.attributes["data-low"]
        for e in page.elements
        if e.attributes.get("data-kind") == "heat" and e.attributes["data-workflow"] in ("0", "1")
    }
    assert lows == {"10"}


def test_runs_without_ranges_or_points_are_shown_all_the_same() -> None:
    old = run()
    for workflow in old.workflows:
        workflow.series = []
    text = render_comparison_report([("old", old), ("new", run())])
    assert "No timeline." in text


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "</script><b>", "\u202eevil"])
def test_names_stay_text(name: str) -> None:
    results = run()
    results.workflows[0].name = name
    page = Page(render_comparison_report([(name, results), (name, results)]))
    assert [e for e in page.elements if e.tag == "b" and e.text == ""] == []
    assert len([e for e in page.elements if e.tag == "script"]) == 2
