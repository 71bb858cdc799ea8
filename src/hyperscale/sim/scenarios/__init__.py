"""The scenarios of the house: every module here that defines a `Scenario`."""

from __future__ import annotations

import importlib
import pkgutil

from hyperscale.errors import BadInput
from hyperscale.sim.scenario import Scenario


def scenarios() -> dict[str, type[Scenario]]:
    """All scenarios by name, in order of the names."""
    found: dict[str, type[Scenario]] = {}
    for module in sorted(entry.name for entry in pkgutil.iter_modules(__path__)):
        members = vars(importlib.import_module(f"{__name__}.{module}"))
        for member in members.values():
            if isinstance(member, type) and issubclass(member, Scenario) and "name" in vars(member):
                found[member.name] = member
    return dict(sorted(found.items()))


def find(name: str) -> type[Scenario]:
    known = scenarios()
    if name not in known:
        raise BadInput(f"there is no scenario {name!r}", f"there are: {', '.join(known)}")
    return known[name]
