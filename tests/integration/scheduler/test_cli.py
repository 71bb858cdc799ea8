"""The commands as they are typed, against a real scheduler."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.scheduler.scheduler_process import (
    SchedulerProcess,
    scheduler_process,
    until,
)

TEST_FILE = """
from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse

class Tiny(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def health(self, url: URL = "%s/health/live") -> HTTPResponse:
        return await self.client.http.get(url)
"""


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerProcess]:
    directory = tmp_path_factory.mktemp("scheduler")
    with scheduler_process(directory, "--command") as running:
        (directory / "tiny.py").write_text(TEST_FILE % running.url)
        yield running
    assert running.process.returncode == 0


def test_a_schedule_runs_a_load_test_and_its_history_tells(scheduler: SchedulerProcess) -> None:
    said = scheduler.command(
        "schedule", "add", "nightly", "--cron", "*/5 * * * * *", "--loadtest", "tiny.py",
        "--overlap", "skip",
    )  # fmt: skip
    assert "schedule nightly added; next run" in said
    assert "nightly" in scheduler.command("schedule", "list")

    def ran() -> dict[str, str] | None:
        done = [
            job
            for job in scheduler.json("schedule", "history", "nightly")
            if job["status"] in ("COMPLETED", "FAILED")
        ]
        return done[-1] if done else None

    job = until(ran, "a run of the schedule")
    log = scheduler.command("queue", "logs", job["job_id"])
    assert job["status"] == "COMPLETED", log
    assert job["figures"]["requests"] == 1
    assert job["figures"]["p95_s"] > 0
    assert "/s" in scheduler.command("schedule", "history", "nightly")
    results = json.loads(scheduler.command("queue", "results", job["job_id"]))
    assert results["schema"] == "hyperscale.results/1"
    assert "passed: 1 requests" in log
    assert not log.startswith("{")
    assert "Tiny" in scheduler.json("queue", "logs", job["job_id"])["log"]
    assert "is paused" in scheduler.command("schedule", "pause", "nightly")
    shown = scheduler.json("schedule", "show", "nightly")
    assert shown["paused"] is True
    assert shown["fired"] >= 1
    assert len(shown["coming"]) == 5
    assert "goes on" in scheduler.command("schedule", "resume", "nightly")
    assert "removed" in scheduler.command("schedule", "rm", "nightly")
    assert "there is no schedule" in scheduler.command("schedule", "show", "nightly", expect=1)


def test_a_job_is_submitted_shown_and_retried(scheduler: SchedulerProcess) -> None:
    job = scheduler.json("queue", "submit", "hello", "--command", "echo hello world")
    job_id = job["job_id"]
    until(lambda: scheduler.json("queue", "show", job_id)["state"] == "COMPLETED", "the job's end")
    assert scheduler.command("queue", "logs", job_id).strip() == "hello world"
    shown = scheduler.command("queue", "show", job_id)
    assert "COMPLETED" in shown
    assert "hello" in scheduler.command("queue", "list")
    assert f"like {job_id}" in scheduler.command("queue", "retry", job_id)


def test_a_key_makes_one_job_and_a_waiting_job_is_cancelled(scheduler: SchedulerProcess) -> None:
    words = (
        "queue",
        "submit",
        "later",
        "--http",
        "http://127.0.0.1:1/",
        "--at",
        "2099-01-01T00:00Z",
    )
    first = scheduler.json(*words, "--key", "one")
    again = scheduler.command(*words, "--key", "one")
    assert f"job {first['job_id']} exists already" in again
    assert "cancelled" in scheduler.command("queue", "cancel", first["job_id"])


def test_mistakes_are_one_sentence(scheduler: SchedulerProcess, tmp_path: Path) -> None:
    said = scheduler.command(
        "schedule", "add", "bad", "--cron", "0 25 * * *", "--http", "http://x/", expect=2
    )
    assert "25" in said
    assert "Traceback" not in said
    words = ("schedule", "add", "b a d", "--cron", "@daily", "--http", "http://x/")
    said = scheduler.command(*words, "--dst", "odd", "--retries", "1000", expect=2)
    assert "NAME: takes 1 to 63 letters" in said
    assert "--dst: input should be 'debian', 'literal' or 'skip'" in said
    assert "--retries: input should be less than or equal to 100" in said
    assert "nothing to run" in scheduler.command("queue", "submit", "x", expect=2)
    assert "there is no action" in scheduler.command("queue", "explode", "x", expect=2)
    nobody = scheduler.command("queue", "list", "--url", "http://127.0.0.1:1", expect=1)
    assert "no scheduler answers" in nobody


def test_everything_is_stopped_and_goes_on(scheduler: SchedulerProcess) -> None:
    said = scheduler.command("scheduler", "stop", "--reason", "bad deploy")
    assert "nothing starts, what runs may finish" in said
    job = scheduler.json("queue", "submit", "patient", "--command", "echo at last")["job_id"]
    assert "bad deploy" in scheduler.command("scheduler", "doctor", expect=1)
    assert scheduler.json("queue", "show", job)["state"] == "PENDING"
    assert "jobs start again" in scheduler.command("scheduler", "go")
    until(lambda: scheduler.json("queue", "show", job)["state"] == "COMPLETED", "the job's end")
    assert "nothing was stopped" in scheduler.command("scheduler", "go")


def test_doctor_and_audit(scheduler: SchedulerProcess) -> None:
    until(lambda: not scheduler.json("scheduler", "doctor")["findings"], "a healthy scheduler")
    assert "nothing is stuck" in scheduler.command("scheduler", "doctor")
    scheduler.command("queue", "submit", "audited", "--command", "true")
    verdict = scheduler.json("scheduler", "verify")
    assert verdict["good"] is True
    assert verdict["rows"] >= 1
    newest = scheduler.command("scheduler", "audit").splitlines()[-1]
    assert re.search(r"local +admin +job.submit +audited +done", newest), newest


def test_beyond_loopback_a_token_is_needed(tmp_path: Path, scheduler: SchedulerProcess) -> None:
    said = scheduler.command("scheduler", "--host", "0.0.0.0", "--open", expect=2)
    assert "open to everybody" in said


def test_jobs_do_not_inherit_the_schedulers_secrets(tmp_path: Path) -> None:
    secret = "a-token-for-the-administrator"
    with (
        scheduler_process(tmp_path, "--command", HYPERSCALE_SCHEDULER_TOKEN=secret) as scheduler,
        scheduler.client(secret) as client,
    ):
        job = client.submit_job(name="curious", payload={"command": "env"})["job_id"]
        until(lambda: client.job(job)["state"] == "COMPLETED", "the job's end")
        told = client.logs(job)["log"]
    assert "HYPERSCALE_JOB_ID=" in told
    assert secret not in told


def test_a_schedule_is_edited_and_filled(scheduler: SchedulerProcess) -> None:
    scheduler.command("schedule", "add", "hourly", "--cron", "0 * * * *", "--command", "true")
    assert "changed" in scheduler.command(
        "schedule", "edit", "hourly", "--cron", "30 * * * *", "--tz", "Europe/Berlin"
    )
    shown = scheduler.json("schedule", "show", "hourly")
    assert (shown["cron"], shown["timezone"], shown["version"]) == (
        "30 * * * *",
        "Europe/Berlin",
        2,
    )
    assert shown["job"]["payload"]["argv"] == '["true"]'
    scheduler.command("schedule", "edit", "hourly", "--command", "echo edited")
    assert "edited" in scheduler.json("schedule", "show", "hourly")["job"]["payload"]["argv"]
    assert "nothing to change" in scheduler.command("schedule", "edit", "hourly", expect=2)
    span = ("--from", "2024-03-01T00:00Z", "--until", "2024-03-01T03:00Z")
    filled = scheduler.json("schedule", "backfill", "hourly", *span)
    assert len(filled["jobs"]) == 3
    assert scheduler.json("schedule", "backfill", "hourly", *span)["existing"] == 3
    scheduler.command("schedule", "rm", "hourly")


def test_what_died_is_listed_replayed_and_dropped(scheduler: SchedulerProcess) -> None:
    ids = [
        scheduler.json("queue", "submit", "bad", "--command", "false", "--retries", "0")["job_id"]
        for _ in range(2)
    ]

    def dead() -> bool:
        letters = scheduler.json("queue", "dead-letters")
        return {one["job"]["id"] for one in letters} >= set(ids)

    until(dead, "both dead letters")
    assert ids[0] in scheduler.command("queue", "dead-letters")
    assert f"like {ids[0]}" in scheduler.command("queue", "replay", ids[0])
    assert "dropped" in scheduler.command("queue", "drop", ids[1])
    left = {one["job"]["id"] for one in scheduler.json("queue", "dead-letters")}
    assert not left & set(ids)


def test_a_worker_is_drained_and_taken_back(scheduler: SchedulerProcess) -> None:
    (worker,) = scheduler.json("scheduler", "workers")
    assert worker["id"] in scheduler.command("scheduler", "workers")
    assert "DRAINING" in scheduler.command("scheduler", "drain", worker["id"])
    assert "gets jobs again" in scheduler.command("scheduler", "undrain", worker["id"])
