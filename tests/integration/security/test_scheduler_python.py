"""What `--python-allow` lets a job call, on a real worker: what its owner named, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperscale.scheduler.http.client import Refused, SchedulerClient
from tests.integration.scheduler.scheduler_process import (
    SchedulerProcess,
    scheduler_process,
    until,
)

MODULE = """
import functools
import os
from subprocess import run


def nightly() -> str:
    return "done nightly"


class Shop:
    def __init__(self) -> None:
        print("a shop")


def _hidden() -> None:
    print("hidden ran")


shout = functools.partial(print, "shouted")
"""


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerProcess]:
    directory = tmp_path_factory.mktemp("scheduler")
    (directory / "shopjobs.py").write_text(MODULE)
    allowed = ("--python-allow", "shopjobs:*", "--python-allow", "os:getpid")
    with scheduler_process(directory, *allowed) as running:
        yield running


def ended(client: SchedulerClient, job: str) -> dict[str, object]:
    states = ("COMPLETED", "FAILED")
    until(lambda: client.job(job)["state"] in states, "the job's end")
    found = client.job(job)
    try:
        return {**found, "log": client.logs(job)["log"]}
    except Refused:  # it printed nothing
        return {**found, "log": ""}


@pytest.mark.parametrize(
    "call",
    [
        "shopjobs:os.system",
        "shopjobs:run",
        "shopjobs:nightly.__globals__.get",
        "shopjobs:_hidden",
        "shopjobs:__builtins__.get",
        "shopjobs:shout",
        "os:system",
        "shopjobs.os:system",
    ],
)
def test_what_a_module_reaches_is_not_allowed_with_it(
    scheduler: SchedulerProcess, tmp_path: Path, call: str
) -> None:
    witness = tmp_path / "witness"
    with scheduler.client() as client:
        payload = {"call": call, "args": [f"touch {witness}"]}
        job = client.submit_job(name="sly", payload=payload)["job_id"]
        found = ended(client, job)
    assert found["state"] == "FAILED", found
    assert not witness.exists()
    assert "ran" not in str(found["log"])
    assert "shouted" not in str(found["log"])


@pytest.mark.parametrize(
    ("call", "printed"),
    [("shopjobs:nightly", "done nightly"), ("shopjobs:Shop", "a shop"), ("os:getpid", "")],
)
def test_what_is_defined_there_or_named_in_full_runs(
    scheduler: SchedulerProcess, call: str, printed: str
) -> None:
    with scheduler.client() as client:
        job = client.submit_job(name="good", payload={"call": call})["job_id"]
        found = ended(client, job)
    assert found["state"] == "COMPLETED", found
    assert printed in str(found["log"])


def test_a_pattern_that_could_never_match_is_refused_at_the_start(
    scheduler: SchedulerProcess,
) -> None:
    said = scheduler.command("scheduler", "--port", "0", "--python-allow", "shopjobs", expect=2)
    assert "is not MODULE:NAME" in said
