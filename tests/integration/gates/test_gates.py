"""Three datacenters behind three gates, all real processes: one job, one end, true numbers."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import ExitCode
from tests.integration.cli.program import Ended, Running, assert_refused, hyperscale, write_workflow
from tests.integration.client.test_dev import free_ports
from tests.integration.conftest import Stats
from tests.integration.scheduler.etcd_cluster import etcd_cluster

NODES = 9
KEY = "tests:1:0123456789abcdef"
RATE = ("--rate", "40/s", "-d", "6s")  # 240 iterations in each datacenter, however slow it is


ROWS = """
from hyperscale import Workflow, step
from hyperscale.testing import HTTPResponse


class Rows(Workflow):
    vus = 10
    iterations = {rows}
    data = [{{"row": number}} for number in range({rows})]
    datacenters = {{"dc2": 60, "dc3": 40}}

    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get(f"{url}/{{self.row['row']}}/{{self.vu_id}}")
"""


SLOW = """
from hyperscale import Workflow, step
from hyperscale.testing import HTTPResponse


class Slow(Workflow):
    vus = 2
    iterations = 20

    async def setup(self) -> None:
        await self.client.http.get("{url}/setup")

    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get("{url}/load")
"""


@dataclass
class Recording:
    url: str = ""
    seen: list[str] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)

    def of(self, path: str) -> list[str]:
        return [one for one in self.seen if one == path]


@contextmanager
def recording() -> Iterator[Recording]:
    """A target that knows every path it was asked for, and keeps the first setup waiting."""
    target = Recording()
    seen = target.seen

    class Records(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            seen.append(self.path)
            if self.path == "/setup" and seen.count("/setup") == 1:
                target.release.wait(60.0)
                seen.append("released")
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Records) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        target.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield target
        finally:
            target.release.set()
            server.shutdown()


def stands_still(stats: Stats) -> bool:
    before = stats()["requests"]
    time.sleep(0.3)
    return bool(stats()["requests"] == before)


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

    def statuses(self, run: Running) -> list[str]:
        """Of the job that runs, in each datacenter."""
        (job,) = re.findall(r"job (\w+) accepted", run.said)
        view = json.loads(self.ask("status", job, "--json").out)
        return [one["status"] for one in view["datacenters"]]

    def metrics(self) -> list[str]:
        """Of the gates, which come first."""
        first = int(re.findall(r":(\d+)/metrics of g1", self.dev.said)[0])
        return [f"http://127.0.0.1:{first + number}/metrics" for number in range(3)]

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
def world(folder: Path, *more: object, **env: str) -> Iterator[World]:
    port = free_ports(3 * NODES)
    env |= {"XDG_RUNTIME_DIR": str(folder), "TMPDIR": str(folder)}
    words = ("--datacenters", 3, "--gates", 3, "--cores", 1, "--data", folder / "data")
    with Running("dev", "--port", port, *words, *more, cwd=folder, **env) as dev:
        dev.wait_until_said("\nready: ")
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


@pytest.mark.parametrize(
    ("words", "shares"),
    [
        (("-i", 50), (30, 20)),
        (("--rate", "30/s", "-d", "3s"), (54, 36)),
        (("-s", "1s:5", "-s", "1s:5"), None),
    ],
    ids=["iterations", "rate", "stages"],
)
def test_one_load_is_split_by_share(
    calm: World,
    target: str,
    stats: Stats,
    words: tuple[object, ...],
    shares: tuple[int, ...] | None,
) -> None:
    file = write_workflow(calm.folder, f"{target}/")
    ended = calm.ask("run", file, *words, "--dc", "dc1=60", "--dc", "dc3=40", "-o", "out.json")

    assert ended.code == ExitCode.PASSED, ended
    results = calm.results()
    found = by_datacenter(results)
    if shares is not None:
        assert found == {"dc1": ("completed", shares[0]), "dc3": ("completed", shares[1])}
    else:
        assert results["workflows"][0]["vus_max"] == 5
    assert stats()["requests"] == sum(count for _, count in found.values())
    assert {one["name"]: one["share"] for one in results["datacenters"]} == {"dc1": 60, "dc3": 40}


def test_a_gate_chooses_as_many_as_are_wanted(calm: World, target: str, stats: Stats) -> None:
    file = write_workflow(calm.folder, f"{target}/")
    ended = calm.ask("run", file, "-i", 10, "--dc-count", 2, "-o", "out.json", gate=3)
    assert ended.code == ExitCode.PASSED, ended
    assert len(calm.results()["datacenters"]) == 2
    assert stats()["requests"] == 20

    def is_next() -> bool:  # who is still busy with the job before is not
        route = ("route", "--dc", "dc3", "--policy", "prefer", "--count", 1)
        return calm.ask(*route).out == "dc3\n"

    calm.dev.wait_until(is_next, "that dc3 would run it")
    prefer = ("--dc", "dc3", "--dc-policy", "prefer", "-o", "out.json")
    ended = calm.ask("run", file, "-i", 10, *prefer)
    assert ended.code == ExitCode.PASSED, ended
    assert by_datacenter(calm.results()) == {"dc3": ("completed", 10)}
    assert_refused(
        calm.ask("run", file, "--dc-count", 4), "needs 4 datacenters, and there are 3", code=1
    )
    assert_refused(calm.ask("run", file, "--dc-policy", "prefer"), "prefers no datacenter", code=2)


def test_a_gate_tells_how_jobs_went_in_numbers(calm: World, target: str) -> None:
    file = write_workflow(calm.folder, f"{target}/")
    assert calm.ask("run", file, "-i", 5, "--dc", "dc2").code == ExitCode.PASSED
    pages = [urllib.request.urlopen(page, timeout=10).read().decode() for page in calm.metrics()]
    ends = re.findall(
        r'gate_dc_ends_total{datacenter="dc2",status="completed"} (\d+)', "".join(pages)
    )
    assert sum(map(int, ends)) >= 1
    assert all('hyperscale_gate_jobs{state="owned"} 0' in page for page in pages)


def test_a_share_that_is_too_small_is_refused(calm: World, target: str) -> None:
    file = write_workflow(calm.folder, f"{target}/")
    words = ("run", file, "--dc", "dc1=90", "--dc", "dc2=10")
    assert_refused(calm.ask(*words, "-u", 2), "2 virtual users split as 90 to 10", code=1)
    here = calm.ask_manager("dc1-m1", "submit", file, "--dc", "dc2")
    assert_refused(here, "this is a manager of dc1 alone", code=1)


def test_the_test_file_says_where_and_each_row_is_used_once(calm: World) -> None:
    """Of the target we know every row that it was sent, and the number of every user."""
    rows = 50
    with recording() as target:
        file = calm.folder / "rows.py"
        file.write_text(ROWS.format(rows=rows, url=target.url))
        ended = calm.ask("run", file, "-o", "out.json", gate=2)
        assert ended.code == ExitCode.PASSED, ended
    sent = [path.strip("/").split("/") for path in target.seen]
    assert sorted(int(row) for row, _ in sent) == list(range(rows))
    users = {int(user) for _, user in sent}
    assert users == set(range(10))
    assert by_datacenter(calm.results()) == {"dc2": ("completed", 30), "dc3": ("completed", 20)}


def test_users_are_scaled_by_share_and_paused_everywhere(
    calm: World, target: str, stats: Stats
) -> None:
    file = write_workflow(calm.folder, f"{target}/")
    split = ("--dc", "dc1=3", "--dc", "dc2=1")
    with calm.running(file, "-u", 4, "-d", "60s", *split, "-o", "out.json") as run:
        run.wait_until(lambda: stats()["requests"] > 50, "load")
        job = re.findall(r"job (\w+) accepted", run.said)[0]
        assert_refused(calm.ask("scale", job, "--vus", 1), "leave none for dc2", code=1)
        assert calm.ask("scale", job, "--vus", 8, gate=2).code == ExitCode.PASSED

        def users() -> int:
            return json.loads(calm.ask("status", job, "--json").out)["datacenters"]

        run.wait_until(lambda: [one["vus"] for one in users()] == [6, 2], "eight users")
        assert calm.ask("pause", job, gate=3).code == ExitCode.PASSED
        run.wait_until(lambda: stands_still(stats), "pause")
        assert calm.ask("resume", job).code == ExitCode.PASSED
        before = stats()["requests"]
        run.wait_until(lambda: stats()["requests"] > before + 50, "load again")
        assert calm.ask("cancel", job).code == ExitCode.PASSED
        assert run.ended().code == ExitCode.STOPPED
    results = calm.results()
    assert sum(one["requests"] for one in results["datacenters"]) == stats()["requests"]


def test_no_load_begins_before_every_datacenter_is_prepared(calm: World) -> None:
    """One of them sets up for as long as we like; then each begins once."""
    with recording() as target:
        file = calm.folder / "slow.py"
        file.write_text(SLOW.format(url=target.url))
        with calm.running(file, "-o", "out.json") as run:
            run.wait_until(lambda: len(target.of("/setup")) == 3, "setups")
            run.wait_until(
                lambda: calm.statuses(run).count("prepared") == 2, "two that are prepared"
            )
            time.sleep(0.5)  # for load that must not be
            assert not target.of("/load")
            target.release.set()
            ended = run.ended()
        assert ended.code == ExitCode.PASSED, ended
        assert len(target.of("/load")) == 3 * 20
        assert target.seen.index("/load") > target.seen.index("released")
    each = dict.fromkeys(("dc1", "dc2", "dc3"), ("completed", 20))
    assert by_datacenter(calm.results()) == each


def test_a_threshold_may_name_a_datacenter(calm: World, target: str) -> None:
    file = write_workflow(calm.folder, f"{target}/")
    rules = {"http_reqs{dc:dc1}": 30, "http_reqs{dc:dc2}": 20, "http_reqs": 50}
    judged = [
        word for name, count in rules.items() for word in ("--threshold", f"{name}: count=={count}")
    ]
    split = ("-i", 50, "--dc", "dc1=60", "--dc", "dc2=40", "-o", "out.json")
    ended = calm.ask("run", file, *split, *judged)
    assert ended.code == ExitCode.PASSED, ended
    found = {one["scope"]: one["actual"] for one in calm.results()["thresholds"]}
    assert found == {f"Try: {name}": count for name, count in rules.items()}

    more = (
        "--threshold",
        "http_reqs{dc:dc2}: count>20",
        "--threshold",
        "http_reqs{dc:dc3}: count>1",
    )
    ended = calm.ask("run", file, *split, *more)
    assert ended.code == ExitCode.THRESHOLDS_CROSSED, ended
    assert "is about datacenter dc3, where the test did not run" in ended.out + ended.err


def test_what_is_too_much_in_all_datacenters_ends_the_load_in_each(
    calm: World, target: str, stats: Stats
) -> None:
    """None of them alone has that much."""
    file = write_workflow(calm.folder, f"{target}/")
    rule = ("--threshold", "http_reqs: count<150 abort")
    ended = calm.ask("run", file, "--rate", "20/s", "-d", "40s", *rule, "-o", "out.json")
    assert ended.code == ExitCode.THRESHOLDS_CROSSED, ended
    results = calm.results()
    assert results["cut"] == "threshold"
    assert all(one["requests"] < 600 for one in results["datacenters"])
    assert sum(one["requests"] for one in results["datacenters"]) == stats()["requests"]


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


def test_nothing_is_missing_when_the_owner_is_killed_and_jobs_are_in_etcd(
    tmp_path: Path, target: str, stats: Stats
) -> None:
    file = write_workflow(tmp_path, f"{target}/")
    with etcd_cluster(tmp_path / "etcd", 1) as etcd:
        where = {"HYPERSCALE_LEDGER_STORE": "etcd", "HYPERSCALE_LEDGER_ETCD": etcd.address}
        with world(tmp_path, **where) as all_nodes:
            with all_nodes.running(file, *RATE, "-o", "out.json") as run:
                run.wait_until(lambda: stats()["requests"] > 60, "load")
                (job,) = re.findall(r"job (\w+) accepted", run.said)
                first = all_nodes.owner()
                key = f"hyperscale-gates/dev/dev/jobs/owner/{job}"
                assert etcd.control("get", key, "--print-value-only").strip() == first
                all_nodes.kill(first)
                ended = run.ended()
            assert ended.code == ExitCode.PASSED, ended
            each = dict.fromkeys(("dc1", "dc2", "dc3"), ("completed", 240))
            assert by_datacenter(all_nodes.results()) == each
            assert stats()["requests"] == 720
            assert etcd.control("get", key, "--print-value-only").strip() not in ("", first)


def test_a_new_owner_begins_what_is_prepared_once(tmp_path: Path) -> None:
    with recording() as target, world(tmp_path) as all_nodes:
        file = tmp_path / "slow.py"
        file.write_text(SLOW.format(url=target.url))
        with all_nodes.running(file, "-o", "out.json") as run:
            run.wait_until(lambda: len(target.of("/setup")) == 3, "setups")
            all_nodes.kill(all_nodes.owner())
            target.release.set()
            ended = run.ended()
        assert ended.code == ExitCode.PASSED, ended
        assert len(target.of("/load")) == 3 * 20
        each = dict.fromkeys(("dc1", "dc2", "dc3"), ("completed", 20))
        assert by_datacenter(all_nodes.results()) == each


def test_a_datacenter_that_dies_with_the_owner_is_named_and_the_others_count(
    tmp_path: Path, target: str, stats: Stats
) -> None:
    file = write_workflow(tmp_path, f"{target}/")
    with world(tmp_path) as all_nodes:
        with all_nodes.running(file, *RATE, "-o", "out.json") as run:
            run.wait_until(lambda: stats()["requests"] > 300, "numbers that are written down")
            owner = all_nodes.owner()
            lost = f"dc{owner[1:]}"
            all_nodes.kill(owner, f"{lost}-m1", f"{lost}-w1")
            ended = run.ended()
        assert ended.code == ExitCode.LOAD_LOST, ended
        results = all_nodes.results()
        found = by_datacenter(results)
        status, told = found.pop(lost)
        assert status == "lost"
        assert 0 < told <= stats()["requests"] - 480
        assert set(found.values()) == {("completed", 240)}
        assert f"datacenter {lost} was lost" in results["lost"][0]
        assert results["together"]["requests"] == 480 + told
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


def test_a_datacenter_that_is_never_prepared_is_given_up_and_the_others_begin(
    tmp_path: Path, target: str, stats: Stats
) -> None:
    """It has no worker any more."""
    file = write_workflow(tmp_path, f"{target}/")
    with world(tmp_path, HYPERSCALE_GATE_BEGIN_WITHIN_S="6") as all_nodes:
        all_nodes.kill("dc2-w1")
        named = ("--dc", "dc1", "--dc", "dc2", "--dc", "dc3")
        ended = all_nodes.ask("run", file, "-i", 20, *named, "-o", "out.json")
        assert ended.code == ExitCode.LOAD_LOST, ended
        results = all_nodes.results()
        found = by_datacenter(results)
        assert found.pop("dc2") == ("lost", 0)
        assert found == dict.fromkeys(("dc1", "dc3"), ("completed", 20))
        assert stats()["requests"] == 40
        (lost,) = results["lost"]
        assert "dc2 was lost before it told of any load" in lost
        assert "was not ready to begin within 6 s" in lost


def test_jobs_outlive_all_gates(tmp_path: Path, target: str) -> None:
    file = write_workflow(tmp_path, f"{target}/")
    with world(tmp_path) as first:
        ended = first.ask("run", file, "-i", 10)
        assert ended.code == ExitCode.PASSED, ended
        first.dev.signal(signal.SIGINT)
        first.dev.ended()
    with world(tmp_path) as second:
        told = second.ask("jobs", gate=2)
        assert "completed" in told.out, told
