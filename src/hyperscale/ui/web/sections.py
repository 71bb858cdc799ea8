"""The parts of a run that the page is told whole whenever they change, as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hyperscale.metrics.results import Exchange, Results, WorkflowResult
from hyperscale.metrics.totals import per_second, vus_max
from hyperscale.ui import totals
from hyperscale.ui.failures import Failure, moment, ranked
from hyperscale.ui.html.spread import merged
from hyperscale.ui.html.verdict import judge
from hyperscale.ui.live.scene import share_done

# More kinds of failures than anybody reads; the report has all of them.
FAILURES_MAX = 50
EVENTS_MAX = 500


def sections(results: Results) -> dict[str, Any]:
    return {
        "run": _run(results),
        "totals": _totals(results),
        "workflows": [_workflow(one) for one in results.workflows],
        "names": {w.name: [_name(step) for step in w.steps] for w in results.workflows},
        "thresholds": [
            {
                "scope": one.scope,
                "expression": one.expression,
                "passed": one.passed,
                "judged": one.actual is not None,
                "actual": totals.judged(one),
            }
            for one in results.thresholds
        ],
        "notices": [{"label": label, "text": text} for label, text in totals.notes(results)],
        "failures": [_failure(one) for one in ranked(results.workflows)[:FAILURES_MAX]],
        "health": {
            "saturation": results.saturation,
            "cost": totals.generator_cost(results),
            "cores": results.core_use,
        },
        "datacenters": [
            {"name": one.name, "status": one.status, "requests": one.requests, "failed": one.failed}
            for one in results.datacenters
        ],
        "events": _events(results),
    }


def _run(results: Results) -> dict[str, Any]:
    verdict = judge(results) if results.state == "finished" else None
    return {
        "name": results.name,
        "state": results.state,
        "started_at": results.started_at,
        "elapsed_s": round(results.elapsed_s, 1),
        "host": results.environment.host,
        "command": results.environment.command,
        "tags": results.tags,
        "verdict": verdict
        and {"tone": verdict.tone, "title": verdict.title, "why": verdict.reason},
        "exit_code": results.exit_code,
    }


def _totals(results: Results) -> dict[str, Any]:
    """Latencies of the whole run are known at its end, from the histograms of its steps."""
    service = merged(step.service for workflow in results.workflows for step in workflow.steps)
    p50, p95, p99 = service.percentiles((50, 95, 99))
    whole = {"p50_ms": p50 * 1000, "p95_ms": p95 * 1000, "p99_ms": p99 * 1000}
    return {
        "whole": whole | {"max_ms": service.high * 1000} if service.count else None,
        "rate": per_second(results.requests, results),
        "vus_max": vus_max(results) if results.state == "finished" else None,
        "requests": results.requests,
        "failed": results.failed,
        "unsent": results.unsent,
        "iterations": sum(w.iterations for w in results.workflows),
        "dropped": sum(w.dropped_iterations for w in results.workflows),
    }


def _workflow(one: WorkflowResult) -> dict[str, Any]:
    share = share_done(one)
    return {
        "name": one.name,
        "load": one.load,
        "open": one.open_model,
        "state": one.state,
        "vus": one.vus,
        "elapsed_s": round(one.elapsed_s, 1),
        "started_s": round(one.started_s, 1),
        "planned_s": one.planned_s,
        "done": None if share is None else round(share, 4),
        "error": one.error,
        "marks": [{"at_s": mark.at_s, "text": mark.text} for mark in one.marks],
    }


def _name(step: Any) -> tuple[str, str, str]:
    return step.name, step.method, step.group


def _failure(one: Failure) -> dict[str, Any]:
    first = one.first
    return {
        "workflow": one.workflow,
        "step": one.step,
        "kind": one.kind,
        "message": one.message,
        "count": one.count,
        "samples": one.samples[1:],
        "where": first.where,
        "when": moment(first) if first.at_s or first.exchange else "",
        "traceback": first.traceback,
        "exchange": _exchange(first.exchange) if first.exchange else None,
    }


def _exchange(one: Exchange) -> dict[str, str]:
    """As one would read it on the wire."""
    asked = [f"{one.method} {one.url}", *_lines(one.request_headers), "", one.request_body]
    status = f"{one.status} {one.reason}" if one.status else "no answer"
    told = [status, *_lines(one.headers), "", one.body]
    return {"asked": "\n".join(asked).strip(), "told": "\n".join(told).strip()}


def _lines(headers: dict[str, str]) -> Iterator[str]:
    return (f"{name}: {value}" for name, value in headers.items())


def _events(results: Results) -> list[dict[str, Any]]:
    """What happened, on the time of the run."""
    several = len(results.workflows) > 1
    found: list[dict[str, Any]] = []
    for workflow in results.workflows:
        who = workflow.name if several else ""
        if workflow.started_s or workflow.elapsed_s:
            begun = f"the load began: {workflow.load}"
            found.append({"at_s": workflow.started_s, "who": workflow.name, "text": begun})
        found += [
            {"at_s": workflow.started_s + mark.at_s, "who": who, "text": mark.text}
            for mark in workflow.marks
        ]
        if workflow.state == "finished" and workflow.elapsed_s:
            over_s = workflow.started_s + workflow.elapsed_s
            found.append({"at_s": over_s, "who": who, "text": "the load ended"})
    found += [{"at_s": None, "who": "", "text": lost} for lost in results.lost]
    found.sort(key=lambda event: results.elapsed_s if event["at_s"] is None else event["at_s"])
    return found[-EVENTS_MAX:]
