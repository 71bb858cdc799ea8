"""JUnit XML, so that a CI server shows thresholds, checks and broken workflows as test cases.

One suite for the run (was it carried out?), one for the thresholds, one for each workflow with
its checks. It is red only where the verdict of the run is: a threshold that does not hold is a
failure, a run or workflow that could not be carried out an error. Checks that failed are told in
the output of their case; a threshold says how many are too many.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from hyperscale.errors import ExitCode
from hyperscale.metrics.results import (
    CheckResult,
    Results,
    ThresholdResult,
    WorkflowResult,
)

# Everything XML 1.0 cannot carry, not even escaped.
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(results: Results) -> bytes:
    root = Xml.Element("testsuites", name=_clean(results.name or "hyperscale"))
    suites = [_run_suite(results)]
    if results.thresholds:
        suites.append(_suite("thresholds", [_threshold_case(t) for t in results.thresholds]))
    suites += [_workflow_suite(workflow) for workflow in results.workflows]
    root.extend(suites)
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    root.set("time", f"{results.elapsed_s:.3f}")
    Xml.indent(root)
    return bytes(Xml.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _run_suite(results: Results) -> Xml.Element:
    case = _case("run", "the run was carried out", results.elapsed_s)
    crossed = results.exit_code == ExitCode.THRESHOLDS_CROSSED and not results.failure
    if not results.passed and not crossed:
        cut = results.cut_reason or (f"cut short: {results.cut}" if results.cut else "")
        reason = results.failure or cut or "; ".join(results.lost)
        message = reason or f"the run failed with exit code {results.exit_code}"
        _add(case, "error", message, results.warnings)
    suite = _suite("run", [case], results.elapsed_s)
    if results.started_at:
        suite.set("timestamp", _clean(results.started_at))
    if results.environment.host:
        suite.set("hostname", _clean(results.environment.host))
    if results.tags:
        properties = Xml.Element("properties")
        for name, value in results.tags.items():
            Xml.SubElement(properties, "property", name=_clean(name), value=_clean(value))
        suite.insert(0, properties)
    return suite


def _threshold_case(threshold: ThresholdResult) -> Xml.Element:
    case = _case("thresholds", f"{threshold.scope}: {threshold.expression}")
    if not threshold.passed:
        actual = threshold.actual_text or (
            "nothing to judge" if threshold.actual is None else f"{threshold.actual:g}"
        )
        aborted = threshold.aborted_at_s
        when = "" if aborted is None else f"; the run was stopped after {aborted:g} s"
        _add(case, "failure", f"{threshold.expression} does not hold: {actual}{when}")
    elif threshold.actual is None:
        _add(case, "skipped", "nothing to judge")
    return case


def _workflow_suite(workflow: WorkflowResult) -> Xml.Element:
    ran = _case(workflow.name, "the workflow ran", workflow.elapsed_s)
    if workflow.error:
        _add(ran, "error", workflow.error)
    checks = [_check_case(check) for check in workflow.checks]
    return _suite(workflow.name, [ran, *checks], workflow.elapsed_s)


def _check_case(check: CheckResult) -> Xml.Element:
    case = _case(check.workflow, check.name)
    if check.failed:
        times = check.passed + check.failed
        told = [f"{check.failed} of {times} checks failed", *check.samples]
        Xml.SubElement(case, "system-out").text = _clean("\n".join(told))
    return case


def _suite(name: str, cases: list[Xml.Element], time_s: float = 0.0) -> Xml.Element:
    suite = Xml.Element("testsuite", name=_clean(name), tests=str(len(cases)))
    for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("time", f"{time_s:.3f}")
    suite.extend(cases)
    return suite


def _case(group: str, name: str, time_s: float = 0.0) -> Xml.Element:
    return Xml.Element("testcase", classname=_clean(group), name=_clean(name), time=f"{time_s:.3f}")


def _add(case: Xml.Element, kind: str, message: str, details: list[str] | None = None) -> None:
    element = Xml.SubElement(case, kind, message=_clean(message))
    if details:
        element.text = _clean("\n".join(details))


def _clean(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)
