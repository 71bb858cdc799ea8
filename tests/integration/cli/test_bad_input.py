"""Everything a person gets wrong, tried: one sentence, the right exit code, results so far kept."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

import psutil
import pytest

from hyperscale.target.process import TargetProcess
from tests.integration.cli.program import (
    Ended,
    Running,
    assert_refused,
    hyperscale,
    write_workflow,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def failed_results(folder: Path, *words: object) -> tuple[Ended, dict[str, Any]]:
    """A run in which no request succeeds: exit 1, and its results are there all the same."""
    ended = hyperscale("run", "try.py", "-w", 1, "-o", "out.json", *words, cwd=folder)
    results = json.loads((folder / "out.json").read_text())
    assert ended.code == results["exit_code"] == 1, ended
    assert "Traceback" not in ended.err + ended.out
    return ended, results


def error_outcomes(results: dict[str, Any]) -> set[str]:
    return {error["outcome"] for error in results["workflows"][0]["steps"][0]["errors"]}


class TestTestFile:
    def test_missing(self, folder: Path) -> None:
        assert_refused(hyperscale("run", "none.py", cwd=folder), "none.py does not exist")

    def test_without_a_workflow(self, folder: Path) -> None:
        (folder / "empty.py").write_text("x = 1\n")
        assert_refused(hyperscale("run", "empty.py", cwd=folder), "empty.py defines no workflow")

    def test_syntax_error_shows_the_line(self, folder: Path) -> None:
        (folder / "bad.py").write_text("x = 1\nclass (:\n")
        assert_refused(hyperscale("run", "bad.py", cwd=folder), "bad.py line 2", "class (:")

    def test_import_error(self, folder: Path) -> None:
        (folder / "bad.py").write_text("import os\nimport no_such_module\n")
        ended = hyperscale("run", "bad.py", cwd=folder)
        assert_refused(ended, "bad.py line 2", "No module named 'no_such_module'")
        assert "install no_such_module" in ended.hints[0]

    def test_debug_shows_the_traceback(self, folder: Path) -> None:
        (folder / "bad.py").write_text("import no_such_module\n")
        ended = hyperscale("run", "bad.py", "--debug", cwd=folder)
        assert ended.code == 2
        assert "Traceback" in ended.err
        assert len(ended.errors) == 1

    def test_debug_shows_where_setup_raised(self, folder: Path) -> None:
        (folder / "bad.py").write_text(
            "from hyperscale import Workflow, step\n"
            "from hyperscale.testing import HTTPResponse\n"
            "class Bad(Workflow):\n"
            "    async def setup(self):\n"
            "        raise KeyError('price')\n"
            "    @step()\n"
            "    async def get(self) -> HTTPResponse: ...\n"
        )
        ended = hyperscale("run", "bad.py", "-w", 1, "--debug", cwd=folder)
        assert ended.code == 1
        assert "setup() of Bad raised KeyError: 'price' (bad.py:5 in setup)" in ended.errors[0]
        assert "raise KeyError('price')" in ended.err

    def test_step_without_a_response(self, folder: Path) -> None:
        (folder / "quiet.py").write_text(
            "from hyperscale import Workflow, step\n"
            "class Quiet(Workflow):\n"
            "    @step()\n"
            "    async def get(self):\n"
            "        return 1\n"
        )
        ended = hyperscale("run", "quiet.py", "-w", 1, cwd=folder)
        assert_refused(ended, "nothing would be measured", "Quiet.get has no return annotation")

    def test_unknown_workflow(self, folder: Path) -> None:
        write_workflow(folder, "http://127.0.0.1/")
        ended = hyperscale("run", "try.py", "Tri", cwd=folder)
        assert_refused(ended, "try.py has no workflow called Tri")
        assert "Try" in ended.hints[0]


class TestUsage:
    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["--vus", "abc"], "--vus takes a whole number from 1, not 'abc'"),
            (["-u", "0"], "--vus takes a whole number from 1, not '0'"),
            (["-d", "1x"], "'1x' is not a duration"),
            (["--rate", "fast"], "'fast' is not a rate"),
            (["-s", "100"], "--stage takes TIME:N, not '100'"),
            (["--threshold", "p95<1"], "'p95<1'"),
            (["--tag", "novalue"], "--tag takes KEY=VALUE"),
            (["--ui", "tui"], "--ui takes one of full, ci, none, not 'tui'"),
            (["--summary-trend-stats", "p(101)"], "p(101)"),
            (["-o", "results.txt"], "results.txt"),
            (["--nope"], "no such option: --nope"),
            (["-c", "none.toml"], "none.toml"),
            (["-u", "3", "-i"], "requires an argument"),
        ],
    )
    def test_bad_flags(self, folder: Path, words: list[str], sentence: str) -> None:
        write_workflow(folder, "http://127.0.0.1/")
        assert_refused(hyperscale("run", "try.py", "-w", 1, *words, cwd=folder), sentence)

    def test_no_file(self, folder: Path) -> None:
        assert_refused(hyperscale("run", cwd=folder), "no test file is named")

    def test_unknown_command(self, folder: Path) -> None:
        assert_refused(hyperscale("rnu", cwd=folder), "no such command 'rnu'", "'run'")

    def test_bad_environment(self, folder: Path) -> None:
        write_workflow(folder, "http://127.0.0.1/")
        ended = hyperscale("run", "try.py", cwd=folder, HYPERSCALE_VUS="many")
        assert_refused(ended, "HYPERSCALE_VUS takes a whole number from 1, not 'many'")


class TestLimits:
    def test_a_million_vus(self, folder: Path) -> None:
        write_workflow(folder, "http://127.0.0.1/")
        ended = hyperscale("run", "try.py", "-u", 1_000_000, "-w", 1, cwd=folder)
        assert_refused(ended, "1,000,000 VUs")

    def test_open_file_limit_says_the_limit_and_what_to_run(self, folder: Path) -> None:
        write_workflow(folder, "http://127.0.0.1/")
        ended = hyperscale("run", "try.py", "-u", 100, "-w", 1, cwd=folder, prefix="ulimit -n 64")
        assert_refused(ended, "100 VUs", "64 files")
        assert "ulimit -n" in ended.hints[0]


class TestOutput:
    def test_unwritable_output_is_refused_before_the_run(self, folder: Path) -> None:
        write_workflow(folder, "http://127.0.0.1:1/", duration="1h")
        (folder / "file").write_text("")
        ended = hyperscale("run", "try.py", "-o", "file/out.json", cwd=folder)
        assert_refused(ended, "file/out.json")

    def test_output_that_is_a_folder(self, folder: Path) -> None:
        write_workflow(folder, "http://127.0.0.1:1/", duration="1h")
        (folder / "out.json").mkdir()
        assert_refused(hyperscale("run", "try.py", "-o", "out.json", cwd=folder), "folder")

    def test_a_full_disk_costs_the_file_only(self, folder: Path, target: str) -> None:
        write_workflow(folder, target)
        ended = hyperscale(
            "run", "try.py", "-w", 1, "-o", "json=/dev/full", "-o", "kept.json", cwd=folder
        )
        assert_refused(ended, "/dev/full", "no space left on device", code=1)
        assert "http_reqs" in ended.out
        assert "✗ a result file could not be written" in ended.out
        kept = json.loads((folder / "kept.json").read_text())
        assert (kept["exit_code"], kept["failure"]) == (1, "a result file could not be written")

    def test_standard_output_closed(self, folder: Path, target: str) -> None:
        write_workflow(folder, target)
        words = ("run", "try.py", "-w", 1, "-i", 5, "-o", "out.json")
        assert hyperscale(*words, cwd=folder, prefix="exec >&-").code == 0
        assert hyperscale(*words, cwd=folder, prefix="exec >&- 2>&- <&-").code == 0
        assert json.loads((folder / "out.json").read_text())["passed"]


class TestTarget:
    def test_unresolvable_host(self, folder: Path) -> None:
        write_workflow(folder, "http://no-such-host.invalid/")
        ended, _ = failed_results(folder)
        assert_refused(ended, "no-such-host.invalid cannot be resolved", code=1)

    def test_refused_port(self, folder: Path) -> None:
        port = free_port()
        write_workflow(folder, f"http://127.0.0.1:{port}/")
        ended, results = failed_results(folder)
        assert_refused(ended, f"connection to 127.0.0.1:{port} was refused", code=1)
        assert error_outcomes(results) == {"refused"}

    def test_tls_to_a_plain_port(self, folder: Path, target: str) -> None:
        write_workflow(folder, target.replace("http://", "https://"))
        ended, results = failed_results(folder)
        assert_refused(ended, "does not speak TLS", code=1)
        assert error_outcomes(results) == {"tls"}

    def test_self_signed_certificate(self, folder: Path, tls_target: str) -> None:
        write_workflow(folder, tls_target)
        ended, results = failed_results(folder)
        assert_refused(ended, "certificate", code=1)
        assert "--insecure-skip-tls-verify" in ended.hints[0]
        assert error_outcomes(results) == {"tls"}
        accepted = hyperscale("run", "try.py", "-w", 1, "--insecure-skip-tls-verify", cwd=folder)
        assert accepted.code == 0, accepted

    def test_garbage(self, folder: Path, target: str) -> None:
        write_workflow(folder, f"{target}/garbage")
        ended, results = failed_results(folder)
        assert_refused(ended, "not HTTP", code=1)
        assert error_outcomes(results) == {"protocol"}

    def test_endless_header(self, folder: Path, target: str) -> None:
        write_workflow(folder, f"{target}/endless-header")
        ended, results = failed_results(folder)
        assert_refused(ended, "header", code=1)
        assert error_outcomes(results) == {"protocol"}

    def test_dying_mid_run(self, folder: Path) -> None:
        with TargetProcess() as dying:
            write_workflow(folder, dying.url, duration="4s")
            words = ("run", "try.py", "-w", 1, "-o", "out.json", "--threshold")
            with Running(*words, "http_req_failed: rate<0.01", cwd=folder) as running:
                running.wait_until_said("started")
                dying.kill()
                ended = running.ended()
        assert ended.code in (1, 99), ended  # 1 when it died before its first answer
        assert "Traceback" not in ended.err
        results = json.loads((folder / "out.json").read_text())
        assert error_outcomes(results) & {"refused", "reset"}


class TestEndings:
    def results(self, folder: Path) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((folder / "out.json").read_text())
        return read

    def start(self, folder: Path, url: str, **more: str) -> Running:
        write_workflow(folder, url, duration="5m", **more)
        return Running("run", "try.py", "-w", 2, "-o", "out.json", cwd=folder)

    def wait_for_load(self, running: Running) -> list[psutil.Process]:
        """Until the load runs; the generator processes."""
        running.wait_until_said("started")
        return psutil.Process(running.pid).children()

    def test_a_generator_killed_mid_run(self, folder: Path, target: str) -> None:
        with self.start(folder, target) as running:
            generators = self.wait_for_load(running)
            assert len(generators) == 2
            generators[0].kill()
            ended = running.ended()
        assert ended.code == 98, ended
        assert "Traceback" not in ended.err
        results = self.results(folder)
        assert results["cut"] == "worker lost"
        assert "SIGKILL" in results["cut_reason"]
        assert sum(step["count"] for step in results["workflows"][0]["steps"]) > 0
        assert not generators[1].is_running()

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_stopped_by_a_signal(self, folder: Path, target: str, number: int) -> None:
        with self.start(folder, target) as running:
            generators = self.wait_for_load(running)
            running.signal(number)
            ended = running.ended()
        assert ended.code == 105, ended
        assert "http_reqs" in ended.out
        assert "Traceback" not in ended.err
        results = self.results(folder)
        assert results["cut"] == "signal"
        assert results["workflows"][0]["steps"][0]["count"] > 0
        assert not any(process.is_running() for process in generators)

    def test_stopped_twice_does_not_wait(self, folder: Path, target: str) -> None:
        more = 'graceful_stop = "5m"; timeout = "5m"'
        with self.start(folder, f"{target}/delay/60000", more=more) as running:
            self.wait_for_load(running)
            running.signal(signal.SIGINT)
            running.wait_until_said("stopping")
            running.signal(signal.SIGINT)
            ended = running.ended()
        assert ended.code == 105, ended
        assert self.results(folder)["cut"] == "signal"

    def test_stopped_before_the_load(self, folder: Path) -> None:
        ready = folder / "ready"
        (folder / "slow.py").write_text(
            f"import pathlib, time\npathlib.Path({str(ready)!r}).touch()\ntime.sleep(300)\n"
        )
        with Running("run", "slow.py", "-w", 1, cwd=folder) as running:
            running.wait_until(ready.exists, "the file being imported")
            running.signal(signal.SIGTERM)
            ended = running.ended()
        assert_refused(ended, "stopped before there were results", code=105)


def test_reader_that_goes_away(folder: Path, target: str) -> None:
    write_workflow(folder, target)
    ended = hyperscale(
        "run", "try.py", "-w", 1, "-i", 5, cwd=folder, prefix="exec > >(exit 0); sleep 0.2"
    )
    assert ended.code == 0, ended
    assert "Traceback" not in ended.err


def test_standard_output_full(folder: Path, target: str) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    write_workflow(folder, target)
    ended = hyperscale("run", "try.py", "-w", 1, "-i", 5, cwd=folder, prefix="exec >/dev/full")
    assert "Traceback" not in ended.err
    assert ended.code == 0, ended
