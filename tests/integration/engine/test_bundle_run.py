"""A test file that runs where none of its files are."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from hyperscale.engine.bundle import bundle
from hyperscale.engine.generators import GeneratorProcess
from hyperscale.engine.part_plan import PartPlan
from hyperscale.engine.part_run import PartRun
from hyperscale.engine.results import aggregate_of
from hyperscale.engine.source import FileSource, encode_overrides, encode_source
from hyperscale.workload.facts import facts_of
from hyperscale.workload.plan import Overrides, plan_workflow

TEST = """
from pathlib import Path

from hyperscale import CustomResult, Workflow, feed, step
from hyperscale.testing import File, HTTPResponse
from greetings import HELLO

BESIDE = Path(__file__).parent / "users.csv"


class Traveller(Workflow):
    vus = 1
    iterations = 3
    data = feed("users.csv", when_done="stop")

    @step()
    async def greet(self, row=None) -> CustomResult:
        from later import check
        check(HELLO, row["user"], BESIDE.read_text())
        return CustomResult()

    @step()
    async def send(self, data: File = "OUTSIDE") -> HTTPResponse:
        return await self.client.http.post("/echo", data=data)
"""
LATER = """
def check(hello, user, beside):
    assert hello == "hello" and user in ("ann", "bob", "cid") and beside.startswith("user")
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the processes unpack; theirs comes from the environment."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


def inside(room: Path) -> list[str]:
    return os.listdir(room)


def packed(tmp_path: Path, target: str) -> tuple[Overrides, bytes, FileSource]:
    author = tmp_path / "author"
    (author / "load").mkdir(parents=True)
    outside = author / "picture.png"
    outside.write_bytes(b"png" * 100)
    path = author / "load/traveller.py"
    path.write_text(TEST.replace("OUTSIDE", str(outside)))
    (author / "load/greetings.py").write_text("HELLO = 'hello'\n")
    (author / "load/later.py").write_text(LATER)
    (author / "load/users.csv").write_text("user\nann\nbob\ncid\n")
    source = FileSource(str(path))
    overrides = Overrides(base_url=target)
    return overrides, encode_source(bundle(source)), source


def test_the_same_file_runs_elsewhere(target: str, tmp_path: Path, room: Path) -> None:
    overrides, source, file = packed(tmp_path, target)
    facts = facts_of(plan_workflow(file.load()[0], overrides))
    shutil.rmtree(tmp_path / "author")

    async def scenario() -> PartRun:
        core = GeneratorProcess()
        await core.open()
        part_plan = PartPlan(
            source=source, overrides=encode_overrides(overrides), total_cores=1, memory_mb=500
        )
        part = PartRun(facts, aggregate_of(facts), [core], part_plan)
        async with asyncio.timeout(30):
            await part.run_load(await part.prepare())
        assert len(inside(room)) == 1
        await part.release()
        await core.close()
        return part

    part = asyncio.run(scenario())
    assert part.outcome == "completed"
    result = part.aggregate.freeze()
    assert (result.iterations, result.requests, result.failed) == (3, 6, 0), result.steps
    assert inside(room) == []


def test_files_of_a_killed_process_go_with_the_next_one(
    target: str, tmp_path: Path, room: Path
) -> None:
    overrides, source, file = packed(tmp_path, target)
    facts = facts_of(plan_workflow(file.load()[0], overrides))
    part_plan = PartPlan(source=source, overrides=encode_overrides(overrides), total_cores=1)

    async def prepared() -> GeneratorProcess:
        core = GeneratorProcess()
        await core.open()
        part = PartRun(facts, aggregate_of(facts), [core], part_plan)
        async with asyncio.timeout(30):
            await part.prepare()
        await part.release()
        return core

    async def scenario() -> None:
        killed = await prepared()
        killed.kill()
        await killed.close()
        (left,) = inside(room)
        core = await prepared()
        assert left not in inside(room)
        await core.close()

    asyncio.run(scenario())
    assert inside(room) == []
