"""The scenarios: every module here that defines a `Scenario`."""

from __future__ import annotations

import importlib
import pkgutil

from hyperscale.errors import BadInput
from hyperscale.sim.scenario import Scenario


def scenarios() -> dict[str, type[Scenario]]:
    """All scenarios by name, in order of the names."""
    found: dict[str, type[Scenario]] = {}
    for module in _modules():
        found.update(_defined_in(module))
    return dict(sorted(found.items()))


def find(name: str) -> type[Scenario]:
    """By name; a scenario that is called like its module costs no other import."""
    known = _defined_in(name) if name in _modules() else {}
    if name not in known:
        known = scenarios()
    if name not in known:
        raise BadInput(f"there is no scenario {name!r}", f"there are: {', '.join(known)}")
    return known[name]


def _modules() -> list[str]:
    return sorted(entry.name for entry in pkgutil.iter_modules(__path__))


def _defined_in(module: str) -> dict[str, type[Scenario]]:
    members = vars(importlib.import_module(f"{__name__}.{module}")).values()
    return {
        member.name: member
        for member in members
        if isinstance(member, type) and issubclass(member, Scenario) and "name" in vars(member)
    }
