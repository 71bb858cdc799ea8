"""Several files as one argument: all beneath a directory, or those that fit a pattern.

They are found and read once, before the clock starts. On a worker of a cluster they are the files
that came with the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePath
from typing import Any

from hyperscale.errors import BadInput
from hyperscale.workload.arguments import File, OptimizedArgument
from hyperscale.workload.files import brought_names, locate

FILES_MAX = 10_000  # a pattern that fits a whole disk is a slip


class FileGlob(OptimizedArgument):
    """Files by a pattern: `"photos/*.jpg"`, or `"photos/**/*.jpg"` with all folders beneath."""

    __slots__ = ()
    accepts = "a pattern of paths"

    @classmethod
    def checked(cls, value: Any) -> str:
        if not isinstance(value, str | Path) or not str(value):
            raise cls.refuse(value)
        return str(value)

    def files(self) -> list[tuple[str, File]]:
        """Each with its name beneath the part of the pattern that has no wildcards."""
        found: list[tuple[str, File]] | None = self.optimized.get("files")
        if found is None:
            found = []
            for name, path in self._found():
                found.append((name, File(path)))
                if len(found) > FILES_MAX:
                    raise BadInput(f"{self!r} has more than {FILES_MAX:,} files")
            if not found:
                raise BadInput(f"{self!r} has no files", "paths count from the current directory")
            self.optimized["files"] = found = sorted(found, key=lambda each: each[0])
        return found

    def _found(self) -> Iterator[tuple[str, str]]:
        base, pattern = self._parts()
        prefix = f"{base}/"
        came = [name for name in brought_names() if fnmatch(name, self._spelled())]
        if came:
            for name in came:
                yield name.removeprefix(prefix), name
            return
        folder = locate(base)
        for path in folder.glob(pattern):
            if path.is_file():
                yield (
                    path.relative_to(folder).as_posix(),
                    (PurePath(base) / path.relative_to(folder)).as_posix(),
                )

    def _parts(self) -> tuple[str, str]:
        parts = PurePath(self.value).parts
        fixed = next((at for at, part in enumerate(parts) if set(part) & set("*?[")), None)
        if fixed is None:
            raise BadInput(f"{self!r} has no wildcard", "write File(...) for one file")
        return PurePath(*parts[:fixed]).as_posix(), "/".join(parts[fixed:])

    def _spelled(self) -> str:
        """As `fnmatch` reads it, for which `*` goes through folders as well."""
        return PurePath(self.value).as_posix().replace("**/", "*")


class Directory(FileGlob):
    """All files beneath a directory."""

    __slots__ = ()
    accepts = "the path of a directory"

    def _parts(self) -> tuple[str, str]:
        folder = PurePath(self.value).as_posix()
        if not locate(folder).is_dir() and not any(
            name.startswith(f"{folder}/") for name in brought_names()
        ):
            raise BadInput(f"{self!r} is not a directory")
        return folder, "**/*"

    def _spelled(self) -> str:
        return f"{PurePath(self.value).as_posix()}/*"
