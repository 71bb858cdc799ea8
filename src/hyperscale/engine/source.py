"""Where the test's code comes from, in a form that reaches the generator processes.

A file is imported again in each process, so that anything it opens at import time works; classes
made elsewhere (a notebook, a pytest module) travel pickled by value. Only a generator process
ever unpickles.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from hyperscale.errors import BadInput

if TYPE_CHECKING:
    from hyperscale.workload.workflow import Workflow


class FileSource(msgspec.Struct, frozen=True, tag="file"):
    path: str
    names: list[str] = []

    def load(self) -> list[type[Workflow]]:
        from hyperscale.workload.loading import load_workflows

        return load_workflows(self.path, self.names)


class PickledSource(msgspec.Struct, frozen=True, tag="pickled"):
    code: bytes
    import_path: list[str]

    def load(self) -> list[type[Workflow]]:
        import cloudpickle

        sys.path[:0] = [entry for entry in self.import_path if entry not in sys.path]
        workflows: list[type[Workflow]] = cloudpickle.loads(self.code)
        return workflows


Source = FileSource | PickledSource


class ClassSource:
    """Workflow classes of the running program."""

    def __init__(self, *workflows: type[Workflow]) -> None:
        self.workflows = list(workflows)

    def load(self) -> list[type[Workflow]]:
        return self.workflows

    def pickled(self) -> PickledSource:
        import cloudpickle

        modules = {sys.modules[w.__module__] for w in self.workflows if w.__module__ in sys.modules}
        own = [m for m in modules if m.__name__.split(".")[0] != "hyperscale"]
        for module in own:
            cloudpickle.register_pickle_by_value(module)
        try:
            code = cloudpickle.dumps(self.workflows)
        except Exception as error:
            names = ", ".join(w.__name__ for w in self.workflows)
            raise BadInput(
                f"{names} cannot be sent to the generator processes: {error}",
                "create connections, locks and files inside setup() or a step, "
                "not at module level or as class attributes",
            ) from error
        finally:
            for module in own:
                cloudpickle.unregister_pickle_by_value(module)
        return PickledSource(code, [entry for entry in sys.path if entry])
