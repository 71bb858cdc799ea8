"""A real Redis goes away: clients are told in time, and nothing is there afterwards that the
client was not told of."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from urllib.parse import urlsplit

from tests.integration.scheduler.redis_server import redis_server
from tests.integration.scheduler.scheduler_process import SchedulerProcess, scheduler_process, until

JOB = {"name": "probe", "payload": {"url": "http://127.0.0.1:1/"}}


def post(scheduler: SchedulerProcess) -> tuple[int, dict[str, str], dict[str, str]]:
    parts = urlsplit(scheduler.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/api/v1/jobs", json.dumps(JOB), headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), json.loads(answer.read())
    finally:
        connection.close()


def test_a_stopped_redis_is_503_and_leaves_no_ghost(tmp_path: Path) -> None:
    with (
        redis_server(tmp_path) as redis,
        scheduler_process(tmp_path, "--no-worker", "--store", redis.url) as scheduler,
        scheduler.client() as client,
    ):
        assert post(scheduler)[0] == 201
        redis.kill()
        status, headers, said = post(scheduler)
        assert (status, said["code"]) == (503, "store-unavailable")
        assert int(headers["retry-after"]) >= 1
        redis.start()
        until(lambda: post(scheduler)[0] == 201, "the store's return")
        assert len(client.jobs()) == 2
