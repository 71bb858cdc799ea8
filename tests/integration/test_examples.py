"""Every example runs as its own docstring says, against the embedded target."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.cli.program import environment, hyperscale

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(file.name for file in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", FILES)
def test_example_runs(name: str, target: str, tmp_path: Path) -> None:
    ended = hyperscale(
        "run", EXAMPLES / name, "-d", "2s", "-w", 1, "-o", "out.json", cwd=tmp_path, TARGET=target
    )
    assert ended.code == 0, ended
    results = json.loads((tmp_path / "out.json").read_text())
    assert results["warnings"] == []
    for workflow in results["workflows"]:
        assert workflow["error"] == ""
        for step in workflow["steps"]:
            assert step["count"] > 0, step["name"]
            assert step["failed"] == 0, step["errors"]


def test_slo_is_judged(target: str, tmp_path: Path) -> None:
    words = ("run", EXAMPLES / "slo.py", "-d", "1s", "-w", 1, "-e", "SLO_PATH=/delay/80")
    assert hyperscale(*words, cwd=tmp_path, TARGET=target).code == 99


def test_pytest_runs_the_pytest_example(target: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull,
         "--rootdir", str(tmp_path), str(EXAMPLES / "test_with_pytest.py")],
        cwd=tmp_path,
        env=environment(TARGET=target),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 passed" in ended.stdout
