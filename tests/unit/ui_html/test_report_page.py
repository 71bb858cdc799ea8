"""The report is one safe, well-formed file, whatever the run was."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any, get_args

import msgspec
import pytest

from hyperscale.metrics.results import (
    Cut,
    Distribution,
    Mark,
    Point,
    Results,
    State,
    StepResult,
    ThresholdResult,
    WorkflowResult,
)
from hyperscale.ui.html import extract, render
from tests.unit.ui_html.page import Page
from tests.unit.ui_html.sample import checkout, closed_series, sample, step_series

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(1)</script>",
    "</title></style><!-- <svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "&lt;script&gt; & &#60;",
    "nul\x00 bell\x07 separators\u2028\u2029 override\u202e",
]
# Fields the schema restricts to known words.
WORDS = {*get_args(State), *get_args(Cut), "count", "rate", "distribution", "sample"}
SCHEMA = Results().schema


def poisoned(value: Any, poison: str) -> Any:
    """Every text replaced, and the keys that authors and servers choose."""
    if isinstance(value, dict):
        for key in ("tags", "statuses", "headers", "request_headers", "skips", "unmeasured"):
            if value.get(key):
                value[key] = dict.fromkeys([poison], next(iter(value[key].values())))
        return {key: poisoned(item, poison) for key, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item, poison) for item in value]
    if isinstance(value, str) and value not in WORDS and value != SCHEMA:
        return poison
    return value


@pytest.mark.parametrize("poison", HOSTILE)
def test_no_text_of_a_run_becomes_markup(poison: str) -> None:
    results = msgspec.convert(poisoned(msgspec.to_builtins(sample()), poison), type=Results)
    results.saturation = results.cut_reason = results.workflows[0].error = poison
    results.thresholds[0].passed = False
    assert results.workflows[0].steps[1].errors[0].samples == [poison]
    html = render(results)
    page, clean = Page(html), Page(render(sample()))

    assert {element.tag for element in page.elements} <= {e.tag for e in clean.elements}
    assert len(page.all("script")) == 2
    assert not [
        name for element in page.elements for name in element.attributes if name.startswith("on")
    ]
    assert extract(html) == results
    assert re.search("[\x00-\x08\x0b-\x1f\u202e]", page.text) is None


def test_every_page_is_well_formed_and_asks_for_nothing() -> None:
    html = render(sample())
    page = Page(html)
    for element in page.elements:
        for name in ("src", "srcset", "data", "action", "poster", "xlink:href"):
            assert name not in element.attributes
        assert element.attributes.get("href", "#").startswith(("#", "data:"))
        assert "url(" not in element.attributes.get("style", "")
    style = page.all("style")[0].text
    assert "url(" not in style
    assert "@import" not in style
    ids = [e.attributes["id"] for e in page.elements if "id" in e.attributes]
    assert len(ids) == len(set(ids))


def test_the_policy_allows_exactly_the_script_of_the_page() -> None:
    page = Page(render(sample()))
    policy = next(
        e.attributes["content"]
        for e in page.all("meta")
        if e.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    script = page.all("script")[1].text
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_charts_and_tables_can_be_read_without_seeing_them() -> None:
    page = Page(render(sample()))
    drawings = [e for e in page.all("svg") if e.attributes.get("role") == "img"]
    assert len(drawings) == 20
    ids = {e.attributes.get("id") for e in page.elements}
    for drawing in drawings:
        assert set(drawing.attributes["aria-labelledby"].split()) <= ids
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(e.attributes.get("scope") in ("col", "row") for e in page.all("th"))


def test_the_run_is_told_from_the_verdict_to_the_command() -> None:
    page = Page(render(sample()))
    for words in (
        "Failed",
        "1 of 3 thresholds crossed: Checkout.checkout: p(99)<800, got p(99)=1.64s.",
        "270,295",
        "Service",
        "Response",
        "arrivals not started",
        "HTTP 503",
        "no healthy upstream",
        "cart_has_items",
        "basket_value",
        "32 VUs added (96)",
        "Phases of a request",
        "The generator kept up",
        "AMD EPYC 7763, 4 cores",
        "--tag build=4711",
    ):
        assert words in page.text, words
    assert page.all("title")[0].text == "Failed: checkout.py"


def test_a_step_has_its_course_its_time_and_its_requests_by_name() -> None:
    results = sample()
    page = Page(render(results))
    cart = next(e for e in page.all("details") if e.attributes.get("id") == "w0-s1")
    for words in ("GET /items/{id}", "kind=asset", "41 of 9,903 runs failed", "inside the step"):
        assert words in cart.text, words
    assert "skipped 12: login got no answer" in page.text
    assert "buying" in next(e.text for e in page.all("table") if "Groups" in e.text)
    links = {e.attributes["href"] for e in page.all("a")}
    ids = {f"#{e.attributes['id']}" for e in page.elements if "id" in e.attributes}
    assert links <= ids
    charts = [e for e in page.all("figure") if "data-step" in e.attributes]
    assert len(charts) == 2 * sum(len(workflow.steps) for workflow in results.workflows)


def test_a_long_course_of_a_step_is_drawn_in_as_many_intervals_as_there_is_room() -> None:
    workflow = checkout()
    workflow.steps[0].series = step_series(1, 1200, 100.0, 9.0, 0.0)
    html = render(Results(workflows=[workflow]))
    drawing = html[html.index('id="w0-s0-throughput-title"') :]
    path = re.search(r'<path d="([^"]+)" class="line requests"', drawing)
    assert path is not None
    assert path[1].count(" ") < 620


def test_a_failure_shows_its_place_its_exchange_and_its_frames() -> None:
    page = Page(render(sample()))
    failures = page.all("ol", "failures")[0].text
    for words in (
        "shop.py:31 in cart",
        "first at 12.4 s, user 3: GET https://shop.example.test/items/77 → 200, 312 bytes",
        'return item["price"]',
        "retry-after: 1",
        '{"cart": 4711, "pay": "card"}',
        "authorization: ***",
    ):
        assert words in failures, words


def test_calls_never_sent_and_requests_not_measured_are_told_apart() -> None:
    text = Page(render(sample())).text
    assert "5 never sent" in text
    assert "besides 500 in the warm-up, 2 in setup" in text


def test_a_generator_that_was_the_bottleneck_is_said_first() -> None:
    results = sample()
    results.saturation = "Core 2 was busy 98 % of the time; the target may be faster than this."
    page = Page(render(results))
    assert results.saturation in page.all("ul", "notices")[0].text
    assert "The generator kept up" not in page.text


@pytest.mark.parametrize(
    ("changes", "title", "reason"),
    [
        ({"exit_code": 0, "passed": True}, "Passed", "nothing judged the other numbers"),
        ({"exit_code": 1}, "Failed", "No request was made."),
        ({"exit_code": 98, "cut": "worker lost"}, "Incomplete", "Cut short: worker lost."),
        (
            {"exit_code": 98, "coverage": 0.973, "lost": ["worker w7 lost at 41 s"]},
            "Incomplete",
            "97.3 % of planned load, worker w7 lost at 41 s.",
        ),
        ({"exit_code": 105, "cut": "signal", "cut_reason": "Ctrl-C"}, "Stopped", "Ctrl-C."),
        ({"exit_code": 77}, "Failed", "No request was made."),
        (
            {"exit_code": 0, "passed": True, "cut": "test", "cut_reason": "stock is empty"},
            "Passed",
            "Stock is empty.",
        ),
        ({"state": "running"}, "Not finished", "The run was running at this moment."),
    ],
)
def test_the_headline_follows_the_exit_code(
    changes: dict[str, Any], title: str, reason: str
) -> None:
    page = Page(render(Results(**{"state": "finished", **changes})))
    verdict = page.all("section", "verdict")[0].text
    assert title in verdict
    assert reason in verdict


def test_thresholds_that_were_met_are_counted() -> None:
    results = sample()
    results.thresholds = [
        ThresholdResult(expression="p(95)<500", scope="x", passed=True, actual=46.2)
    ]
    results.passed, results.exit_code = True, 0
    text = Page(render(results)).text
    assert "The threshold was met" in text
    assert "46.2" in text


def runs() -> dict[str, WorkflowResult]:
    one = checkout()
    one.series = one.series[:1]
    many = checkout()
    many.series = closed_series(600, 0.5)
    late = checkout()
    late.marks = [Mark(at_s=at / 10, text=f"mark number {at}") for at in range(620)]
    return {
        "nothing": WorkflowResult(name=""),
        "a step without requests": WorkflowResult(
            name="W", steps=[StepResult(name="s", workflow="W")]
        ),
        "no series": WorkflowResult(name="W", steps=checkout().steps),
        "one point": one,
        "600 points": many,
        "marks close together and after the end": late,
        "only silence": WorkflowResult(name="W", series=[Point(at_s=0, width_s=1, vus=1)]),
        "an interval of no width": WorkflowResult(
            name="W", series=[Point(at_s=0, width_s=0, requests=3, p50_ms=1.0)]
        ),
        "all requests refused": WorkflowResult(
            name="W",
            steps=[StepResult(name="s", workflow="W", count=5, failed=5)],
            series=[Point(at_s=0, width_s=1, requests=5, failed=5)],
        ),
        "one request": WorkflowResult(
            name="W",
            steps=[
                StepResult(
                    name="s",
                    workflow="W",
                    count=1,
                    service=Distribution(
                        count=1, mean_ms=5, min_ms=5, max_ms=5, buckets=[789], counts=[1]
                    ),
                )
            ],
        ),
    }


@pytest.mark.parametrize("name", runs())
def test_unusual_runs_have_a_page(name: str) -> None:
    results = Results(name=name, state="finished", workflows=[runs()[name]])
    html = render(results)
    Page(html)
    visible = html[: html.index('<script type="application/json"')]
    assert "nan" not in re.findall(r"[\w.]+", visible.lower())
    assert extract(html) == results


def test_no_workflow_at_all() -> None:
    Page(render(Results()))


def test_the_sizes_of_reports() -> None:
    assert len(render(sample()).encode()) < 350_000
    results = sample()
    results.workflows[0].series = closed_series(600, 0.5)
    assert len(render(results).encode()) < 520_000


def test_silence_leaves_a_gap_in_the_latency() -> None:
    html = render(sample())
    drawing = html[html.index('id="w0-latency-title"') : html.index('id="w0-users-title"')]
    assert len(re.findall(r'<path d="[^"]+" class="line p50"', drawing)) == 2


def test_marks_close_together_share_a_label() -> None:
    workflow = checkout()
    moments = (10.0, 10.2, 10.4, 58.0)
    workflow.marks = [Mark(at_s=at, text="paused for a moment") for at in moments]
    page = Page(render(Results(workflows=[workflow])))
    assert [e.text for e in page.all("text", "number")] == ["1–3", "4"]
    assert [e.text for e in page.all("text", "words")] == ["1–3", "paused for a moment · 4"]
    assert len(page.all("ol", "marks")) == 1
