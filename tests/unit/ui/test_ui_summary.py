from __future__ import annotations

import re

import pytest

from hyperscale.errors import BadInput
from hyperscale.metrics.results import Distribution, ErrorCount, Results, StepResult, WorkflowResult
from hyperscale.ui.output import Paint
from hyperscale.ui.summary import render_summary
from hyperscale.ui.text import to_ascii
from hyperscale.ui.trend import DEFAULT_STATS, Trend, parse_trend_stats
from tests.unit.ui.golden import assert_golden
from tests.unit.ui.sample import empty_results, latencies, sample_results


def test_summary_of_a_whole_run() -> None:
    assert_golden("summary.txt", render_summary(sample_results()))


def test_summary_of_a_run_that_measured_nothing() -> None:
    assert_golden("summary_empty.txt", render_summary(empty_results()))


def test_summary_of_no_workflow_at_all() -> None:
    assert render_summary(Results()) == "\n✗ nothing ran: 0 requests in 0s (exit 1)\n"


@pytest.mark.parametrize("results", [sample_results(), empty_results(), Results()])
@pytest.mark.parametrize("width", [80, 100, 140])
def test_lines_stay_within_the_width_and_hold_no_nonsense(results: Results, width: int) -> None:
    summary = render_summary(results, width=width)
    body = summary.splitlines()[:-1]  # the verdict is one line whatever its length
    assert not [line for line in body if len(line) > width]
    assert not re.search(r"\bnan\b|\binf\b|None", summary)


@pytest.mark.parametrize(
    "name",
    [
        "http_reqs", "http_req_duration", "http_req_response", "http_req_failed",
        "http_req_waiting", "http_req_connecting", "http_req_tls_handshaking",
        "iteration_duration", "iterations", "dropped_iterations", "vus", "vus_max",
        "data_received", "data_sent", "checks",
    ],
)  # fmt: skip
def test_names_that_k6_users_grep(name: str) -> None:
    assert re.search(rf"^  {name}\.+: \S", render_summary(sample_results()), re.MULTILINE)


def test_quiet_is_the_verdict_alone() -> None:
    assert render_summary(sample_results(), quiet=True) == (
        "✗ 1 of 2 thresholds crossed: 5,100,000 requests in 5m01s, 0.04% failed, 12 never sent,"
        " p95 71.78ms (exit 99)\n"
    )


def test_verdict_of_a_passed_run() -> None:
    results = sample_results()
    results.passed, results.exit_code = True, 0
    for threshold in results.thresholds:
        threshold.passed = True
    verdict = render_summary(results, quiet=True)
    assert verdict.startswith("✓ passed: 5,100,000 requests")
    assert "2 thresholds kept" in verdict


@pytest.mark.parametrize(
    ("exit_code", "words"),
    [(105, "stopped by a signal"), (98, "part of the load was lost"), (1, "failed")],
)
def test_verdict_says_why(exit_code: int, words: str) -> None:
    results = sample_results()
    results.exit_code = exit_code
    assert render_summary(results, quiet=True).startswith(f"✗ {words}: ")


def test_what_is_missing_of_the_planned_load_is_said_once() -> None:
    results = sample_results()
    results.exit_code, results.passed = 98, False
    results.coverage, results.lost = 0.973, ["worker w7 lost at 41 s"]
    said = "coverage: 97.3 % of planned load, worker w7 lost at 41 s"
    assert said in render_summary(results)
    results.cut, results.cut_reason = "worker lost", "worker w7 lost at 41 s"
    assert render_summary(results).count("worker w7") == 1
    results.coverage = 0.99999
    assert "99.9 % of planned load" in render_summary(results)
    results.coverage, results.lost = 1.0, []
    assert "of planned load" not in render_summary(results)
    assert "cut short: worker w7" in render_summary(results)


def test_verdict_when_every_request_failed() -> None:
    step = StepResult(name="home", workflow="Site", count=10, failed=10)
    results = Results(workflows=[WorkflowResult(name="Site", steps=[step])])
    assert "✗ nothing succeeded: 10 requests" in render_summary(results, quiet=True)


def test_calls_that_were_never_sent_are_part_of_the_failed_share() -> None:
    step = StepResult(name="home", workflow="Site", unsent=10, failed=10)
    results = Results(workflows=[WorkflowResult(name="Site", steps=[step])])
    said = "✗ nothing succeeded: 0 requests in 0s, 100.00% failed, 10 never sent (exit 1)\n"
    assert render_summary(results, quiet=True) == said
    step.errors = [
        ErrorCount(outcome="refused", detail="ConnectionRefusedError", count=8),
        ErrorCount(outcome="dns", detail="gaierror", count=2),
    ]
    summary = render_summary(results)
    assert "http_req_failed...........: 100.00%  10 out of 10\n" in summary
    assert "(10 calls were never sent: connection refused (8), host not found (2))" in summary


def test_code_that_raised_without_a_call_is_no_run_of_nothing() -> None:
    step = StepResult(name="home", workflow="Site", runs=3, runs_failed=3)
    results = Results(workflows=[WorkflowResult(name="Site", steps=[step])])
    assert "✗ nothing succeeded: 0 requests" in render_summary(results, quiet=True)


def test_code_that_raised_after_every_call_is_the_reason() -> None:
    step = StepResult(name="home", workflow="Site", count=3, runs=3, runs_failed=3)
    results = Results(workflows=[WorkflowResult(name="Site", steps=[step])])
    assert "✗ no run of a step succeeded: 3 requests" in render_summary(results, quiet=True)


def test_a_test_that_stopped_itself_says_so() -> None:
    results = sample_results()
    results.cut, results.cut_reason, results.exit_code = "test", "the stock is empty", 1
    summary = render_summary(results)
    assert "cut short: the stock is empty" in summary
    assert "✗ failed by the test itself: 5,100,000 requests" in summary
    results.passed, results.exit_code = True, 0
    assert "✓ passed (the test stopped itself): " in render_summary(results)


def test_names_of_requests_stand_under_their_step_where_they_tell_more() -> None:
    results = sample_results()
    lines = render_summary(results).splitlines()
    browse = next(i for i, line in enumerate(lines) if line.startswith("  GET browse"))
    assert lines[browse + 1].startswith("    GET /items  ")
    assert lines[browse + 2].startswith("    GET /items/{id}  ")
    assert "https://shop.example/login" not in "\n".join(lines)  # its only name is its target


def test_nothing_is_cut_where_lines_may_have_any_length() -> None:
    results, long = sample_results(), "x" * 300
    browse = results.workflows[0].steps[1]
    browse.name = f"browse_{long}"
    browse.errors[0].samples = [f"TypeError: get() got an unexpected argument '{long}'"]
    results.workflows[0].marks[0].text = f"mark {long}"
    results.workflows[0].checks[1].samples = [f"got {long}"]
    summary = render_summary(results)
    assert f"  GET browse_{long} " in summary
    assert f"unexpected argument '{long}'  shop.py:31 in browse" in summary
    assert f"mark {long}" in summary
    assert f"got {long}" in summary
    wrapped = render_summary(results, width=80)
    assert wrapped.replace("\n", "").replace(" ", "").count("x" * 300) == 4  # but for the table


def test_tracebacks_are_shown_where_they_are_asked_for() -> None:
    assert 'return item["price"]' not in render_summary(sample_results())
    told = render_summary(sample_results(), tracebacks=True)
    assert re.search(r'^ +File "shop.py", line 31, in browse\n +return item', told, re.MULTILINE)


def test_response_time_is_shown_only_where_it_differs() -> None:
    results = sample_results()
    assert render_summary(results).count("↳ response time") == 2
    results.workflows.pop()
    assert "response time" not in render_summary(results)
    assert "http_req_response" not in render_summary(results)


def test_trend_stats_are_the_callers_choice() -> None:
    summary = render_summary(sample_results(), trend_stats=["p(99.9)", "count"])
    assert re.search(r"http_req_duration\.+: p\(99\.9\)=[\d.]+ms count=5,100,000\n", summary)


def test_every_character_has_an_ascii_stand_in() -> None:
    summary = render_summary(sample_results())
    plain = to_ascii(summary)
    assert plain.isascii()
    assert "?" not in plain.replace("q=shoe", "")
    assert list(map(len, plain.splitlines())) == list(map(len, summary.splitlines()))


def test_colour_adds_escapes_and_nothing_else() -> None:
    painted = render_summary(sample_results(), paint=Paint(True))
    assert "\x1b[31m" in painted
    assert re.sub(r"\x1b\[\d+m", "", painted) == render_summary(sample_results())


def test_messages_of_the_target_cannot_control_the_terminal() -> None:
    results = sample_results()
    results.workflows[0].steps[3].errors[0].samples = ["\x1b[2Jgone\r\nsecond line"]
    results.workflows[0].checks[1].samples = ["\x07bell"]
    summary = render_summary(results)
    assert "\x1b" not in summary
    assert "\x07" not in summary
    assert "[2Jgone second line" in summary


@pytest.mark.parametrize("value", ["avg,p(95)", ["avg", " p(95) "]])
def test_trend_stats_are_parsed(value: str | list[str]) -> None:
    assert parse_trend_stats(value) == ("avg", "p(95)")


def test_no_trend_stats_are_the_default() -> None:
    assert parse_trend_stats("") == DEFAULT_STATS


@pytest.mark.parametrize("value", ["p95", "p(101)", "mean", "avg,,p()"])
def test_unknown_trend_stat_is_named(value: str) -> None:
    with pytest.raises(BadInput, match="is not a summary statistic"):
        parse_trend_stats(value)


def test_trend_merges_histograms() -> None:
    fast, slow = latencies(1.0, 2000, spread=0.01), latencies(100.0, 2000, spread=0.01)
    trend = Trend([fast, slow, Distribution()])
    assert trend.count == 4000
    assert trend.stat("p(25)") == pytest.approx(1.0, rel=0.05)
    assert trend.stat("p(75)") == pytest.approx(100.0, rel=0.05)
    assert trend.stat("avg") == pytest.approx(50.5, rel=0.05)
    assert trend.stat("stdev") == pytest.approx(49.5, rel=0.05)


def test_trend_does_not_invent_percentiles_without_histograms() -> None:
    bare = Distribution(count=3, mean_ms=2.0, p95_ms=3.0, max_ms=3.0)
    assert Trend([bare]).stat("p(95)") == 3.0
    assert Trend([bare, bare]).stat("p(95)") != Trend([bare, bare]).stat("p(95)")
