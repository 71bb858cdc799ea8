"""A worker alone tells of its health and its numbers; and what it did is in its own logs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tests.integration.scheduler.scheduler_process import scheduler_process, until


def fetched(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_health_metrics_and_the_story_in_the_logs(tmp_path: Path) -> None:
    logs = {name: tmp_path / f"{name}.log" for name in ("coordinator", "worker")}
    level = ("--log-level", "info")
    with scheduler_process(
        tmp_path, "--no-worker", "--node", "lead", "--log", str(logs["coordinator"]), *level
    ) as scheduler:
        words = [
            *(sys.executable, "-m", "hyperscale", "scheduler", "worker", "--port", "0"),
            "--open",
            *("--command", "--slots", "3", "--node", "hand"),
            *("--store", f"sqlite:{tmp_path / 'jobs.db'}"),
        ]
        with (tmp_path / "worker.err").open("wb") as errors:
            worker = subprocess.Popen(
                [*words, "--log", str(logs["worker"]), *level],
                stderr=errors,
                env={**scheduler._env},
                cwd=tmp_path,
            )
        try:
            url = until(
                lambda: re.search(r"metrics: (\S+)\)", (tmp_path / "worker.err").read_text()),
                "the worker's page",
            )[1]
            status, health = fetched(f"{url}/health/ready")
            assert (status, json.loads(health)["slots"]) == (200, 3)
            assert fetched(f"{url}/health/live")[0] == 200
            assert fetched(f"{url}/api/v1/jobs")[0] == 404
            with scheduler.client() as client:
                good = client.submit_job(name="good", payload={"command": "echo hi"})["job_id"]
                failing = {"name": "bad", "payload": {"command": "false"}, "max_retries": 0}
                bad = client.submit_job(**failing)["job_id"]
                for job in (good, bad):
                    until(lambda job=job: client.job(job)["completed_at"], "the end of the jobs")
            page = fetched(f"{url}/metrics")[1]
            assert "scheduler_worker_slots 3.0" in page
            assert re.search(r'completion_duration_seconds_count{[^}]*success="true"} 1.0', page)
            assert "scheduler_queue_depth" not in page
        finally:
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(60) == 0
        files = [str(one) for one in logs.values()]
        told = scheduler.json("scheduler", "explain", *files)
        assert [(one["job"], one["kind"]) for one in told["failures"]] == [(bad, "failed")]
        assert told["findings"] == []
        story = scheduler.command("scheduler", "explain", *files, "--job", good)
        assert re.search(r"lead/scheduler.jobs > hand\S*/scheduler.jobs", story), story
        assert f"{good}: completed" in story
        report = scheduler.command("scheduler", "explain", *files)
        assert "about 2 jobs" in report
        assert "there is no log" in scheduler.command("scheduler", "explain", expect=2)
