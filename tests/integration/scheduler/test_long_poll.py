"""Waiting for a job over HTTP: who went away while waiting is given none."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.integration.scheduler.scheduler_process import scheduler_process, until

GHOSTS = 5


def claim_of(worker: str) -> bytes:
    return json.dumps({"worker_id": worker, "wait_s": 20.0}).encode()


def polling(url: str, worker: str) -> socket.socket:
    parts, body = urlsplit(url), claim_of(worker)
    ghost = socket.create_connection((parts.hostname, parts.port))
    ghost.sendall(
        b"POST /api/v1/messages HTTP/1.1\r\nHost: localhost\r\nMessage-Type: claim\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    return ghost


def claims(url: str) -> int:
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        found = re.search(r'seconds_count{[^}]*operation="claim"} (\d+)', answer.read().decode())
    return int(found[1]) if found else 0


def message(url: str, body: bytes) -> Any:
    headers = {"Content-Type": "application/json", "Message-Type": "claim"}
    request = urllib.request.Request(f"{url}/api/v1/messages", body, headers, method="POST")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_a_job_is_not_given_to_a_caller_who_is_gone(tmp_path: Path) -> None:
    with scheduler_process(tmp_path, "--no-worker") as scheduler, scheduler.client() as client:
        ghosts = [polling(scheduler.url, f"ghost-{number}") for number in range(GHOSTS)]
        until(lambda: claims(scheduler.url) >= GHOSTS, "all of them waiting")
        for ghost in ghosts:
            ghost.close()
        job = client.submit_job(name="one", payload={"url": "http://127.0.0.1:1/"})["job_id"]
        given = message(scheduler.url, claim_of("alive"))["jobs"]
        assert [one["id"] for one in given] == [job], client.job(job)["worker_id"]
