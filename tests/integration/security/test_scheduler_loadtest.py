"""A `loadtest` job overwrites no file, and runs nothing but the tests of the worker's owner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hyperscale.cli
from tests.integration.scheduler.scheduler_process import (
    SchedulerProcess,
    scheduler_process,
    until,
)

LINE = "x=\nssh-ed25519 AAAAC3 attacker\n"
TEST_FILE = """
import os
import pathlib

from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse

pathlib.Path("{witness}").touch()

class Tiny(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def health(self, url: URL = "{url}/health/live") -> HTTPResponse:
        return await self.client.http.get(url)
"""


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerProcess]:
    directory = tmp_path_factory.mktemp("scheduler")
    tests = directory / "tests"
    tests.mkdir()
    with scheduler_process(directory, "--loadtest-dir", str(tests)) as running:
        (tests / "tiny.py").write_text(TEST_FILE.format(witness=tests / "ran", url=running.url))
        yield running


def ended(scheduler: SchedulerProcess, **payload: object) -> dict[str, str]:
    with scheduler.client() as client:
        job = client.submit_job(name="sly", payload=payload)["job_id"]
        until(lambda: client.job(job)["state"] in ("COMPLETED", "FAILED"), "the job's end")
        return client.job(job)


@pytest.mark.parametrize("flag", ["--csv", "--json", "-o", "--html", "--junit", "--out"])
def test_no_file_is_overwritten(scheduler: SchedulerProcess, tmp_path: Path, flag: str) -> None:
    victim = tmp_path / "victim.csv"
    victim.write_text("precious")
    demo = str(Path(hyperscale.cli.__file__).parent / "demos" / "shop.py")
    for file in (demo, "tiny.py"):
        found = ended(scheduler, file=file, args=[flag, str(victim), "--tag", LINE])
        assert found["state"] == "FAILED", found
    assert victim.read_text() == "precious"


def test_only_tests_of_the_directory_are_run(scheduler: SchedulerProcess, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    mine = tmp_path / "mine.py"
    mine.write_text(TEST_FILE.format(witness=witness, url=scheduler.url))
    for payload in (
        {"file": str(mine)},
        {"file": "tiny.py", "workflows": [str(mine)]},
        {"file": "tiny.py", "args": [str(mine)]},
        {"file": "tiny.py", "args": ["-e", f"PYTHONPATH={tmp_path}"]},
        {"file": "tiny.py", "cluster": "127.0.0.1:1"},
    ):
        found = ended(scheduler, **payload)
        assert found["state"] == "FAILED", found
        assert "payload" in str(found) or "beneath" in str(found)
    assert not witness.exists()


def test_a_test_of_the_directory_runs_by_its_name(scheduler: SchedulerProcess) -> None:
    found = ended(scheduler, file="tiny.py", workflows=["Tiny"], args=["-w", "1", "--tag", "a=b"])
    assert found["state"] == "COMPLETED", found
    assert (scheduler.directory / "tests" / "ran").exists()
