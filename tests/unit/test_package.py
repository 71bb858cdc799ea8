"""Every module of the package is reached from one of its doors: what nobody runs is not in it."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import hyperscale
from hyperscale.cli.commands import GROUPS
from hyperscale.reporting.registry import ENTRIES

ROOT = Path(hyperscale.__file__).parent
DOORS = (
    "hyperscale",
    "hyperscale.__main__",
    "hyperscale.client",
    "hyperscale.core",
    "hyperscale.graph",
    "hyperscale.local",
    "hyperscale.pytest_plugin",
    "hyperscale.reporting",
    "hyperscale.scheduler",
    "hyperscale.target.__main__",
    "hyperscale.testing",
    *(f"hyperscale.cli.{module}" for group in GROUPS.values() for module in group.values()),
    # `reporting.registry` names them by a word.
    *(f"hyperscale.reporting.backends.{entry.module}" for entry in ENTRIES.values()),
    # `hyperscale sim` looks for scenarios in their folder.
    *(
        f"hyperscale.sim.scenarios.{path.stem}"
        for path in (ROOT / "sim/scenarios").glob("*.py")
        if "(Scenario):" in path.read_text()
    ),
)


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in ROOT.rglob("*.py")}


def runs(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All of a module but its documentation and what only type checkers read."""
    for node in nodes:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from runs(node.orelse)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield node
            yield from runs(ast.iter_child_nodes(node))


def named_in(name: str) -> Iterator[str]:
    """What a module imports, at its top or later, and the modules it names in texts: those are
    imported by name, run by `python -m` and `python -c`, or read as files beside it."""
    for node in runs(ast.parse(FILES[name].read_text()).body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, "imports are absolute here"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (word for word in node.value.split() if word.startswith("hyperscale"))
            if node.value.endswith(".py"):
                yield f"{name.rpartition('.')[0]}.{node.value[:-3].replace('/', '.')}"


def with_parents(names: Iterable[str]) -> Iterator[str]:
    """Those that are modules, and the packages that are imported before them."""
    for name in names:
        while name:
            if name in FILES:
                yield name
            name = name.rpartition(".")[0]


def reached(doors: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = [*doors]
    while waiting:
        for name in with_parents([waiting.pop()]):
            if name not in found:
                found.add(name)
                waiting += with_parents(named_in(name))
    return found


def test_every_module_is_reached_from_a_door() -> None:
    assert sorted(FILES.keys() - reached(DOORS)) == []


@pytest.mark.parametrize("door", sorted({*DOORS}))
def test_a_door_is_there(door: str) -> None:
    assert door in FILES or importlib.import_module(door)
