"""Import paths of an older release that existing tests use, as aliases of where the names live.

    from hyperscale.core.hooks import Provide      is      from hyperscale.workload.hooks import ...

The paths are modules made here; each imports its home when a name is asked for, so that a path to
a hook does not import the engine. New tests use `hyperscale`, `hyperscale.graph` and
`hyperscale.testing`.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any, Final

ALIASES: Final = {
    "graph": "hyperscale.graph",
    "hooks": "hyperscale.workload.hooks",
    "jobs.runner.local_runner": "hyperscale.local",
    "testing.models.url.url": "hyperscale.workload.arguments",
}


class _Alias(ModuleType):
    """Of a module, or of a package on the way to one."""

    def __getattr__(self, name: str) -> Any:
        home = self.__dict__.get("_home")
        if home and name == "__all__":
            return [public for public in vars(importlib.import_module(home)) if public[0] != "_"]
        if not home or name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(home), name)


def _install() -> None:
    """An import finds a module in `sys.modules` once its parents are imported, and this one is a
    parent of all of them."""
    for path, home in ALIASES.items():
        parent = sys.modules[__name__]
        for part in path.split("."):
            name = f"{parent.__name__}.{part}"
            module = sys.modules.setdefault(name, _Alias(name, __doc__))
            setattr(parent, part, module)
            parent = module
        parent.__dict__["_home"] = home


_install()
