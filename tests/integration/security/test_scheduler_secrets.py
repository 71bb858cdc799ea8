"""Passwords in addresses of stores, elections and `http` jobs: no error, log or record has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.scheduler.scheduler_process import (
    SchedulerProcess,
    scheduler_process,
    until,
)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerProcess]:
    directory = tmp_path_factory.mktemp("scheduler")
    log = ("--log", str(directory / "all.log"), "--log-level", "debug")
    with scheduler_process(directory, *log, "--http-allow", "127.0.0.1") as running:
        yield running


@pytest.mark.parametrize(
    "words",
    [
        ("--store", "redis://u:PASSWORD55@127.0.0.1:1/0"),
        ("--store", "redis://:PASSWORD55@127.0.0.1:1/0"),
        ("--store", "redis://127.0.0.1:1/0?password=PASSWORD55"),
        ("--store", "redis://u:PASSWORD55/x@127.0.0.1:1/0"),
        ("--store", "redis+cluster://u:PASSWORD55@127.0.0.1:1"),
        ("--store", "postgres://u:PASSWORD55@127.0.0.1:1/0"),
        ("--store", "redis:u:PASSWORD55@127.0.0.1"),
        ("--election", "redis://u:PASSWORD55/x@127.0.0.1:1/0"),
        ("--election", "zookeeper://u:PASSWORD55@127.0.0.1:1/0"),
        ("--election", "etcd://u:PASSWORD55@127.0.0.1:1"),
    ],
)
def test_what_keeps_it_from_starting_names_no_password(
    scheduler: SchedulerProcess, words: tuple[str, str]
) -> None:
    said = scheduler.command("scheduler", "--port", "0", "--debug", "--open", *words, expect=2)
    assert "127.0.0.1" in said
    assert "PASSWORD55" not in said


@pytest.mark.parametrize(
    "url",
    [
        "http://user:PASSWORD66@127.0.0.1:1/",
        "http://PASSWORD66@127.0.0.1:1/",
        "http://user:PASSWORD66@127.0.0.1:none/",
        "http://user:PASSWORD66@[::1/",
        "{url}/nowhere?a=b",
    ],
)
def test_a_request_that_fails_shows_no_user(scheduler: SchedulerProcess, url: str) -> None:
    address = url.replace("{url}", scheduler.url.replace("://", "://PASSWORD66@"))
    with scheduler.client() as client:
        job = client.submit_job(name="probe", payload={"url": address}, max_retries=0)["job_id"]
        until(lambda: client.job(job)["state"] == "FAILED", "the job's end")
        record = client.job(job)
        assert record["failure_reason"]
        shown = json.dumps([record, client.audit(), client.letters()])
    assert "PASSWORD66" not in shown
    assert "PASSWORD66" not in (scheduler.directory / "all.log").read_text()
    for words in (("queue", "show", job), ("queue", "list"), ("scheduler", "doctor")):
        assert "PASSWORD66" not in scheduler.command(*words)


def test_the_log_is_there_to_be_searched(scheduler: SchedulerProcess) -> None:
    path: Path = scheduler.directory / "all.log"
    with scheduler.client() as client:
        client.submit_job(name="seen", payload={"url": "http://127.0.0.1:1/"}, max_retries=0)
    until(lambda: "POST /api/v1/jobs" in path.read_text(), "a line of the log")
