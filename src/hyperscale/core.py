"""Import paths of an older release that existing tests use, as aliases of where the names live.

    from hyperscale.core.hooks import Provide      is      from hyperscale.workload.hooks import ...

The paths are modules made here; each imports its homes when a name is asked for, so that a path to
a hook does not import the engine. New tests use `hyperscale`, `hyperscale.graph` and
`hyperscale.testing`.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any, Final

ALIASES: Final = {
    "graph": ("hyperscale.graph",),
    "hooks": ("hyperscale.workload.hooks", "hyperscale.workload.hook_types"),
    "jobs.runner.local_runner": ("hyperscale.local",),
    "testing.models.url.url": ("hyperscale.workload.arguments",),
}


class _Alias(ModuleType):
    """Of a module, or of a package on the way to one."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)  # asked by those who look through all modules
        homes = [importlib.import_module(home) for home in self.__dict__.get("homes", ())]
        if name == "__all__":
            return [public for home in homes for public in vars(home) if public[0] != "_"]
        found = [home for home in homes if hasattr(home, name)]
        if not found:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(found[0], name)


def _install() -> None:
    """An import finds a module in `sys.modules` once its parents are imported, and this one is a
    parent of all of them."""
    for path, homes in ALIASES.items():
        parent = sys.modules[__name__]
        for part in path.split("."):
            name = f"{parent.__name__}.{part}"
            module = sys.modules.setdefault(name, _Alias(name, __doc__))
            setattr(parent, part, module)
            parent = module
        parent.__dict__["homes"] = homes


_install()
