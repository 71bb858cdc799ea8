from __future__ import annotations

from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.metrics.results import CheckResult, Results, WorkflowResult
from hyperscale.reporting.junit_file import junit_xml
from tests.unit.reporting.sample import sample_results


def parsed(results: Results) -> Xml.Element:
    return Xml.fromstring(junit_xml(results))


def case(root: Xml.Element, name: str) -> Xml.Element:
    found = [element for element in root.iter("testcase") if element.get("name") == name]
    assert len(found) == 1, name
    return found[0]


def test_every_threshold_check_and_workflow_is_a_case() -> None:
    root = parsed(sample_results())
    names = [(suite.get("name"), len(suite.findall("testcase"))) for suite in root]
    assert names == [("run", 1), ("thresholds", 3), ("Checkout", 3), ("Search", 1)]
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "8",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }


def test_a_crossed_threshold_fails_with_what_was_measured() -> None:
    failure = case(parsed(sample_results()), "http_req_duration: p(95)<50").find("failure")
    assert failure is not None
    assert failure.get("message") == (
        "p(95)<50 does not hold: p(95)=80.25ms; the run was stopped after 9.5 s"
    )


def test_a_threshold_with_nothing_to_judge_is_skipped() -> None:
    assert case(parsed(sample_results()), "Search.find: p(95)<50").find("skipped") is not None


def test_a_failed_check_tells_how_often_and_is_no_verdict_of_its_own() -> None:
    cart = case(parsed(sample_results()), "cart")
    assert [child.tag for child in cart] == ["system-out"]
    assert cart[0].text == "3 of 10 checks failed\nempty"
    assert len(case(parsed(sample_results()), "has_token")) == 0


def test_a_run_that_passed_is_green_whatever_its_checks_said() -> None:
    results = sample_results()
    results.passed, results.exit_code, results.thresholds = True, 0, []
    for workflow in results.workflows:
        workflow.error = ""
    root = parsed(results)
    assert (root.get("failures"), root.get("errors")) == ("0", "0")


def test_a_workflow_that_did_not_run_is_an_error() -> None:
    [suite] = [s for s in parsed(sample_results()) if s.get("name") == "Search"]
    error = suite.find("testcase/error")
    assert error is not None
    assert error.get("message") == "Search could not start."


def test_crossed_thresholds_are_no_error_of_the_run() -> None:
    assert len(case(parsed(sample_results()), "the run was carried out")) == 0


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (Results(cut="signal", cut_reason="Stopped by Ctrl-C.", exit_code=105), "by Ctrl-C"),
        (Results(cut="timeout", exit_code=1), "cut short: timeout"),
        (Results(lost=["worker w7 lost at 41 s"], exit_code=98), "w7 lost at 41 s"),
        (Results(exit_code=1), "exit code 1"),
        (Results(exit_code=99, failure="3 of 9 requests failed"), "3 of 9 requests failed"),
    ],
)
def test_a_run_not_carried_out_is_an_error(results: Results, message: str) -> None:
    error = case(parsed(results), "the run was carried out").find("error")
    assert error is not None
    assert message in (error.get("message") or "")


def test_the_run_says_where_and_when() -> None:
    run = parsed(sample_results())[0]
    assert (run.get("hostname"), run.get("timestamp")) == ("laptop", "2026-01-02T03:04:05Z")
    [tag] = run.findall("properties/property")
    assert (tag.get("name"), tag.get("value")) == ("branch", "main")


@given(st.text(st.characters(), max_size=50))
def test_no_text_makes_the_file_unreadable(text: str) -> None:
    check = CheckResult(name=text, workflow=text, failed=1, samples=[text])
    workflow = WorkflowResult(name=text, error=text, checks=[check])
    root = parsed(Results(name=text, workflows=[workflow], tags={text: text}, warnings=[text]))
    assert root.get("tests") == "3"
