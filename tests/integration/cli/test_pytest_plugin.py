"""`pytest --hyperscale`: workflows among other tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.integration.cli.program import environment

FILE = """
from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse


class Quick(Workflow):
    vus = 1
    iterations = 3

    @step()
    async def item(self, url: URL = "{target}/json") -> HTTPResponse:
        return await self.client.http.get(url)


class Strict(Quick):
    thresholds = {{"http_req_duration": "p(95)<0.000001"}}


def test_beside() -> None:
    pass
"""


def run_pytest(folder: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *words]
    env = {k: v for k, v in environment().items() if k != "PYTEST_ADDOPTS"}
    ended = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_workflows_are_tests_when_asked_for(target: str, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_shop.py").write_text(FILE.format(target=target))
    code, told = run_pytest(tmp_path, "--hyperscale", "--junit-xml=a.xml")
    assert code == 1, told
    assert "1 failed, 2 passed" in told
    assert "PASSED test_shop.py::Quick" in told
    assert "FAILED test_shop.py::Strict" in told
    assert "http_req_duration 'p(95)<0.000001'" in told
    assert 'name="requests" value="3"' in (tmp_path / "a.xml").read_text()


def test_nobody_makes_load_unasked(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_shop.py").write_text(FILE.format(target="http://127.0.0.1:1"))
    code, told = run_pytest(tmp_path)
    assert (code, "1 passed" in told) == (0, True), told
    code, told = run_pytest(tmp_path, "--hyperscale", "-k", "Quick")
    assert (code, "1 failed, 2 deselected" in told) == (1, True), told
