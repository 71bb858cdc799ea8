"""Generator processes started before the run: used when they fit it, never left behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from hyperscale.engine.run import LocalRun, RunOptions
from hyperscale.engine.source import FileSource
from hyperscale.engine.spawning import EarlyChildren
from hyperscale.workload.plan import Overrides

TEST = """
import os
from hyperscale import CustomResult, Workflow, step

class Prints(Workflow):
    vus = 2
    iterations = 2

    @step()
    async def look(self) -> CustomResult:
        print("color", os.environ.get("COLOR"))
        return CustomResult()
"""


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    (tmp_path / "prints.py").write_text(TEST)
    return FileSource(str(tmp_path / "prints.py"))


@pytest.fixture
def children() -> Callable[[], set[int]]:
    """The processes started since."""

    def now() -> set[int]:
        return {child.pid for child in psutil.Process().children()}

    before = now()
    return lambda: now() - before


def test_as_many_as_needed_are_used_and_the_others_end(
    source: FileSource, children: Callable[[], set[int]]
) -> None:
    early = EarlyChildren(3, os.environ)
    started = children()
    run = LocalRun(source, Overrides(), RunOptions(workers=2), early)
    try:
        assert len(started) == 3
        assert len(run.generator_pids) == 2
        assert set(run.generator_pids) < started
        assert children() == set(run.generator_pids)
    finally:
        run.abandon()
    assert not children()


def test_more_are_started_where_those_are_too_few(
    source: FileSource, children: Callable[[], set[int]]
) -> None:
    early = EarlyChildren(1, os.environ)
    (only,) = children()
    run = LocalRun(source, Overrides(), RunOptions(workers=2), early)
    assert only in run.generator_pids
    assert len(run.generator_pids) == 2
    run.abandon()


def test_no_more_are_started_than_there_are_users(
    source: FileSource, children: Callable[[], set[int]]
) -> None:
    early = EarlyChildren(1, os.environ)
    run = LocalRun(source, Overrides(vus=1), RunOptions(workers=2), early)
    assert len(run.generator_pids) == len(children()) == 1
    run.abandon()
    run = LocalRun(source, Overrides(vus=1), RunOptions(workers=3))
    assert len(run.generator_pids) == len(children()) == 1
    run.abandon()


def test_what_one_prints_goes_where_the_run_wants_it(
    source: FileSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOR", "red")
    early = EarlyChildren(1, os.environ)
    with (tmp_path / "printed").open("w") as printed:
        run = LocalRun(source, None, RunOptions(workers=1, output=printed.fileno()), early)
        results = asyncio.run(run.execute())
    assert results.passed
    assert (tmp_path / "printed").read_text() == "color red\n" * 2


def test_those_with_another_environment_are_not_used(
    source: FileSource, children: Callable[[], set[int]]
) -> None:
    early = EarlyChildren(1, {**os.environ, "COLOR": "red"})
    started = children()
    run = LocalRun(source, Overrides(), RunOptions(workers=1), early)
    assert not started & set(run.generator_pids)
    assert children() == set(run.generator_pids)
    run.abandon()


def test_those_nobody_takes_end(children: Callable[[], set[int]]) -> None:
    early = EarlyChildren(2, os.environ)
    early.end()
    assert not children()
