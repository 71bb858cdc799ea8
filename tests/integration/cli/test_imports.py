"""Test files made of what others recorded: they read as written by hand, and run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.program import assert_refused, hyperscale

DATA = Path(__file__).parents[2] / "data"
Stats = Callable[[], dict[str, Any]]
# What each of the embedded target's paths is asked for by one iteration.
ASKED = {
    "shop.har": {
        "/redirect/1": 1, "/redirect/0": 1, "/bytes/900": 1, "/bytes/1800": 1, "/form": 1,
        "/login": 1, "/me": 1, "/items": 2, "/items/41": 1,
    },
    "shop.postman_collection.json": {"/login": 1, "/me": 1, "/items": 2, "/items/1": 1, "/echo": 1},
    "shop.openapi.yaml": {"/items": 2, "/items/1": 1, "/login": 1},
    "shop.curl": {
        "/": 1, "/login": 1, "/me": 1, "/items": 2, "/echo": 1, "/items/7": 1, "/items/8": 1,
    },
}  # fmt: skip


def ruff(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ruff", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", [*ASKED, "shop_access.log"])
def test_it_reads_as_written_by_hand_and_runs(
    name: str, target: str, stats: Stats, tmp_path: Path
) -> None:
    made = hyperscale("new", "shop.py", "--from", DATA / name, "--assets", cwd=tmp_path)
    assert made.code == 0, made
    file = tmp_path / "shop.py"
    for width in (88, 100):
        laid_out = ruff("format", "--isolated", "--diff", f"--line-length={width}", file)
        assert laid_out.returncode == 0, laid_out.stdout
    assert ruff("check", "--isolated", "--select=E4,E7,E9,F,I,W,UP,B", file).returncode == 0

    ended = hyperscale("run", "shop.py", "--once", "--host", target, "-o", "out.json", cwd=tmp_path)
    assert ended.code == 0, ended
    results = json.loads((tmp_path / "out.json").read_text())
    (workflow,) = results["workflows"]
    assert results["warnings"] == []
    assert all(step["failed"] == 0 for step in workflow["steps"])
    if name in ASKED:
        assert stats()["paths"] == ASKED[name]


def test_the_file_is_named_after_what_it_was_made_of(tmp_path: Path) -> None:
    made = hyperscale("new", "--from", DATA / "shop.har", cwd=tmp_path)
    assert "wrote shop.py" in made.out
    assert "left out 2 static assets; --assets keeps them" in made.out
    assert "fonts.example (1), metrics.example (1)" in made.out
    assert "/bytes/" not in (tmp_path / "shop.py").read_text()
    again = hyperscale("new", "--from", DATA / "shop.har", cwd=tmp_path)
    assert_refused(again, "shop.py exists already")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("once upon a time", "none of the files a test can be made of"),
        ("{", "is not JSON"),
        ('{"log": {"entries": []}}', "has no request that a test could make"),
        ('{"log": {"entries": [{}]}}', "something in it is not as its format has it"),
        ('{"swagger": "2.0", "paths": {}}', "OpenAPI 2.0, and only 3.x is read"),
        ("curl 'http://a/", "the curl commands cannot be read"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_text(text)
    assert_refused(hyperscale("new", "--from", "given.txt", cwd=tmp_path), said)
    assert not (tmp_path / "given.py").exists()
