"""The API of a real process: its calls as documented, and what survives a kill."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from urllib.parse import urlsplit

from tests.integration.scheduler.scheduler_process import (
    SchedulerProcess,
    scheduler_process,
    until,
)

# Section 22 with seconds, so that nobody waits a minute.
SECTION_22 = {
    "name": "test",
    "cron_expression": "* * * * * *",
    "priority": 100,
    "payload": {"command": "echo hello"},
}


def post(url: str, path: str, body: object) -> tuple[int, dict[str, str]]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_section_22_runs_on_a_worker(tmp_path: Path) -> None:
    with scheduler_process(tmp_path, "--command") as scheduler, scheduler.client() as client:
        status, submitted = post(scheduler.url, "/api/v1/jobs", SECTION_22)
        assert status == 201
        done = until(
            lambda: client.jobs(schedule_id=submitted["schedule_id"], state="COMPLETED"),
            "a run on a worker",
        )
        assert client.logs(done[-1]["id"])["log"].strip() == "hello"
        first = client.job(submitted["job_id"])
        assert first["schedule_id"] == submitted["schedule_id"]
        client.delete_schedule(submitted["schedule_id"])
    assert scheduler.process.returncode == 0


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    first = SchedulerProcess(tmp_path, "--no-worker", "--node", "node-1")
    try:
        status, submitted = post(
            first.url,
            "/api/v1/jobs",
            {"name": "kept", "kind": "command", "payload": {"command": "echo kept"}},
        )
        assert status == 201
    finally:
        first.process.kill()
        first.process.wait()
    with scheduler_process(tmp_path, "--command") as scheduler, scheduler.client() as client:
        until(
            lambda: client.job(submitted["job_id"])["state"] == "COMPLETED",
            "the end of the job that was there before",
        )
        assert client.verify_audit()["good"] is True
