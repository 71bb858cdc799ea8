"""Traces of a real scheduler at a real receiver of OTLP."""

from __future__ import annotations

import importlib
import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.telemetry.traces import Traces
from tests.integration.scheduler.collector import collector
from tests.integration.scheduler.scheduler_process import scheduler_process, until

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@contextmanager
def called_service() -> Iterator[tuple[str, dict[str, Message]]]:
    """An HTTP service, and the headers each path was called with."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard[self.path] = self.headers
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    heard: dict[str, Message] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def submit(url: str, command: str, traceparent: str = "") -> str:
    headers = {"traceparent": traceparent} if traceparent else {}
    return submit_payload(url, {"command": command}, **headers)


def submit_payload(url: str, payload: dict[str, str], **said: str) -> str:
    kind = "http" if "url" in payload else "command"
    body = {"name": "traced", "kind": kind, "payload": payload, "max_retries": 0}
    headers = {"Content-Type": "application/json", **said}
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
        quiet = submit(scheduler.url, "echo quiet")
        with scheduler.client() as client:
            # Before anything fails: afterwards more than the share is traced.
            until(lambda: client.job(quiet)["state"] == "COMPLETED", "the end of the quiet job")
            sampled = submit(scheduler.url, "echo hello", f"00-{TRACE}-{PARENT}-01")
            failing = submit(scheduler.url, "false")
            until(lambda: "complete" in received.named(sampled), "the trace of the caller")
            until(lambda: "complete" in received.named(failing), "the trace of the failure")
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


def test_a_called_service_is_told_of_the_trace_and_of_the_correlation(tmp_path: Path) -> None:
    with (
        called_service() as (service, heard),
        collector() as received,
        scheduler_process(
            *(tmp_path, "--otlp", received.url, "--trace-share", "1", "--http-allow", "127.0.0.1")
        ) as scheduler,
    ):
        job = submit_payload(
            scheduler.url,
            {"url": f"{service}/traced"},
            **{"traceparent": f"00-{TRACE}-{PARENT}-01", "X-Correlation-Id": "order-17"},
        )
        own = {"headers": json.dumps({"TraceParent": "mine", "x-correlation-id": "mine"})}
        submit_payload(scheduler.url, {"url": f"{service}/own", **own})
        run = until(lambda: received.named(job).get("run"), "the trace of the job")
        until(lambda: "/own" in heard, "the call with headers of its own")
    assert heard["/traced"]["traceparent"] == f"00-{TRACE}-{run.span_id.hex()}-01"
    assert heard["/traced"]["X-Correlation-Id"] == "order-17"
    assert heard["/own"].get_all("traceparent") == ["mine"]
    assert heard["/own"].get_all("x-correlation-id") == ["mine"]


def test_without_traces_a_called_service_is_told_of_none(tmp_path: Path) -> None:
    allowed = ("--http-allow", "127.0.0.1")
    with called_service() as (service, heard), scheduler_process(tmp_path, *allowed) as scheduler:
        job = submit_payload(
            scheduler.url, {"url": f"{service}/plain"}, **{"X-Correlation-Id": "order-18"}
        )
        until(lambda: "/plain" in heard, "the call")
    assert heard["/plain"]["traceparent"] is None
    assert heard["/plain"]["X-Correlation-Id"] == "order-18"
    assert heard["/plain"]["Hyperscale-Job-Id"] == job


def test_every_class_is_told_and_no_failure_is_missed(tmp_path: Path) -> None:
    """With no share for jobs: forty fail and each has its trace; the rest is told as it fails."""
    with (
        collector() as received,
        scheduler_process(
            *(tmp_path, "--command", "--otlp", received.url, "--trace-share", "0"),
            HYPERSCALE_SCHEDULER_BEAT_S="0.05",
            HYPERSCALE_SCHEDULER_ELECTION_TTL_S="1",
        ) as scheduler,
    ):
        failing = [submit(scheduler.url, "false") for _ in range(40)]
        until(lambda: all("complete" in received.named(job) for job in failing), "their traces")
        after = [submit(scheduler.url, "true") for _ in range(20)]
        until(
            lambda: {"acquire", "renew", "raise_epoch", "beat", "claim"} <= set(received.classes),
            "each class",
        )
        with scheduler.client() as client:
            for job in after:
                until(lambda job=job: client.job(job)["completed_at"], "the end of the good ones")
        until(lambda: any(received.named(job) for job in after), "a good one to compare with")
    assert {received.classes[name] for name in ("acquire", "renew", "raise_epoch")} == {
        "coordination"
    }
    assert (received.classes["beat"], received.classes["claim"]) == ("workers", "queue")
    assert "counts" not in received.classes


def test_a_collector_that_is_away_costs_nothing_but_spans(tmp_path: Path) -> None:
    with scheduler_process(
        tmp_path, "--command", "--otlp", "http://127.0.0.1:1", "--trace-share", "1"
    ) as scheduler:
        job = submit(scheduler.url, "echo hello")
        with scheduler.client() as client:
            until(lambda: client.job(job)["state"] == "COMPLETED", "the end of the job")
    assert scheduler.process.returncode == 0
    for line in (tmp_path / "scheduler.err").read_text().splitlines()[2:]:
        assert json.loads(line)["component"] == "scheduler.traces"


def test_without_the_library_the_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(BadInput) as refused:
        Traces("http://127.0.0.1:4318", 1.0, "node-1")
    assert "hyperscale-loadtest[otel]" in refused.value.hint


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="not the address of a collector"):
        Traces("collector:4318", 1.0, "node-1")
