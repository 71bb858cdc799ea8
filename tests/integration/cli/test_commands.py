"""The commands as documented, from the outside."""

from __future__ import annotations

import csv
import json
import re
import signal
import urllib.request
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

import hyperscale as package
from tests.integration.cli.program import (
    Running,
    assert_refused,
    hyperscale,
    write_workflow,
)

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def results_in(file: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(file.read_text())
    return read


CHECKED = """
    @step("get")
    async def never(self) -> Exception | None:
        return ValueError("never")
"""


class TestProgram:
    def test_version(self, folder: Path) -> None:
        ended = hyperscale("--version", cwd=folder)
        assert (ended.code, ended.out) == (0, f"hyperscale {package.__version__}\n")

    @pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
    def test_help(self, folder: Path, words: list[str]) -> None:
        ended = hyperscale(*words, cwd=folder)
        assert ended.code == 0
        assert "hyperscale new test.py" in ended.out
        assert len(ended.out.splitlines()) <= 30

    @pytest.mark.parametrize(
        ("command", "lines"),
        [("run", 45), ("new", 24), ("ping", 24), ("demo", 24), ("report", 24), ("compare", 24)],
    )
    def test_help_of_a_command_fits_and_shows_an_example(
        self, folder: Path, command: str, lines: int
    ) -> None:
        ended = hyperscale(command, "--help", cwd=folder)
        assert ended.code == 0
        shown = ended.out.splitlines()
        assert len(shown) <= lines
        assert max(map(len, shown)) <= 80
        assert any(line.startswith(f"  hyperscale {command} ") for line in shown)

    def test_completion(self, folder: Path) -> None:
        ended = hyperscale(
            cwd=folder,
            _HYPERSCALE_COMPLETE="complete_bash",
            COMP_WORDS="hyperscale r",
            COMP_CWORD="1",
        )
        assert ended.out.split() == ["run", "record", "report", "results", "route", "resume"]


class TestRun:
    def test_new_then_run(self, folder: Path, target: str) -> None:
        made = hyperscale("new", "t.py", "--url", f"{target}/", cwd=folder)
        assert made.code == 0, made
        assert_refused(hyperscale("new", "t.py", cwd=folder), "t.py exists already")
        ended = hyperscale(
            "run", "t.py", "--ui", "ci", "-d", "1s", "-w", 1, "-o", "out.json", "-o", "out.html",
            cwd=folder,
        )  # fmt: skip
        assert ended.code == 0, ended
        for name in ("http_reqs", "http_req_duration", "http_req_failed", "iterations", "vus"):
            assert name in ended.out
        assert results_in(folder / "out.json")["passed"]
        page = (folder / "out.html").read_text()
        assert page.startswith("<!doctype html>")
        assert 'src="http' not in page
        assert "\x1b" not in ended.err + ended.out

    def test_every_output_at_once(self, folder: Path, target: str) -> None:
        write_workflow(folder, target)
        ended = hyperscale(
            "run", "try.py", "-w", 1, "-i", 5, "--json", "a.json", "--csv", "a.csv",
            "--junit", "a.xml", "--html", "a.html", "-o", "made/of/folders.json",
            "--summary-export", "b.json", "--threshold", "p(95)<10s", "--markdown", "a.md",
            cwd=folder, GITHUB_STEP_SUMMARY=str(folder / "step.md"),
        )  # fmt: skip
        assert ended.code == 0, ended
        assert results_in(folder / "made/of/folders.json")["workflows"][0]["iterations"] == 5
        rows = list(csv.DictReader((folder / "a.csv").open()))
        assert rows[0]["workflow"] == "Try"
        assert ElementTree.parse(folder / "a.xml").getroot().tag == "testsuites"
        assert (folder / "a.md").read_text().startswith("### Load test `Try`\n\n**✓ passed: 5 ")
        assert (folder / "step.md").read_text() == (folder / "a.md").read_text() + "\n"
        # the later of two names for one setting wins, as everywhere
        assert not (folder / "a.json").exists()
        assert (folder / "b.json").exists()

    def test_runs_add_to_the_page_of_a_workflow(self, folder: Path, target: str) -> None:
        write_workflow(folder, target)
        words = ("run", "try.py", "-w", 1, "-i", 1, "-q")
        for _ in range(2):
            hyperscale(*words, cwd=folder, GITHUB_STEP_SUMMARY=str(folder / "step.md"))
        assert (folder / "step.md").read_text().count("### Load test `Try`") == 2
        ended = hyperscale(*words, cwd=folder, GITHUB_STEP_SUMMARY=str(folder))
        assert ended.code == 0
        assert "cannot be written" in ended.err

    def test_once_shows_every_exchange(self, folder: Path, target: str) -> None:
        write_workflow(folder, f"{target}/json")
        ended = hyperscale("run", "try.py", "--once", cwd=folder)
        assert ended.code == 0, ended
        assert "> GET /json HTTP/1.1" in ended.out
        assert '"message":"hello"' in ended.out
        assert ended.out.count("> GET") == 1

    def test_http_debug_is_a_log(self, folder: Path, target: str) -> None:
        write_workflow(folder, f"{target}/json")
        ended = hyperscale("run", "try.py", "-i", 2, "-w", 1, "--http-debug", cwd=folder)
        assert ended.err.count("> GET /json") == 2
        assert "hello" not in ended.err
        full = hyperscale("run", "try.py", "-i", 1, "-w", 1, "--http-debug=full", cwd=folder)
        assert '"message":"hello"' in full.err

    def test_thresholds_decide(self, folder: Path, target: str) -> None:
        write_workflow(folder, f"{target}/delay/30")
        words = ("run", "try.py", "-i", 4, "-w", 1, "--threshold", "p(95)<10")
        assert hyperscale(*words, cwd=folder).code == 99
        assert hyperscale(*words, "--no-thresholds", cwd=folder).code == 0

    def test_failed_requests_decide_when_asked(self, folder: Path, target: str) -> None:
        write_workflow(folder, f"{target}/flaky/50")
        words = ("run", "try.py", "-i", 20, "-w", 1)
        assert hyperscale(*words, cwd=folder).code == 0
        asked = hyperscale(
            *words, "--exit-code-on-error", 99, "--junit", "a.xml", "-o", "a.json", cwd=folder
        )
        last = asked.out.splitlines()[-1]
        assert asked.code == 99
        assert last.startswith("✗ 10 of 20 requests failed")
        assert last.endswith("(exit 99)")
        assert ElementTree.parse(folder / "a.xml").getroot().get("errors") == "1"
        assert not results_in(folder / "a.json")["passed"]

    def test_checks_alone_are_no_verdict(self, folder: Path, target: str) -> None:
        write_workflow(folder, target, more=CHECKED)
        ended = hyperscale("run", "try.py", "-i", 3, "-w", 1, "--junit", "a.xml", cwd=folder)
        root = ElementTree.parse(folder / "a.xml").getroot()
        assert (ended.code, root.get("failures"), root.get("errors")) == (0, "0", "0")
        assert "3 of 3 checks failed" in str(root.findtext(".//system-out"))
        ended = hyperscale(
            "run", "try.py", "-i", 3, "-w", 1, "--junit", "a.xml", "--threshold",
            "checks: rate>0.5", cwd=folder,
        )  # fmt: skip
        root = ElementTree.parse(folder / "a.xml").getroot()
        assert (ended.code, root.get("failures")) == (99, "1")

    def test_a_url_needs_no_file(self, folder: Path, target: str) -> None:
        url = f"{target}/echo"
        words = ("-i", 4, "-u", 2, "-w", 1, "-o", "a.json")
        ended = hyperscale("run", url, *words, "--data", "{}", "-H", "A: b", cwd=folder)
        assert ended.code == 0, ended
        (workflow,) = results_in(folder / "a.json")["workflows"]
        (asked,) = workflow["steps"]
        assert (workflow["name"], workflow["iterations"]) == ("Post", 4)
        assert (asked["name"], asked["method"], asked["target"]) == ("post", "POST", url)
        assert asked["statuses"] == {"200": 4}

    def test_what_goes_with_a_url(self, folder: Path, target: str) -> None:
        write_workflow(folder, target)
        assert_refused(hyperscale("run", target, "try.py", cwd=folder), "stands after a URL")
        assert_refused(hyperscale("run", target, "-X", "BREW", cwd=folder), "--method takes one of")
        assert_refused(
            hyperscale("run", "try.py", "-X", "PUT", cwd=folder), "--method is for a URL"
        )

    def test_several_files_share_the_users(self, folder: Path, target: str) -> None:
        for name, vus in (("Browse", 40), ("Buy", 10)):
            file = write_workflow(folder, target, more=f"vus = {vus}", name=f"{name}.py")
            file.write_text(file.read_text().replace("class Try", f"class {name}"))
        ended = hyperscale(
            "run", "Browse.py", "Buy.py", "-u", 5, "-d", "200ms", "-v", "-o", "a.json", cwd=folder
        )
        assert ended.code == 0, ended
        found = {one["name"]: one["load"] for one in results_in(folder / "a.json")["workflows"]}
        assert found == {"Browse": "4 VUs for 200ms", "Buy": "1 VU for 200ms"}
        assert "Browse: 4 VUs for 200ms" in ended.err

    def test_relative_urls_ask_for_a_host(self, folder: Path, target: str) -> None:
        write_workflow(folder, "/json")
        ended = hyperscale("run", "try.py", "-i", 1, "-w", 1, cwd=folder)
        assert ended.hints[0].startswith("name its host: --host https://shop.example, or host =")
        write_workflow(folder, "/json", more=f'host = "{target}"')
        assert hyperscale("run", "try.py", "-i", 1, "-w", 1, cwd=folder).code == 0

    def test_quiet_and_none(self, folder: Path, target: str) -> None:
        write_workflow(folder, target)
        ended = hyperscale("run", "try.py", "-i", 5, "-w", 1, "-q", cwd=folder)
        assert ended.err == ""
        assert len(ended.out.splitlines()) == 1
        ended = hyperscale("run", "try.py", "-i", 5, "-w", 1, "--ui", "none", cwd=folder)
        assert ended.err == ""
        assert "http_reqs" in ended.out

    def test_verbose_explains_the_plan(self, folder: Path, target: str) -> None:
        write_workflow(folder, target)
        ended = hyperscale("run", "try.py", "-i", 5, "-w", 1, "-v", cwd=folder)
        assert "Try: 5 iterations by 2 VUs" in ended.err
        for name, order in (
            ("weighted_tasks", r"one of product: test GET \(weight 10\), search: "),
            ("login_once", "flow, with login, profile, view, order"),
            ("login_flow", "profile: .* and, at the same time, catalogue: "),
        ):
            file = EXAMPLES / f"{name}.py"
            ended = hyperscale("run", file, "-i", 1, "-w", 1, "-v", cwd=folder, TARGET=target)
            assert re.search(f"^  {order}", ended.err, re.MULTILINE), ended.err

    def test_stages_and_rate(self, folder: Path, target: str) -> None:
        write_workflow(folder, f"{target}/")
        for words in (["-s", "1s:3", "-s", "500ms:0"], ["--rate", "50/s", "-d", "1s"]):
            ended = hyperscale("run", "try.py", "-w", 1, *words, "-o", "o.json", cwd=folder)
            assert ended.code == 0, ended
            workflow = results_in(folder / "o.json")["workflows"][0]
            assert workflow["open_model"] == ("--rate" in words)
            assert workflow["iterations"] > 0

    def test_host_environment_tags_and_seed(self, folder: Path, target: str) -> None:
        (folder / "env.py").write_text(
            "import os\n"
            "from hyperscale import Workflow, step\n"
            "from hyperscale.testing import URL, HTTPResponse\n"
            "class Env(Workflow):\n"
            "    @step()\n"
            "    async def get(self, url: URL = os.environ['SOME_PATH']) -> HTTPResponse:\n"
            "        return await self.client.http.get(url)\n"
        )
        ended = hyperscale(
            "run", "env.py", "Env", "-i", 3, "-w", 1, "--host", target, "-e", "SOME_PATH=/json",
            "--tag", "team=shop", "--seed", 7, "-o", "o.json", cwd=folder,
        )  # fmt: skip
        assert ended.code == 0, ended
        assert results_in(folder / "o.json")["tags"] == {"team": "shop"}


class TestPrecedence:
    """Flag, environment, test file, config file, default."""

    def iterations(self, folder: Path, *words: object, **env: str) -> int:
        ended = hyperscale("run", "-w", 1, "-q", "-o", "o.json", *words, cwd=folder, **env)
        assert ended.code == 0, ended
        workflow = results_in(folder / "o.json")["workflows"][0]
        planned: int = workflow["planned_iterations"]
        return planned

    def test_each_source_beats_the_next(self, folder: Path, target: str) -> None:
        write_workflow(folder, target, more="iterations = 4", name="says.py")
        open_file = (
            (folder / "says.py").read_text().replace("iterations = 4", "").replace("duration", "# ")
        )
        (folder / "open.py").write_text(open_file.replace("vus = 2", ""))
        (folder / "hyperscale.toml").write_text("[run]\niterations = 5\nvus = 1\n")
        assert self.iterations(folder, "open.py") == 5
        assert self.iterations(folder, "says.py") == 4
        assert self.iterations(folder, "says.py", HYPERSCALE_ITERATIONS="3") == 3
        assert self.iterations(folder, "says.py", "-i", 2, HYPERSCALE_ITERATIONS="3") == 2
        (folder / "other.toml").write_text("[run]\niterations = 6\n")
        assert self.iterations(folder, "open.py", "-c", "other.toml") == 6
        assert self.iterations(folder, "open.py", HYPERSCALE_CONFIG="other.toml") == 6

    def test_the_config_file_may_name_the_test(self, folder: Path, target: str) -> None:
        write_workflow(folder, target, more="iterations = 4")
        (folder / "hyperscale.toml").write_text('[run]\nfile = "try.py"\n')
        assert self.iterations(folder) == 4
        assert self.iterations(folder, "Try") == 4


class TestResults:
    @pytest.fixture
    def runs(self, folder: Path, target: str) -> Path:
        for name, path in (("fast.json", "/"), ("slow.json", "/delay/40")):
            write_workflow(folder, f"{target}{path}", duration="2s")
            assert hyperscale("run", "try.py", "-w", 1, "-q", "-o", name, cwd=folder).code == 0
        return folder

    def test_report_and_compare(self, runs: Path) -> None:
        assert hyperscale("report", "fast.json", cwd=runs).code == 0
        assert "<!doctype html>" in (runs / "fast.html").read_text()
        made = hyperscale("report", "fast.html", "-o", "again.json", "-o", "x.csv", cwd=runs)
        assert made.code == 0, made
        again, first = results_in(runs / "again.json"), results_in(runs / "fast.json")
        assert again["workflows"] == first["workflows"]

        same = hyperscale("compare", "fast.json", "fast.html", cwd=runs)
        assert same.code == 0, same
        worse = hyperscale("compare", "fast.json", "slow.json", "--tolerance", "10%", cwd=runs)
        assert worse.code == 99, worse
        better = hyperscale("compare", "slow.json", "fast.json", "--json", cwd=runs)
        assert better.code == 0
        assert json.loads(better.out)["verdict"] == "better"
        three = ("fast.json", "slow.json", "fast.html")
        refused = hyperscale("compare", *three, cwd=runs)
        assert_refused(refused, "more than two runs are compared on a page")
        trend = hyperscale("compare", *three, "--html", "trend.html", cwd=runs)
        assert trend.code == 0, trend
        assert "From run to run" in (runs / "trend.html").read_text()
        page = hyperscale("compare", "fast.json", "slow.json", "--markdown", cwd=runs)
        assert page.code == 99
        assert page.out.startswith("**✗ Worse beyond noise")

    def test_files_that_are_no_results(self, folder: Path) -> None:
        (folder / "a.json").write_text("{}")
        (folder / "a.html").write_text("<p>")
        assert_refused(hyperscale("report", "a.json", cwd=folder), "a.json")
        assert_refused(hyperscale("report", "none.json", cwd=folder), "none.json")
        assert_refused(hyperscale("compare", "a.html", "a.json", cwd=folder), "HTML")
        ended = hyperscale("compare", "a.json", "a.json", "--tolerance", "much", cwd=folder)
        assert_refused(ended, "--tolerance takes a share such as 5% or 0.05, not 'much'")
        ended = hyperscale("compare", "a.json", "a.json", "--json", "--markdown", cwd=folder)
        assert_refused(ended, "--json and --markdown are two ways to print one comparison")


class TestPing:
    def test_phases_and_response(self, folder: Path, target: str) -> None:
        ended = hyperscale("ping", f"{target}/echo?x=1", "-H", "X-Mine: yes", cwd=folder)
        assert ended.code == 0, ended
        assert "200 OK" in ended.out
        for phase in ("connect", "wait", "total"):
            assert phase in ended.out
        assert '"X-Mine":"yes"' in ended.out

    def test_body_and_verb(self, folder: Path, target: str) -> None:
        (folder / "body.json").write_text('{"a": 1}')
        ended = hyperscale("ping", f"{target}/echo", "-d", "@body.json", "-X", "put", cwd=folder)
        assert '"method":"PUT"' in ended.out
        assert '"body_bytes":8' in ended.out

    def test_no_answer(self, folder: Path) -> None:
        ended = hyperscale("ping", "127.0.0.1:1", cwd=folder)
        assert ended.code == 1
        assert "refused" in ended.out

    def test_self_signed(self, folder: Path, tls_target: str) -> None:
        assert hyperscale("ping", tls_target, cwd=folder).code == 1
        ended = hyperscale("ping", tls_target, "-k", cwd=folder)
        assert ended.code == 0
        assert "tls" in ended.out

    @pytest.mark.parametrize("where", ["grpc://{}", "sse://{}/events", "ws://{}/ws"])
    def test_other_protocols(self, folder: Path, target: str, where: str) -> None:
        place = target.removeprefix("http://")
        ended = hyperscale("ping", where.format(place), cwd=folder)
        assert ended.code == 0, ended
        assert "connected" in ended.out

    def test_nobody_speaks_that_there(self, folder: Path) -> None:
        ended = hyperscale("ping", "grpcs://127.0.0.1:1", cwd=folder)
        assert (ended.code, "refused" in ended.out) == (1, True), ended
        assert_refused(hyperscale("ping", "udp://127.0.0.1:1", cwd=folder), "no connection")

    def test_bad_words(self, folder: Path) -> None:
        assert_refused(hyperscale("ping", cwd=folder), "missing argument 'URL'")
        assert_refused(hyperscale("ping", ":1", "-H", "nope", cwd=folder), "'nope'")
        assert_refused(hyperscale("ping", ":1", "-d", "@none", cwd=folder), "@none")
        assert_refused(hyperscale("ping", ":1", "--timeout", "0", cwd=folder), "'0'")


class TestDemo:
    def test_runs_against_its_own_target(self, folder: Path) -> None:
        ended = hyperscale("demo", "-d", "2s", "--html", "out/report.html", cwd=folder)
        assert ended.code == 0, ended
        assert "✓ passed" in ended.out
        assert (folder / "out/report.html").exists()

    def test_serves(self, folder: Path) -> None:
        with Running("demo", "--serve", "--port", 0, cwd=folder) as running:
            running.wait_until_said("serving")
            url = running.said.split()[1]
            with urllib.request.urlopen(f"{url}/json", timeout=10) as answer:
                assert answer.status == 200
            running.signal(signal.SIGINT)
            assert running.ended().code == 0

    def test_bad_port(self, folder: Path) -> None:
        ended = hyperscale("demo", "--serve", "--port", "x", cwd=folder)
        assert_refused(ended, "--port takes a whole number from 0 to 65535, not 'x'")
