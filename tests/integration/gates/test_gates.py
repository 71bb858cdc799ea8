"""Three datacenters behind three gates, all real processes: one job, one end, true numbers."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import ExitCode
from tests.integration.cli.program import Ended, Running, assert_refused, hyperscale, write_workflow
from tests.integration.client.test_dev import free_ports
from tests.integration.conftest import Stats

NODES = 9
KEY = "tests:1:0123456789abcdef"
RATE = ("--rate", "40/s", "-d", "6s")  # 240 iterations in each datacenter, however slow it is


@dataclass(frozen=True)
class World:
    folder: Path
    port: int
    dev: Running

    def ask(self, *words: object, gate: int = 1) -> Ended:
        where = f"127.0.0.1:{self.port + gate - 1}"
        return hyperscale(*words, "--manager", where, cwd=self.folder, **self.env)

    def running(self, *words: object) -> Running:
        where = ("--cluster", f"127.0.0.1:{self.port}")
        return Running("run", *words, *where, cwd=self.folder, **self.env)

    @property
    def env(self) -> dict[str, str]:
        return {"XDG_RUNTIME_DIR": str(self.folder)}

    def kill(self, *names: str) -> None:
        self.send(signal.SIGKILL, *names)

    def send(self, what: signal.Signals, *names: str) -> None:
        for name in names:
            found = re.search(rf"^{name} .* process (\d+)$", self.dev.said, re.MULTILINE)
            assert found is not None, self.dev.said
            os.kill(int(found[1]), what)

    def ask_manager(self, name: str, *words: object) -> Ended:
        (address,) = re.findall(rf"^{name} +(\S+)  process", self.dev.said, re.MULTILINE)
        known = ("--cluster-id", "dev", "--environment", "dev", "--certs", "data/certs")
        return hyperscale(*words, "--manager", address, *known, cwd=self.folder, **self.env)

    def owner(self) -> str:
        """Of the job that somebody owned last; empty before."""
        return max(self.logged("owns job"), default=("", ""))[1]

    def logged(self, event: str) -> list[tuple[str, str]]:
        """When, and by which gate."""
        return [
            (json.loads(line)["timestamp"], log.stem)
            for log in (self.folder / "data").glob("g*.log")
            for line in log.read_text().splitlines()
            if f'"event":"{event}"' in line
        ]

    def results(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "out.json").read_text())
        return found


@contextmanager
def world(folder: Path, *more: object) -> Iterator[World]:
    port = free_ports(3 * NODES)
    env = {"XDG_RUNTIME_DIR": str(folder), "TMPDIR": str(folder)}
    words = ("--datacenters", 3, "--gates", 3, "--cores", 1, "--data", folder / "data")
    with Running("dev", "--port", port, *words, *more, cwd=folder, **env) as dev:
        dev.wait_until_said("ready: ")
        yield World(folder, port, dev)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """For tests that leave every node alive."""
    with world(tmp_path_factory.mktemp("gates")) as made:
        yield made


def by_datacenter(results: dict[str, Any]) -> dict[str, tuple[str, int]]:
    return {one["name"]: (one["status"], one["requests"]) for one in results["datacenters"]}


def test_the_numbers_of_each_datacenter_and_of_all_are_true(
    calm: World, target: str, stats: Stats
) -> None:
    file = write_workflow(calm.folder, f"{target}/")
    ended = calm.ask("run", file, "-i", 30, "-o", "out.json", gate=2)

    assert ended.code == ExitCode.PASSED, ended
    results = calm.results()
    each = dict.fromkeys(("dc1", "dc2", "dc3"), ("completed", 30))
    assert by_datacenter(results) == each
    assert sum(step["count"] for step in results["workflows"][0]["steps"]) == 90
    assert stats()["requests"] == 90
    durations = [one["duration"]["count"] for one in results["datacenters"]]
    assert durations == [30, 30, 30]
    assert "DATACENTERS" in ended.out


def test_it_runs_only_where_it_is_told_to(calm: World, target: str, stats: Stats) -> None:
    file = write_workflow(calm.folder, f"{target}/")
    ended = calm.ask("run", file, "-i", 20, "--dc", "dc2", "-o", "out.json", gate=3)

    assert ended.code == ExitCode.PASSED, ended
    assert by_datacenter(calm.results()) == {"dc2": ("completed", 20)}
    assert stats()["requests"] == 20
    assert_refused(calm.ask("run", file, "--dc", "mars"), "no datacenter 'mars'", code=1)
    nowhere = hyperscale("run", file, "--dc", "dc1", cwd=calm.folder)
    assert_refused(nowhere, "--dc", code=2)


def test_a_key_is_one_job_through_every_gate(calm: World, target: str, stats: Stats) -> None:
    file = write_workflow(calm.folder, f"{target}/")
    words = ("submit", file, "--idempotency-key", KEY, "--detach")
    ids = {calm.ask(*words, "-i", 10, gate=gate).out.strip() for gate in (1, 2, 3)}

    assert len(ids) == 1
    (job,) = ids
    assert calm.ask("attach", job).code == ExitCode.PASSED
    assert stats()["requests"] == 30
    assert_refused(calm.ask(*words, "-i", 11, gate=2), "its key was used for another test", code=1)
    assert job in calm.ask("jobs", gate=3).out
    assert "30" in calm.ask("status", job, gate=2).out


def test_a_command_through_any_gate_reaches_every_datacenter(
    calm: World, target: str, stats: Stats
) -> None:
    file = write_workflow(calm.folder, f"{target}/")
    with calm.running(file, "-d", "60s", "-o", "out.json") as run:
        run.wait_until(lambda: stats()["requests"] > 100, "load")
        job = re.findall(r"job (\w+) accepted", run.said)[0]
        said = calm.ask("cancel", job, gate=3)
        assert said.code == ExitCode.PASSED, said
        assert run.ended().code == ExitCode.STOPPED
    results = calm.results()
    assert {one["status"] for one in results["datacenters"]} == {"cancelled"}
    assert sum(one["requests"] for one in results["datacenters"]) == stats()["requests"]


def test_nothing_is_missing_when_the_owner_is_killed(
    tmp_path: Path, target: str, stats: Stats
) -> None:
    file = write_workflow(tmp_path, f"{target}/")
    with world(tmp_path) as all_nodes:
        with all_nodes.running(file, *RATE, "-o", "out.json") as run:
            run.wait_until(lambda: stats()["requests"] > 60, "load")
            all_nodes.kill(all_nodes.owner())
            ended = run.ended()
        assert ended.code == ExitCode.PASSED, ended
        each = dict.fromkeys(("dc1", "dc2", "dc3"), ("completed", 240))
        assert by_datacenter(all_nodes.results()) == each
        assert stats()["requests"] == 720


def test_a_datacenter_that_dies_with_the_owner_is_named_and_the_others_count(
    tmp_path: Path, target: str, stats: Stats
) -> None:
    file = write_workflow(tmp_path, f"{target}/")
    with world(tmp_path) as all_nodes:
        with all_nodes.running(file, *RATE, "-o", "out.json") as run:
            run.wait_until(lambda: stats()["requests"] > 60, "load")
            owner = all_nodes.owner()
            lost = f"dc{owner[1:]}"
            all_nodes.kill(owner, f"{lost}-m1", f"{lost}-w1")
            ended = run.ended()
        assert ended.code == ExitCode.LOAD_LOST, ended
        results = all_nodes.results()
        found = by_datacenter(results)
        assert found.pop(lost)[0] == "lost"
        assert set(found.values()) == {("completed", 240)}
        assert f"datacenter {lost} was lost" in results["lost"][0]
        assert results["coverage"] < 0.9
        assert stats()["requests"] >= 480


def test_a_datacenter_that_comes_back_runs_nothing_of_a_job_that_is_over(
    tmp_path: Path, target: str, stats: Stats
) -> None:
    """Its manager stood still for so long that the gates gave it up."""
    file = write_workflow(tmp_path, f"{target}/")
    with world(tmp_path) as all_nodes:
        with all_nodes.running(file, "--rate", "20/s", "-d", "30s", "-o", "out.json") as run:
            run.wait_until(lambda: stats()["requests"] > 60, "load")
            all_nodes.send(signal.SIGSTOP, "dc3-m1")
            run.wait_until(lambda: all_nodes.logged("datacenter lost"), "a loss")
            all_nodes.send(signal.SIGCONT, "dc3-m1")
            run.wait_until(lambda: all_nodes.logged("job withdrawn"), "a withdrawal")
            job = re.findall(r"job (\w+) accepted", run.said)[0]
            there = all_nodes.ask_manager("dc3-m1", "status", job)
            assert "cancelled" in there.out or "cancelling" in there.out, there
            ended = run.ended()
        assert ended.code == ExitCode.LOAD_LOST, ended
        found = by_datacenter(all_nodes.results())
        assert found.pop("dc3")[0] == "lost"
        assert set(found.values()) == {("completed", 600)}


def test_jobs_outlive_all_gates(tmp_path: Path, target: str) -> None:
    file = write_workflow(tmp_path, f"{target}/")
    with world(tmp_path) as first:
        ended = first.ask("run", file, "-i", 10)
        assert ended.code == ExitCode.PASSED, ended
        first.dev.signal(signal.SIGINT)
        first.dev.ended()
    with world(tmp_path) as second:
        assert "completed" in second.ask("jobs", gate=2).out
