"""What a worker's token opens, what strangers are told, and what a submission may not say."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.scheduler.scheduler_process import SchedulerProcess, scheduler_process

ADMIN, OPERATOR, WORKER = (f"a-token-for-the-{role}" for role in ("admin", "operator", "worker"))
SECRET = "Bearer HUSH-of-the-target"
JOB = {
    "name": "call",
    "kind": "theirs",
    "payload": {"url": "http://x/", "headers": {"Authorization": SECRET}},
}


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerProcess]:
    directory = tmp_path_factory.mktemp("scheduler")
    tokens = directory / "tokens"
    tokens.write_text(f"anna admin {ADMIN}\nolga operator {OPERATOR}\nrusty worker {WORKER}\n")
    tokens.chmod(0o600)
    with scheduler_process(directory, "--no-worker", "--tokens", str(tokens)) as running:
        yield running


def asked(
    scheduler: SchedulerProcess,
    method: str,
    path: str,
    token: str = "",
    body: object = None,
    **headers: str,
) -> tuple[int, Any]:
    given = {"Content-Type": "application/json", **headers}
    given |= {"Authorization": f"Bearer {token}"} if token else {}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(scheduler.url + path, data, given, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())


def sent(scheduler: SchedulerProcess, kind: str, bearer: str, **body: object) -> tuple[int, Any]:
    return asked(scheduler, "POST", "/api/v1/messages", bearer, body, **{"Message-Type": kind})


def test_a_workers_token_works_and_nothing_else(scheduler: SchedulerProcess) -> None:
    assert asked(scheduler, "POST", "/api/v1/jobs", OPERATOR, JOB)[0] == 201
    beat = {"worker_id": "rusty-1", "instance": "a", "capacity": 1, "sequence_number": 1}
    assert sent(scheduler, "heartbeat", WORKER, **beat)[0] == 200
    status, given = sent(scheduler, "claim", WORKER, worker_id="rusty-1", kinds=["theirs"])
    assert status == 200
    (job,) = given["jobs"]
    assert SECRET in job["payload"]["headers"], "a worker gets what it is to run"
    about = {"job_id": job["id"], "worker": "rusty-1", "lease_s": 60, "token": job["fencing_token"]}
    status, said = sent(scheduler, "report", WORKER, report="started", **about)
    assert status == 200, said
    assert said["accepted"], said
    denied = [
        ("POST", "/api/v1/jobs", JOB),
        ("POST", "/api/v1/schedules", {"id": "x", "cron": "@daily", "job": {"payload": {}}}),
        ("GET", "/api/v1/jobs", None),
        ("GET", f"/api/v1/jobs/{job['id']}", None),
        ("POST", f"/api/v1/jobs/{job['id']}/cancel", None),
        ("GET", "/api/v1/workers", None),
        ("POST", "/api/v1/workers/rusty-1/drain", None),
        ("DELETE", "/api/v1/workers/rusty-1", None),
        ("GET", "/api/v1/audit", None),
        ("GET", "/api/v1/overview", None),
        ("GET", "/api/v1/openapi.json", None),
        ("POST", "/api/v1/emergency", {}),
        ("GET", "/metrics", None),
        ("GET", "/debug/state", None),
    ]
    for method, path, body in denied:
        assert asked(scheduler, method, path, WORKER, body)[0] == 403, (method, path)


def test_who_looks_at_jobs_reads_no_secret_by_claiming_one(scheduler: SchedulerProcess) -> None:
    assert asked(scheduler, "POST", "/api/v1/jobs", OPERATOR, JOB)[0] == 201
    _, given = sent(scheduler, "claim", OPERATOR, worker_id="olgas-1", kinds=["theirs"])
    assert given["jobs"]
    assert "HUSH" not in json.dumps(given)


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/health/live?worker=any-1"])
def test_strangers_are_told_that_it_lives_and_no_more(
    scheduler: SchedulerProcess, path: str
) -> None:
    status, told = asked(scheduler, "GET", path)
    assert status == 200
    assert {key: value for key, value in told.items() if value} == {"status": told["status"]}
    assert asked(scheduler, "GET", path, OPERATOR)[1]["version"]
    assert asked(scheduler, "GET", "/api/v1/openapi.json")[0] == 401
    assert asked(scheduler, "GET", "/api/v1/openapi.json", OPERATOR)[1]["paths"]


@pytest.mark.parametrize(
    "payload",
    [
        {"argv": "not json"},
        {"argv": '{"a": 1}'},
        {"argv": [1, 2]},
        {"argv": ["true"], "env": "x"},
        {"url": "http://x/", "headers": "[]"},
        {"call": "a:b", "kwargs": "[1]"},
        {"call": "a:b", "args": "nothing"},
        {"file": "a.py", "workflows": "Shop"},
    ],
)
def test_a_payload_that_cannot_be_read_is_refused_at_once(
    scheduler: SchedulerProcess, payload: dict[str, object]
) -> None:
    body = {"name": "bad", "payload": payload}
    status, said = asked(scheduler, "POST", "/api/v1/jobs", OPERATOR, body)
    assert status == 400, said
    assert "in the payload" in said["detail"]
    schedule = {"id": "bad", "cron": "@daily", "job": {"payload": payload}}
    assert asked(scheduler, "POST", "/api/v1/schedules", OPERATOR, schedule)[0] == 400
