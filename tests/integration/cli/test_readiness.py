"""HYPERSCALE_READINESS: a run either way, and what a word gets that it does not know."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hyperscale.clients.io.readiness import SETTING
from tests.integration.cli.program import hyperscale, write_workflow
from tests.integration.test_examples import EXAMPLES, requests_in

Stats = Callable[[], dict[str, Any]]
SAYS_WHICH = """
    async def on_start(self) -> None:
        import asyncio
        from hyperscale.clients.io.readiness import Readiness
        await self.client.http.get(f"/{type(Readiness.of(asyncio.get_running_loop())).__name__}")
"""
CLASSES = {"epoll": "EpollReadiness", "asyncio": "LoopReadiness"}


def results_of(folder: Path, file: Path, word: str, target: str) -> dict[str, Any]:
    flags = ("-d", "1s", "-w", 1, "--seed", 1, "-o", "out.json")
    ended = hyperscale("run", file, *flags, cwd=folder, TARGET=target, **{SETTING: word})
    assert ended.code == 0, ended
    results: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return results


@pytest.mark.parametrize("word", list(CLASSES))
@pytest.mark.parametrize("name", ["quickstart.py", "mix.py"])
def test_examples_run_and_count(
    target: str, stats: Stats, tmp_path: Path, word: str, name: str
) -> None:
    results = results_of(tmp_path, EXAMPLES / name, word, target)
    assert results["warnings"] == []
    assert requests_in(results) == stats()["requests"] > 0


@pytest.mark.parametrize("word", list(CLASSES))
def test_generators_heed_it(target: str, tmp_path: Path, word: str) -> None:
    more = f'host = "{target}"\n{SAYS_WHICH}'
    results = results_of(tmp_path, write_workflow(tmp_path, target, more=more), word, target)
    steps = results["workflows"][0]["steps"]
    (start,) = (step for step in steps if step["name"] == "on_start")
    assert [request["name"] for request in start["requests"]] == [f"/{CLASSES[word]}"]


@pytest.mark.parametrize("command", ["run", "ping"])
def test_another_word_is_refused_before_anything_is_sent(
    target: str, stats: Stats, tmp_path: Path, command: str
) -> None:
    what = write_workflow(tmp_path, target) if command == "run" else target
    ended = hyperscale(command, what, cwd=tmp_path, **{SETTING: "select"})
    assert ended.code == 2, ended
    assert ended.errors == [f"{SETTING} is 'select'"]
    assert ended.hints == ["it may be epoll or asyncio"]
    assert "Traceback" not in ended.err + ended.out
    assert stats()["requests"] == 0
