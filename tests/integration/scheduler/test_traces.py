"""Traces of a real scheduler at a real receiver of OTLP."""

from __future__ import annotations

import importlib
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.observability.traces import Traces

pytest.importorskip("opentelemetry.sdk", reason="hyperscale[otel] is not installed")
from tests.integration.scheduler.collector import collector
from tests.integration.scheduler.scheduler_process import scheduler_process, until

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def submit(url: str, command: str, traceparent: str = "") -> str:
    body = {"name": "traced", "kind": "command", "payload": {"command": command}, "max_retries": 0}
    headers = {"Content-Type": "application/json"}
    if traceparent:
        headers["traceparent"] = traceparent
    request = urllib.request.Request(
        f"{url}/api/v1/jobs", json.dumps(body).encode(), headers, method="POST"
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        job_id: str = json.load(answer)["job_id"]
        return job_id


def test_a_callers_trace_goes_on_through_submit_claim_run_and_complete(tmp_path: Path) -> None:
    with (
        collector() as received,
        scheduler_process(
            tmp_path, "--command", "--otlp", received.url, "--trace-share", "0"
        ) as scheduler,
    ):
        sampled = submit(scheduler.url, "echo hello", f"00-{TRACE}-{PARENT}-01")
        failing = submit(scheduler.url, "false")
        quiet = submit(scheduler.url, "echo quiet")
        until(lambda: "complete" in received.named(sampled), "the trace of the caller")
        until(lambda: "complete" in received.named(failing), "the trace of the failure")
        with scheduler.client() as client:
            until(lambda: client.job(quiet)["state"] == "COMPLETED", "the end of the quiet job")
            assert client.job(sampled)["tags"]["traceparent"].startswith(f"00-{TRACE}")
    told = received.named(sampled)
    assert received.services == {"hyperscale-scheduler"}
    assert {span.trace_id.hex() for span in told.values()} == {TRACE}
    assert told["submit"].parent_span_id.hex() == PARENT
    for parent, child in (("submit", "claim"), ("claim", "run"), ("run", "complete")):
        assert told[child].parent_span_id == told[parent].span_id
    assert told["run"].end_time_unix_nano > told["run"].start_time_unix_nano
    assert set(received.named(failing)) == {"submit", "claim", "run", "complete"}
    assert received.named(failing)["run"].status.code == 2
    assert received.named(quiet) == {}
    assert scheduler.process.returncode == 0


def test_a_collector_that_is_away_costs_nothing_but_spans(tmp_path: Path) -> None:
    with scheduler_process(
        tmp_path, "--command", "--otlp", "http://127.0.0.1:1", "--trace-share", "1"
    ) as scheduler:
        job = submit(scheduler.url, "echo hello")
        with scheduler.client() as client:
            until(lambda: client.job(job)["state"] == "COMPLETED", "the end of the job")
    assert scheduler.process.returncode == 0
    for line in (tmp_path / "scheduler.err").read_text().splitlines()[1:]:
        assert json.loads(line)["component"] == "scheduler.traces"


def test_without_the_library_the_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(BadInput) as refused:
        Traces("http://127.0.0.1:4318", 1.0, "node-1")
    assert "hyperscale[otel]" in refused.value.hint


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="not the address of a collector"):
        Traces("collector:4318", 1.0, "node-1")
