"""Where the test's code comes from, in a form that reaches the generator processes.

A file is imported again in each process, so that anything it opens at import time works; classes
made elsewhere (a notebook, a pytest module) travel pickled by value. For another machine a file
becomes a bundle with all it needs (`engine.bundle`). Only a generator process ever unpickles.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hyperscale.engine import unpacking
from hyperscale.errors import BadInput
from hyperscale.workload.files import bring
from hyperscale.workload.given import AnyWorkflow, DependentWorkflow, class_of
from hyperscale.workload.plan import Overrides

if TYPE_CHECKING:
    from hyperscale.workload.workflow import Workflow


class FileSource(msgspec.Struct, frozen=True, tag="file"):
    path: str
    names: list[str] = []
    others: list[str] = []  # further files of the same test

    @property
    def paths(self) -> list[str]:
        return [self.path, *self.others]

    def load(self) -> list[type[Workflow]]:
        from hyperscale.workload.loading import load_workflows

        return load_workflows(self.path, self.names, self.others)


class AttachedFiles(msgspec.Struct, frozen=True):
    """Files that come along, by a path beneath some root, and what the test calls them."""

    files: dict[str, bytes] = {}
    names: dict[str, str] = {}  # as the test writes it -> key of `files`

    def unpack(self) -> Path:
        root = unpacking.unpack(self.files)
        bring({name: root / file for name, file in self.names.items()})
        return root


class PickledSource(msgspec.Struct, frozen=True, tag="pickled"):
    code: bytes
    import_path: list[str]
    attached: AttachedFiles = AttachedFiles()

    def load(self) -> list[AnyWorkflow]:
        import cloudpickle

        if self.attached.files:
            self.attached.unpack()
        sys.path[:0] = [entry for entry in self.import_path if entry not in sys.path]
        try:
            workflows: list[AnyWorkflow] = cloudpickle.loads(self.code)
        except ModuleNotFoundError as error:
            raise BadInput(
                f"the workflows need the module {error.name}, which is not installed here",
                "install it on every worker, or put the workflows in a file and submit that",
            ) from error
        return workflows


class BundleSource(msgspec.Struct, frozen=True, tag="bundle"):
    """Test files with the modules and files they need, for a machine that has none of them."""

    attached: AttachedFiles
    entry: str  # the test file among them
    names: list[str] = []
    others: list[str] = []  # further test files among them

    def load(self) -> list[type[Workflow]]:
        root = self.attached.unpack()
        entry = root / self.entry
        os.chdir(entry.parent)
        others = [str(root / other) for other in self.others]
        return FileSource(str(entry), self.names, others).load()


Source = FileSource | PickledSource | BundleSource


_sources: msgspec.msgpack.Decoder[Source] = msgspec.msgpack.Decoder(Source)


# Data files travel with a test and shrink a lot; a small test is not worth the time.
PACK_FROM_BYTES = 64 << 10
# What the smallest frame may claim; a hundred times the largest submission is no test.
UNPACKED_BYTES_MAX = 512 << 20
_PACKED = b"\x28\xb5\x2f\xfd"  # how every zstandard frame begins; no source does


def encode_source(source: Source) -> bytes:
    data = msgspec.msgpack.encode(source)
    if len(data) < PACK_FROM_BYTES or isinstance(source, FileSource):
        return data
    import zstandard

    return zstandard.compress(data)


def decode_source(data: bytes) -> Source:
    """Raises BadInput for what `encode_source` has not made."""
    try:
        if data.startswith(_PACKED):
            import zstandard

            try:
                if zstandard.frame_content_size(data) > UNPACKED_BYTES_MAX:
                    raise ValueError(f"it has more than {UNPACKED_BYTES_MAX:,} bytes")
                data = zstandard.decompress(data)
            except zstandard.ZstdError as error:
                raise ValueError(str(error)) from None
        return _sources.decode(data)
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadInput(f"the test's code arrived damaged: {error}", "submit it again") from None


def encode_overrides(overrides: Overrides) -> bytes:
    return msgspec.msgpack.encode(overrides)


def decode_overrides(data: bytes) -> Overrides:
    return msgspec.msgpack.decode(data, type=Overrides)


class ClassSource:
    """Workflows of the running program: classes, instances, either with dependencies."""

    def __init__(self, *workflows: AnyWorkflow) -> None:
        self.workflows = list(workflows)
        self._classes = [class_of(workflow) for workflow in workflows]

    def load(self) -> list[AnyWorkflow]:
        return self.workflows

    def pickled(self) -> PickledSource:
        """For a process on this machine, which finds the same modules installed."""
        names = {workflow.__module__ for workflow in self._classes}
        return PickledSource(self._code(names), [entry for entry in sys.path if entry])

    def pickled_with_modules(self, attached: AttachedFiles) -> PickledSource:
        """For another machine: modules beside those of the workflows travel with them."""
        return PickledSource(self._code(self._own_modules()), [], attached)

    def identity(self) -> bytes:
        """The same for the same text, whichever process read it."""
        from hyperscale.engine.identity import identity_of

        given = [w.workflow if isinstance(w, DependentWorkflow) else w for w in self.workflows]
        unnamed = {w.__module__ for w in self._classes} - sys.modules.keys()
        return identity_of(given, self._own_modules() | unnamed | {"__main__"})

    def _own_modules(self) -> set[str]:
        """Those of the workflows, and those beside them."""
        modules = [sys.modules[w.__module__] for w in self._classes if w.__module__ in sys.modules]
        files = [file for m in modules if (file := getattr(m, "__file__", None))]
        homes = {Path(file).resolve().parent for file in files}
        near = {
            name
            for name, module in list(sys.modules.items())
            if (file := getattr(module, "__file__", None)) and _is_near(Path(file), homes)
        }
        return near | {module.__name__ for module in modules}

    def _code(self, modules: set[str]) -> bytes:
        """The classes, with what is defined in `modules` by value and the rest by name."""
        import cloudpickle

        own = [
            sys.modules[name]
            for name in sorted(modules)
            if name in sys.modules and name.split(".")[0] != "hyperscale"
        ]
        for module in own:
            cloudpickle.register_pickle_by_value(module)
        try:
            code: bytes = cloudpickle.dumps(self.workflows)
        except Exception as error:
            names = ", ".join(w.__name__ for w in self._classes)
            raise BadInput(
                f"{names} cannot be sent to the generator processes: {error}",
                "create connections, locks and files inside setup() or a step, "
                "not at module level or as attributes",
            ) from error
        finally:
            for module in own:
                cloudpickle.unregister_pickle_by_value(module)
        return code


def _is_near(file: Path, homes: set[Path]) -> bool:
    installed = {"site-packages", "dist-packages"} & set(file.parts)
    return not installed and any(home in file.parents for home in homes)
