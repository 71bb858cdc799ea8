"""From a test file to its workflow classes, with every failure told in terms of that file."""

from __future__ import annotations

import difflib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

from hyperscale.errors import BadInput
from hyperscale.workload import frames
from hyperscale.workload.hooks import DEPENDS
from hyperscale.workload.workflow import Workflow, has_flow, methods_of

# Files imported by this process: path -> (what the file was like then, its module).
_imported: dict[Path, tuple[tuple[int, int], ModuleType]] = {}


def load_workflows(path: str, names: Sequence[str] = ()) -> list[type[Workflow]]:
    """The workflows defined in a file, in order; with `names`, those and what they depend on.

    A class without any step, or whose name starts with an underscore, is a base for others and
    is left out unless it is named.
    """
    file = _existing(path)
    module = _import(file)
    every = _workflows_in(module)
    own = [
        workflow
        for workflow in every
        if workflow.__module__ == module.__name__
        and _does_something(workflow)
        and not workflow.__name__.startswith("_")
    ]
    if not names:
        if not own:
            raise _nothing_found(file, every)
        return own
    by_name = {workflow.__name__: workflow for workflow in every}
    chosen: dict[str, None] = {}
    for name in names:
        if name not in by_name:
            raise _unknown(file, name, [workflow.__name__ for workflow in own])
        _add_with_dependencies(name, by_name, chosen)
    return [workflow for workflow in every if workflow.__name__ in chosen]


def _does_something(workflow: type[Workflow]) -> bool:
    return bool(methods_of(workflow)) or has_flow(workflow)


def _existing(path: str) -> Path:
    file = Path(path).expanduser()
    if file.is_dir():
        raise BadInput(f"{path} is a directory", "name a Python file with a workflow in it")
    if not file.exists():
        raise BadInput(
            f"{path} does not exist", "'hyperscale new' writes a test file to start from"
        )
    if file.suffix != ".py":
        raise BadInput(f"{path} is not a Python file", "the name of a test file ends in .py")
    return file.resolve()


def _import(file: Path) -> ModuleType:
    try:
        facts = file.stat()
        stamp = (facts.st_mtime_ns, facts.st_size)
        if file in _imported and _imported[file][0] == stamp:
            return _imported[file][1]
        module = _execute(file)
    except OSError as error:
        raise BadInput(f"{file.name} cannot be read: {error.strerror or error}") from error
    _imported[file] = (stamp, module)
    return module


def _execute(file: Path) -> ModuleType:
    directory = str(file.parent)
    if directory in sys.path:
        sys.path.remove(directory)
    sys.path.insert(0, directory)
    name = _module_name(file)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        del sys.modules[name]
        raise _syntax_error(file, error) from error
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _import_error(file, error) from error
    return module


def _module_name(file: Path) -> str:
    """The file's own name, unless that would hide a module in use (a test called json.py)."""
    present = sys.modules.get(file.stem)
    if present is None or getattr(present, "__file__", None) == str(file):
        return file.stem
    return f"hyperscale_test_{file.stem}"


def _workflows_in(module: ModuleType) -> list[type[Workflow]]:
    found = dict.fromkeys(
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Workflow) and value is not Workflow
    )
    return list(found)


def _add_with_dependencies(
    name: str, by_name: dict[str, type[Workflow]], chosen: dict[str, None]
) -> None:
    if name in chosen or name not in by_name:
        return
    chosen[name] = None
    for dependency in vars(by_name[name]).get(DEPENDS, ()):
        _add_with_dependencies(dependency, by_name, chosen)


def _nothing_found(file: Path, every: Iterable[type[Workflow]]) -> BadInput:
    bare = [workflow.__name__ for workflow in every if not _does_something(workflow)]
    if bare:
        return BadInput(
            f"{bare[0]} in {file.name} has no steps",
            "decorate an async method with @step() and annotate it '-> HTTPResponse'",
        )
    return BadInput(
        f"{file.name} defines no workflow",
        "write a class that derives from Workflow; 'hyperscale new' shows one",
    )


def _unknown(file: Path, name: str, known: Sequence[str]) -> BadInput:
    close = difflib.get_close_matches(name, known, n=1)
    there = f"there are {', '.join(known)}" if known else "there are none"
    hint = f"did you mean {close[0]}? ({there})" if close else there
    return BadInput(f"{file.name} has no workflow called {name}", hint)


def _syntax_error(file: Path, error: SyntaxError) -> BadInput:
    name = Path(error.filename).name if error.filename else file.name
    shown = f": {error.text.strip()}" if error.text else ""
    return BadInput(f"{name} line {error.lineno}: {error.msg}{shown}", "correct that line")


def _import_error(file: Path, error: BaseException) -> BadInput:
    called = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in called if frame.filename == str(file)]
    place = f"{file.name} line {own[-1].lineno}" if own else file.name
    if isinstance(error, BadInput):
        return BadInput(f"{place}: {error.message}", error.hint)
    if isinstance(error, SystemExit):
        return BadInput(
            f"{place}: the file ends the program when it is imported",
            "put what should only run as a script under if __name__ == '__main__':",
        )
    hint = "the file is imported to find its workflows; --debug shows the whole traceback"
    if isinstance(error, ModuleNotFoundError):
        hint = f"install {error.name} in the environment that hyperscale runs in"
    hint = frames.variable_hint(error) or hint
    return BadInput(f"{place}: {type(error).__name__}: {error}", hint)
