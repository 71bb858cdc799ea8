"""Files that a test names, wherever the test runs.

On the author's machine a name is a path. A test that was sent to another machine brings its files
along: there the same names mean the files it brought.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

_brought: dict[str, Path] = {}


def bring(files: Mapping[str, Path]) -> None:
    """From now on, in this process, these names mean these files."""
    _brought.update(files)


def brought(name: str) -> str:
    """Where a file is that the test may have brought along; else the name as it is."""
    return str(_brought.get(name, name))


def brought_names() -> Collection[str]:
    """Of the files that came with a test, as it calls them."""
    return _brought


def locate(name: str, beside: Path | None = None) -> Path:
    """The file of that name: beside the test file first, then from the current directory."""
    if name in _brought:
        return _brought[name]
    path = Path(name).expanduser()
    if beside is not None and not path.is_absolute() and (beside / path).exists():
        return beside / path
    return path
