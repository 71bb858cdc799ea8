"""Reporters of real runs: the target, the results and the backends count the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hyperscale.reporting.registry import config_of
from tests.fixtures.recording_http import recording
from tests.fixtures.services import honeycomb
from tests.integration.cli.program import assert_refused, hyperscale
from tests.integration.reporting.worlds import (
    ask_postgres,
    ask_sqlite,
    free_port,
    influxdb,
    postgres_url,
    prometheus,
)

Stats = Callable[[], dict[str, Any]]
TEST = """
from hyperscale import Workflow, step
from hyperscale.reporting import HoneycombConfig, SQLiteConfig
from hyperscale.testing import URL, HTTPResponse

HERE = "{target}/json"


class Shop(Workflow):
    vus = 2
    duration = "2s"
    rps = 50
    reporting = [
        SQLiteConfig(database_path="of_the_test.db"),
        HoneycombConfig(host="127.0.0.1", port={port}, secure=False, dataset="load"),
    ]

    @step()
    async def item(self, url: URL = HERE) -> HTTPResponse:
        return await self.client.http.get(url)


class Login(Workflow):
    vus = 1
    iterations = 3
    reporting = [SQLiteConfig(database_path="of_the_test.db")]

    @step()
    async def login(self, url: URL = HERE) -> HTTPResponse:
        return await self.client.http.get(url)
"""


def test_backends_count_what_the_target_counted(target: str, stats: Stats, tmp_path: Path) -> None:
    with (
        influxdb(tmp_path) as (influx, in_influx),
        prometheus(tmp_path) as (prom, in_prometheus),
        postgres_url() as url,
    ):
        live = [influx.shown(), prom.shown(), url.replace("postgres:", "timescaledb:", 1)]
        sent = [word for to in (*live, url, "sqlite://a.db") for word in ("-o", to)]
        words = ("run", f"{target}/json", "-d", "3s", "--rps", 60, "-u", 2, "-w", 1)
        ended = hyperscale(*words, *sent, "-o", "a.json", cwd=tmp_path)
        assert ended.code == 0, ended
        assert "points" not in ended.err, ended.err
        made = stats()["requests"]
        at_end = ask_postgres(url, "select requests, passed from hyperscale_runs")
        assert [tuple(row) for row in at_end] == [(made, True)]
        sql = "select sum(requests), count(distinct time) from hyperscale_points where about = "
        ((in_timescale, moments),) = ask_postgres(url, f"{sql}'step'")
        assert (in_influx(), in_prometheus(), int(in_timescale)) == (made, made, made)
        assert moments >= 2
        again = hyperscale("report", "a.json", "-o", url, cwd=tmp_path)
        assert (again.code, again.out.strip()) == (0, f"sent to {config_of(url).shown()}")
        assert len(ask_postgres(url, "select run from hyperscale_runs")) == 1
    assert ask_sqlite(tmp_path / "a.db", "select requests from hyperscale_runs") == [(made,)]


def test_the_test_names_its_reporters(target: str, tmp_path: Path) -> None:
    """A backend gets the workflows that name it."""
    with recording() as recorder:
        config, in_honeycomb = honeycomb(recorder, tmp_path)
        (tmp_path / "shop.py").write_text(TEST.format(target=target, port=recorder.port))
        words = ("run", "shop.py", "-w", 1, "-o", "a.json")
        env = {"HONEYCOMB_API_KEY": getattr(config, "api_key", "")}
        ended = hyperscale(*words, cwd=tmp_path, **env)
        assert ended.code == 0, ended
        told = json.loads((tmp_path / "a.json").read_text())
        count = {w["name"]: w["steps"][0]["count"] for w in told["workflows"]}
        assert in_honeycomb() == count["Shop"]
    stored = ask_sqlite(tmp_path / "of_the_test.db", "select requests from hyperscale_runs")
    assert stored == [(sum(count.values()),)]


def test_a_backend_that_is_away_costs_the_run_nothing(target: str, tmp_path: Path) -> None:
    store = f"postgres://ada:hidden-word@127.0.0.1:{free_port()}/shop"
    live = f"influxdb://127.0.0.1:{free_port()}/load?token=hidden-token"
    words = ("run", f"{target}/json", "-i", 3, "-w", 1, "-o", store, "-o", live)
    kept = ("-o", "sqlite://kept.db", "-o", "a.json", "--html", "a.html")
    ended = hyperscale(*words, *kept, cwd=tmp_path)
    assert ended.code == 0, ended
    assert ended.err.count("the run tries again") == 2
    assert f"results cannot be sent to {config_of(store).shown()}" in ended.err
    lost = rf"(\d+) of \1 points did not reach {re.escape(config_of(live).shown())}: .*refused"
    assert re.search(lost, ended.err), ended.err
    shown = [
        ended.err,
        ended.out,
        *((tmp_path / f"a.{kind}").read_text() for kind in ("json", "html")),
    ]
    assert not any("hidden-" in text for text in shown)
    assert json.loads((tmp_path / "a.json").read_text())["passed"]
    assert ask_sqlite(tmp_path / "kept.db", "select requests from hyperscale_runs") == [(3,)]


def test_one_that_is_required_decides(target: str, tmp_path: Path) -> None:
    away = f"influxdb://127.0.0.1:{free_port()}/load"
    words = ("run", f"{target}/json", "-i", 3, "-w", 1, "--reporter-required", "-o")
    ended = hyperscale(*words, away, cwd=tmp_path)
    (tmp_path / "a").mkdir()
    assert (ended.code, ended.hints) == (1, ["--reporter-required: nothing has been run"]), ended
    (tmp_path / "shop.py").write_text(FILLS.format(target=target))
    ended = hyperscale(
        "run", "shop.py", *words[4:], "sqlite://a/b.db", "-o", "a.json", cwd=tmp_path
    )
    assert ended.code == 1, ended
    told = json.loads((tmp_path / "a.json").read_text())
    assert (told["passed"], told["failure"]) == (False, "a reporter that is required failed")


FILLS = """
import shutil
from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse


class Shop(Workflow):
    vus = 1
    iterations = 3

    @step()
    async def item(self, url: URL = "{target}/json") -> HTTPResponse:
        shutil.rmtree("a", ignore_errors=True)
        return await self.client.http.get(url)
"""


def test_urls_that_lead_nowhere_are_refused_before_the_run(target: str, tmp_path: Path) -> None:
    ended = hyperscale("run", f"{target}/json", "-i", 1, "-o", "influx://h/db", cwd=tmp_path)
    assert_refused(ended, "no reporter for influx:// URLs")
    assert ended.hints == ["did you mean influxdb://?"]
