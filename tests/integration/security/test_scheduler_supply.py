"""What only the scheduler needs is not needed by anybody else."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LIBRARIES = ("fastapi", "starlette", "uvicorn", "pydantic", "redis", "hiredis")
# As if they were not installed: no finder knows them.
WITHOUT = f"""
import sys

class Without:
    def __init__(self, finder):
        self._finder = finder

    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in {LIBRARIES!r}
        return None if hidden else self._finder.find_spec(name, path, target)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
from hyperscale.cli import main
sys.exit(main())
"""


def without(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *words],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("words", [(), ("worker",)])
def test_the_scheduler_names_what_to_install(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = without(tmp_path, "scheduler", *words)
    assert done.returncode == 2, done
    assert "hyperscale-loadtest[scheduler]" in done.stderr
    assert "Traceback" not in done.stderr


def test_everything_else_runs_without(tmp_path: Path) -> None:
    for words, code in (
        (("cron", "0 2 * * *"), 0),
        (("queue", "list", "--url", "http://127.0.0.1:1"), 1),
        (("scheduler", "doctor", "--url", "http://127.0.0.1:1"), 1),
        (("new", "test.py"), 0),
        (("demo", "-d", "1s", "--ui", "none"), 0),
    ):
        done = without(tmp_path, *words)
        assert done.returncode == code, done
        assert "No module named" not in done.stderr
        assert "hyperscale itself failed" not in done.stderr


def test_they_are_an_extra_and_the_tests_have_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    base = " ".join(project["dependencies"])
    assert not [name for name in LIBRARIES if name.replace("_", "-") in base]
    extras = project["optional-dependencies"]
    (uvicorn,) = (one for one in extras["scheduler"] if one.startswith("uvicorn"))
    assert "<" in uvicorn, "private parts of it are used"
    assert any("scheduler" in one for one in extras["test"])
