"""From test files to their workflow classes, with every failure told in terms of the file."""

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
from hyperscale.workload.workflow import BadStep, Workflow, has_flow, methods_of

# Files imported by this process: path -> (what the file was like then, its module).
_imported: dict[Path, tuple[tuple[int, int], ModuleType]] = {}


def load_workflows(
    path: str, names: Sequence[str] = (), others: Sequence[str] = ()
) -> list[type[Workflow]]:
    """The workflows defined in a file and `others`, in order; with `names`, those and what they
    depend on, wherever they are.

    A class without any step, or whose name starts with an underscore, is a base for others and
    is left out unless it is named.
    """
    files = list(dict.fromkeys(_existing(each) for each in (path, *others)))
    modules = {file: _import(file) for file in files}
    own = [one for module in modules.values() for one in _workflows_of(module)]
    _refuse_doubles(own)
    if not names:
        for file, module in modules.items():
            if not _workflows_of(module):
                raise _nothing_found(file, _workflows_in(module))
        return own
    every = dict.fromkeys(one for module in modules.values() for one in _workflows_in(module))
    # What a file defines is meant before what another one only imports.
    by_name = {one.__name__: one for one in (*every, *own)}
    chosen: dict[str, None] = {}
    for name in names:
        if name not in by_name:
            raise _unknown(files, name, [one.__name__ for one in own])
        _add_with_dependencies(name, by_name, chosen)
    wanted = {by_name[name] for name in chosen}
    return [workflow for workflow in every if workflow in wanted]


def _workflows_of(module: ModuleType) -> list[type[Workflow]]:
    """Those that are defined there and have steps."""
    return [
        workflow
        for workflow in _workflows_in(module)
        if workflow.__module__ == module.__name__
        and _does_something(workflow)
        and not workflow.__name__.startswith("_")
    ]


def _refuse_doubles(workflows: Iterable[type[Workflow]]) -> None:
    files: dict[str, str] = {}
    for workflow in workflows:
        name, file = workflow.__name__, workflow.__hyperscale_file__
        if files.setdefault(name, file) != file:
            raise BadInput(
                f"{files[name]} and {file} both define a workflow called {name}",
                "give one of them another name",
            )


def _does_something(workflow: type[Workflow]) -> bool:
    return bool(methods_of(workflow)) or has_flow(workflow)


def _existing(path: str) -> Path:
    file = Path(path).expanduser()
    if file.is_dir():
        raise BadInput(f"{path} is a directory", "name a Python file with a workflow in it")
    if not file.exists():
        hint = "'hyperscale new' writes a test file to start from"
        if file.suffix != ".py":
            hint += "; a URL begins with http:// or https://"
        raise BadInput(f"{path} does not exist", hint)
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
    """The file's own name, unless that would hide a module in use: a test called json.py, or one
    called like another test file."""
    name = file.stem
    while name in sys.modules and getattr(sys.modules[name], "__file__", None) != str(file):
        name = f"hyperscale_test_{name}"
    return name


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


def _unknown(files: Sequence[Path], name: str, known: Sequence[str]) -> BadInput:
    close = difflib.get_close_matches(name, known, n=1)
    there = f"there are {', '.join(known)}" if known else "there are none"
    hint = f"did you mean {close[0]}? ({there})" if close else there
    where = " and ".join(file.name for file in files)
    has = "has" if len(files) == 1 else "have"
    return BadInput(f"{where} {has} no workflow called {name}", hint)


def _syntax_error(file: Path, error: SyntaxError) -> BadInput:
    name = Path(error.filename).name if error.filename else file.name
    shown = f": {error.text.strip()}" if error.text else ""
    return BadInput(f"{name} line {error.lineno}: {error.msg}{shown}", "correct that line")


def _import_error(file: Path, error: BaseException) -> BadInput:
    called = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in called if frame.filename == str(file)]
    place = f"{file.name} line {own[-1].lineno}" if own else file.name
    if isinstance(error, BadStep):
        place = f"{Path(error.code.co_filename).name} line {error.code.co_firstlineno}"
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
