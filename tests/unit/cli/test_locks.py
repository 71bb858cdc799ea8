"""The locks of the image hold what the package asks for, each file with its hash, and no more."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def locked(name: str) -> dict[str, list[str]]:
    """Versions by package; each line is followed by its hashes."""
    text = (ROOT / "deploy" / f"{name}.lock").read_text().replace("\\\n", " ")
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        package, version = re.match(r"([\w.-]+)==([\w.]+)", line).groups()  # type: ignore[union-attr]
        assert "--hash=sha256:" in line, package
        found.setdefault(canonicalize_name(package), []).append(version)
    return found


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("cluster", PROJECT["dependencies"]),
        ("scheduler", PROJECT["dependencies"] + EXTRAS["scheduler"]),
        ("build", tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]),
    ],
)
def test_a_lock_keeps_to_what_the_package_asks_for(lock: str, wanted: list[str]) -> None:
    versions = locked(lock)
    for one in map(Requirement, wanted):
        chosen = versions[canonicalize_name(one.name)]
        assert all(one.specifier.contains(version) for version in chosen), one


def test_a_worker_installs_nothing_of_the_scheduler() -> None:
    names = [Requirement(one).name for one in EXTRAS["scheduler"]]
    assert {*names, "starlette", "hiredis"} - set(locked("scheduler")) == set()
    # typer brings pydantic along
    assert set(names) & set(locked("cluster")) <= {"pydantic"}
