"""Every way to import a name leads to the same object, and opening the package is cheap."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hyperscale
from hyperscale import local
from hyperscale.workload import arguments, hook_types, hooks, responses, workflow

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("hyperscale.graph", ["Workflow", "step", "action", "depends"]),
        ("hyperscale", ["Workflow", "depends", "state", "step", "Provide", "Use"]),
        (
            "hyperscale.testing",
            ["URL", "Headers", "Data", "Params", "Cookies", "Auth", "File", "HTTPResponse"],
        ),
        ("hyperscale.core.hooks", ["Provide", "Use", "Hook", "HookType"]),
        ("hyperscale.core.graph", ["Workflow"]),
        ("hyperscale.core.testing.models.url.url", ["URL"]),
        ("hyperscale.core.jobs.runner.local_runner", ["LocalRunner"]),
    ],
)
def test_identical_objects(module: str, names: list[str]) -> None:
    for name in names:
        homes = [
            home
            for home in (workflow, hooks, hook_types, arguments, responses, local)
            if hasattr(home, name)
        ]
        assert getattr(importlib.import_module(module), name) is getattr(homes[0], name)


def test_every_public_name_resolves() -> None:
    for name in hyperscale.__all__:
        assert getattr(hyperscale, name) is not None
    assert set(hyperscale.__all__) <= set(dir(hyperscale))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hyperscale.nothing  # noqa: B018


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert hyperscale.__version__ == project["version"]


def test_writing_a_test_needs_no_heavy_library() -> None:
    heavy = (
        "numpy",
        "rich",
        "typer",
        "ssl",
        "pydantic",
        "brotli",
        "zstandard",
        "cloudpickle",
        "parsel",
    )
    program = (
        "import sys, hyperscale.graph, hyperscale.testing; hyperscale.Workflow;"
        f"print(sorted(set(sys.modules) & set({heavy!r})))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert answer.stdout.strip() == "[]"
