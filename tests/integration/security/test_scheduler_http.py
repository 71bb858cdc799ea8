"""`http` jobs and what only this machine may see: another service, another scheduler."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hyperscale.scheduler.http.client import SchedulerClient
from tests.integration.scheduler.scheduler_process import scheduler_process, until

SECRET = b"only for this machine"


class Inner(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked += 1  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", str(len(SECRET)))
        self.end_headers()
        self.wfile.write(SECRET)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def inner_service() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Inner) as server:
        server.asked = 0  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ended(client: SchedulerClient, **payload: object) -> dict[str, str]:
    job = client.submit_job(name="probe", payload=payload, max_retries=0)["job_id"]
    until(lambda: client.job(job)["state"] in ("COMPLETED", "FAILED"), "the job's end")
    return client.job(job)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"])
def test_loopback_is_not_called(tmp_path: Path, host: str) -> None:
    with (
        inner_service() as inner,
        scheduler_process(tmp_path) as scheduler,
        scheduler.client() as client,
    ):
        found = ended(client, url=f"http://{host}:{inner.server_port}/debug")
        assert found["state"] == "FAILED"
        assert "--http-allow" in found["failure_reason"]
        again = ended(client, url=f"{scheduler.url}/api/v1/jobs", method="POST")
        assert again["state"] == "FAILED"
        assert inner.asked == 0  # type: ignore[attr-defined]


def test_what_the_owner_names_is_called_and_nothing_beside_it(tmp_path: Path) -> None:
    with inner_service() as inner, inner_service() as other:
        allowed = ("--http-allow", f"127.0.0.1:{inner.server_port}")
        with scheduler_process(tmp_path, *allowed) as scheduler, scheduler.client() as client:
            found = ended(client, url=f"http://127.0.0.1:{inner.server_port}/")
            assert found["state"] == "COMPLETED", found
            assert ended(client, url=f"http://127.0.0.1:{other.server_port}/")["state"] == "FAILED"
        assert other.asked == 0  # type: ignore[attr-defined]
