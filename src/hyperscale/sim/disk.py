"""The simulated disk: what programs see, and what a power cut leaves of it.

Every file has bytes that are on the platter and bytes that only the page cache holds; every
directory has entries that are durable and changes that are not yet. Pending changes of directories
reach the platter in order, as a journalling file system writes them. After a failed sync the
kernel calls the pages clean although they are not (Linux "fsyncgate"): a later sync succeeds and
the bytes are still lost.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from random import Random
from typing import Literal

SECTOR_BYTES = 512

CrashDisk = Literal["kept", "lost-unsynced", "torn"]


class FileImage:
    """`data` is what programs read. Durable are `data[:stable]`, then `lost_tail`."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.stable = 0
        self.lost_tail = b""
        self.holes: list[tuple[int, int]] = []
        """Ranges that a failed sync left off the platter."""
        self.busy_until = 0.0

    def append(self, data: bytes) -> None:
        self.data += data

    def truncate(self, size: int) -> None:
        if size < self.stable:
            self.lost_tail = bytes(self.data[size : self.stable]) + self.lost_tail
            self.stable = size
        self.data = self.data[:size].ljust(size, b"\0")
        self.holes = [(start, min(end, size)) for start, end in self.holes if start < size]

    def sync(self, size: int) -> None:
        """Everything up to the size the file had when the sync was asked for is durable."""
        size = min(size, len(self.data))
        if size >= self.stable:
            self.stable = size
            self.lost_tail = b""

    def sync_failed(self) -> None:
        if self.stable < len(self.data):
            self.holes.append((self.stable, len(self.data)))

    def durable(self) -> bytes:
        content = self.data[: self.stable] + self.lost_tail
        for start, end in self.holes:
            end = min(end, len(content))
            content[start:end] = bytes(max(0, end - start))
        return bytes(content)

    def crash(self, torn: Random | None) -> bool:
        """Become what the platter holds; whether something was torn."""
        kept, unsynced = self.durable(), bytes(self.data[self.stable :])
        if torn is None or not unsynced or self.holes or (self.lost_tail and torn.random() < 0.5):
            unsynced = b""
        else:
            kept = kept[: self.stable]
            unsynced = _torn(unsynced, torn)
        self.data = bytearray(kept + unsynced)
        self.stable, self.lost_tail, self.holes = len(self.data), b"", []
        self.busy_until = 0.0
        return bool(unsynced)


class DirectoryImage:
    def __init__(self) -> None:
        self.entries: dict[str, FileImage | DirectoryImage] = {}
        self.durable: dict[str, FileImage | DirectoryImage] = {}


Entry = FileImage | DirectoryImage
Change = tuple[DirectoryImage, tuple[tuple[str, Entry | None], ...]]


class DiskImage:
    """The tree, the pending changes of its directories, and the faults it is told to have."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.root = DirectoryImage()
        self.capacity: int | None = None
        self.slow_factor = 1.0
        self.append_errors = 0.0
        self.sync_errors = 0.0
        self.ambush: Callable[[], None] | None = None
        """Called once, at the next write: the moment at which a power cut hurts."""
        self._pending: list[Change] = []

    # -- names --------------------------------------------------------------------------------

    def find(self, path: str) -> Entry:
        entry: Entry = self.root
        for part in parts_of(path):
            if not isinstance(entry, DirectoryImage) or part not in entry.entries:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            entry = entry.entries[part]
        return entry

    def file(self, path: str) -> FileImage:
        entry = self.find(path)
        if isinstance(entry, DirectoryImage):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return entry

    def directory(self, path: str) -> DirectoryImage:
        entry = self.find(path)
        if isinstance(entry, FileImage):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return entry

    def create(self, path: str) -> FileImage:
        parent, name = self._parent(path)
        if name not in parent.entries:
            self._change(parent, ((name, FileImage()),))
        return self.file(path)

    def make_directory(self, path: str) -> None:
        here = self.root
        for part in parts_of(path):
            if part not in here.entries:
                self._change(here, ((part, DirectoryImage()),))
            entry = here.entries[part]
            if isinstance(entry, FileImage):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            here = entry

    def rename(self, old: str, new: str) -> None:
        entry = self.find(old)
        (source, old_name), (target, new_name) = self._parent(old), self._parent(new)
        if isinstance(target.entries.get(new_name), DirectoryImage):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), new)
        if source is target:
            self._change(source, ((old_name, None), (new_name, entry)))
        else:
            self._change(target, ((new_name, entry),))
            self._change(source, ((old_name, None),))

    def remove(self, path: str) -> None:
        self.file(path)
        parent, name = self._parent(path)
        self._change(parent, ((name, None),))

    def sync_directory(self, path: str) -> None:
        directory = self.directory(path)
        directory.durable = dict(directory.entries)
        self._pending = [change for change in self._pending if change[0] is not directory]

    # -- what happens to it -------------------------------------------------------------------

    @property
    def used_bytes(self) -> int:
        return sum(len(file.data) for _, file in self.files())

    def files(self) -> Iterator[tuple[str, FileImage]]:
        """Every file with its path, in order of the paths."""
        yield from _walk(self.root, "")

    def durable(self, path: str) -> bytes | None:
        """What a power cut right now would leave of a file; None when it would be gone."""
        entry: Entry = self.root
        for part in parts_of(path):
            if not isinstance(entry, DirectoryImage) or part not in entry.durable:
                return None
            entry = entry.durable[part]
        return entry.durable() if isinstance(entry, FileImage) else None

    def crash(self, disk: CrashDisk) -> int:
        """Lose what a power cut loses; how many files were torn."""
        if disk == "kept":
            return 0
        torn = self.random if disk == "torn" else None
        survivors = 0 if torn is None else torn.randint(0, len(self._pending))
        for directory, names in self._pending[:survivors]:
            _apply(directory.durable, names)
        self._pending = []
        _forget_unsynced(self.root)
        return sum(file.crash(torn) for _, file in self.files())

    def rot(self) -> tuple[str, int] | None:
        """Flip one durable bit; which file and which byte, None when there is nothing to rot."""
        candidates = [(path, file) for path, file in self.files() if file.stable]
        if not candidates:
            return None
        path, file = self.random.choice(candidates)
        index = self.random.randrange(file.stable)
        file.data[index] ^= 1 << self.random.randrange(8)
        return path, index

    def written(self) -> None:
        if self.ambush is not None:
            ambush, self.ambush = self.ambush, None
            ambush()

    def heal(self) -> None:
        self.ambush = None
        self.capacity, self.slow_factor = None, 1.0
        self.append_errors = self.sync_errors = 0.0

    def _change(
        self, directory: DirectoryImage, names: tuple[tuple[str, Entry | None], ...]
    ) -> None:
        _apply(directory.entries, names)
        self._pending.append((directory, names))
        self.written()

    def _parent(self, path: str) -> tuple[DirectoryImage, str]:
        *parents, name = parts_of(path) or [""]
        if not name:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return self.directory("/".join(parents)), name


def parts_of(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise ValueError(f"{path!r} is not a path inside the data directory")
    return parts


def _apply(entries: dict[str, Entry], names: tuple[tuple[str, Entry | None], ...]) -> None:
    for name, entry in names:
        if entry is None:
            entries.pop(name, None)
        else:
            entries[name] = entry


def _walk(directory: DirectoryImage, prefix: str) -> Iterator[tuple[str, FileImage]]:
    for name, entry in sorted(directory.entries.items()):
        if isinstance(entry, FileImage):
            yield prefix + name, entry
        else:
            yield from _walk(entry, f"{prefix}{name}/")


def _forget_unsynced(directory: DirectoryImage) -> None:
    directory.entries = dict(directory.durable)
    for entry in directory.entries.values():
        if isinstance(entry, DirectoryImage):
            _forget_unsynced(entry)


def _torn(unsynced: bytes, random: Random) -> bytes:
    """A prefix survives; sometimes one of its sectors holds something else."""
    left = bytearray(unsynced[: random.randint(0, len(unsynced))])
    if left and random.random() < 0.3:
        start = random.randrange(0, len(left), SECTOR_BYTES)
        size = min(SECTOR_BYTES, len(left) - start)
        left[start : start + size] = random.choice((bytes(size), random.randbytes(size)))
    return bytes(left)
