"""One suite for every reporter: what is sent is stored, once, and readable by the backend's own
means; a backend that is away costs the run nothing."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hyperscale.metrics.results import Results
from hyperscale.reporting.reporters import reach, send, shown
from tests.integration.cli.program import assert_refused, hyperscale
from tests.integration.clients import postgres_server
from tests.unit.ui.sample import empty_results, sample_results

Ask = Callable[[str], list[tuple[Any, ...]]]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    if not postgres_server.found():
        pytest.skip("no PostgreSQL on this machine")
    port = free_port()
    with postgres_server.postgres_server(port):
        yield f"postgres://postgres@127.0.0.1:{port}/postgres"


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Ask]:
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/results.db", lambda sql: ask_sqlite(tmp_path, sql)
    url = request.getfixturevalue("postgres")
    return url, lambda sql: asyncio.run(ask_postgres(url, sql))


def ask_sqlite(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "results.db")) as connection:
        return connection.execute(sql).fetchall()


async def ask_postgres(url: str, sql: str) -> list[tuple[Any, ...]]:
    asyncpg = pytest.importorskip("asyncpg")
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


def test_results_are_stored_once(backend: tuple[str, Ask]) -> None:
    url, ask = backend
    results = sample_results()
    results.name = url.partition("://")[0]
    assert asyncio.run(reach(url)) is None
    for _ in range(2):
        assert asyncio.run(send(url, results)) is None
    assert asyncio.run(send(url, empty_results())) is None
    mine = f"(select run from hyperscale_runs where name = '{results.name}')"
    runs = ask(f"select requests, failed, exit_code from hyperscale_runs where run in {mine}")
    assert runs == [(results.requests, results.failed, 99)]
    steps = ask(
        f"select workflow, step, requests, p95_ms from hyperscale_steps where run in {mine}"
    )
    assert sorted(steps) == sorted(
        (step.workflow, step.name, step.count, step.service.p95_ms)
        for workflow in results.workflows
        for step in workflow.steps
    )
    ((points, requests),) = ask(
        f"select count(*), sum(requests) from hyperscale_series where run in {mine}"
    )
    assert (points, int(requests)) == _points(results)


def _points(results: Results) -> tuple[int, int]:
    points = [point for workflow in results.workflows for point in workflow.series]
    return len(points), sum(point.requests for point in points)


def test_a_run_sends_what_it_measured(
    backend: tuple[str, Ask], target: str, tmp_path: Path
) -> None:
    url, ask = backend
    words = ("run", f"{target}/json", "-i", 7, "-w", 1, "-o", url, "-o", "a.json")
    ended = hyperscale(*words, cwd=tmp_path)
    assert ended.code == 0, ended
    (stored,) = ask("select requests, passed from hyperscale_runs where requests = 7")
    assert (stored[0], bool(stored[1])) == (7, True)
    again = hyperscale("report", "a.json", "-o", url, cwd=tmp_path)
    assert (again.code, again.out.strip()) == (0, f"sent to {shown(url)}")
    assert len(ask("select run from hyperscale_runs where requests = 7")) == 1


def test_a_backend_that_is_away_costs_the_run_nothing(target: str, tmp_path: Path) -> None:
    away = f"postgres://ada:hidden-word@127.0.0.1:{free_port()}/shop"
    words = ("run", f"{target}/json", "-i", 3, "-w", 1, "-o", away)
    stored = ("-o", "sqlite://kept.db", "-o", "a.json")
    ended = hyperscale(*words, *stored, cwd=tmp_path)
    assert ended.code == 0, ended
    assert "the end of the run tries again" in ended.err
    assert f"results cannot be sent to {shown(away)}" in ended.err
    assert "hidden-word" not in ended.err + ended.out + (tmp_path / "a.json").read_text()
    assert json.loads((tmp_path / "a.json").read_text())["passed"]
    with closing(sqlite3.connect(tmp_path / "kept.db")) as connection:
        assert connection.execute("select requests from hyperscale_runs").fetchall() == [(3,)]


def test_a_url_of_no_reporter_is_refused_before_the_run(target: str, tmp_path: Path) -> None:
    ended = hyperscale("run", f"{target}/json", "-i", 1, "-o", "oracle://a/b", cwd=tmp_path)
    assert_refused(ended, "no reporter for oracle:// URLs")
