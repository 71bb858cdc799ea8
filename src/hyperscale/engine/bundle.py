"""A test made ready to travel: the file, what it imports from beneath its directory, its data.

Imports are read from the source text, so that those inside functions count too. The files keep
their places relative to each other, so that paths made from `__file__` stay true; paths that were
written out are looked up by their text.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from hyperscale.engine.source import (
    AttachedFiles,
    BundleSource,
    ClassSource,
    FileSource,
    PickledSource,
)
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import File
from hyperscale.workload.files import locate
from hyperscale.workload.folders import FileGlob
from hyperscale.workload.given import parts_of
from hyperscale.workload.plan import plan_workflow
from hyperscale.workload.workflow import Workflow, directory_of, feed_of

LARGEST_NAMED = 3


def bundle(source: FileSource | ClassSource) -> BundleSource | PickledSource:
    """The same test in a form that another machine can run; BadInput says what cannot travel."""
    workflows = [parts_of(workflow)[0] for workflow in source.load()]
    named = dict(_named_files(workflows))
    if isinstance(source, ClassSource):
        return source.pickled_with_modules(_pack([], named)[0])
    entries = [Path(path).expanduser().resolve() for path in source.paths]
    code = sorted({file for entry in entries for file in _code_files(entry)})
    for name, path in _file_literals(code):
        named.setdefault(name, path)
    attached, root = _pack(code, named)
    entry, *others = [entry.relative_to(root).as_posix() for entry in entries]
    return BundleSource(attached, entry, source.names, others)


def largest(source: BundleSource | PickledSource) -> str:
    """What takes the most room in it, before it is compressed."""
    files = dict(source.attached.files)
    if isinstance(source, PickledSource):
        files["the workflows"] = source.code
    names = sorted(files, key=lambda name: -len(files[name]))[:LARGEST_NAMED]
    return ", ".join(f"{name} ({len(files[name]) / 1e6:.1f} MB)" for name in names)


def _pack(code: Iterable[Path], named: dict[str, Path]) -> tuple[AttachedFiles, Path]:
    """All files beneath the directory they have in common."""
    paths = [*code, *named.values()]
    if not paths:
        return AttachedFiles(), Path()
    root = Path(os.path.commonpath([path.parent for path in paths]))
    keys = {path: path.relative_to(root).as_posix() for path in paths}
    return AttachedFiles(
        {key: _content(path) for path, key in keys.items()},
        {name: keys[path] for name, path in named.items()},
    ), root


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error


def _named_files(workflows: Iterable[type[Workflow]]) -> Iterator[tuple[str, Path]]:
    """Files that workflows declare: data, File, Directory and FileGlob arguments, certificates."""
    for workflow in workflows:
        feed = feed_of(workflow)
        if feed is not None and isinstance(feed.source, (str, Path)):
            yield str(feed.source), _absolute(locate(str(feed.source), directory_of(workflow)))
        plan = plan_workflow(workflow)
        for step in plan.steps:
            for argument in step.optimized.values():
                if isinstance(argument, File):
                    yield argument.value, _absolute(locate(argument.value))
                elif isinstance(argument, FileGlob):
                    for _, one in argument.files():
                        yield one.value, _absolute(locate(one.value))
        for name, file in plan.http.files():
            if Path(file).is_dir():
                raise BadInput(
                    f"{workflow.__name__}: http.{name} is the directory {file}, which cannot be "
                    "sent to other machines",
                    "name one PEM file",
                )
            yield file, _absolute(Path(file))


def _absolute(path: Path) -> Path:
    """Links to directories followed, a link to the file itself not: its name must stay."""
    return path.parent.resolve() / path.name


def _code_files(entry: Path) -> set[Path]:
    """The test file and all it imports from beneath its directory, directly or not."""
    found: set[Path] = set()
    waiting = [entry]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        waiting += _imported(file, entry.parent)
    return found


def _imported(file: Path, home: Path) -> Iterator[Path]:
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _modules(home, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = home if not node.level else [file, *file.parents][node.level]
            module = f"{node.module}." if node.module else ""
            for alias in node.names:
                yield from _modules(base, module + alias.name)


def _modules(base: Path, dotted: str) -> Iterator[Path]:
    """Files that `import dotted` may read beneath `base`; the last name may be no module."""
    place = base
    for name in dotted.split("."):
        place = place / name
        if place == base / "hyperscale":
            return
        for file in (place.with_name(f"{name}.py"), place / "__init__.py"):
            if file.is_file():
                yield file


def _file_literals(code: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Files named in calls of `File("...")`; one that is not there may never be asked for."""
    for file in code:
        for node in ast.walk(_tree(file)):
            if isinstance(node, ast.Call) and node.args and _called(node.func) == File.__name__:
                argument = node.args[0]
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    path = locate(argument.value)
                    if path.is_file():
                        yield argument.value, _absolute(path)


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _tree(file: Path) -> ast.Module:
    try:
        return ast.parse(_content(file), str(file))
    except SyntaxError as error:
        raise BadInput(f"{file.name} line {error.lineno}: {error.msg}", "correct it") from error
