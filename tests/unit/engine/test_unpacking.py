"""The directory of a test that came from elsewhere: private, locked, never left for good."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from hyperscale.engine import unpacking
from hyperscale.errors import BadInput


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    unpacking.remove()


def test_files_are_in_place_and_private() -> None:
    root = unpacking.unpack({"a/b.py": b"b", "c.csv": b"c"})
    assert (root / "a/b.py").read_bytes() == b"b"
    assert (root / "c.csv").read_bytes() == b"c"
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    unpacking.remove()
    assert not root.exists()


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", "", ".lock"])
def test_nothing_is_written_outside(name: str, room: Path) -> None:
    with pytest.raises(BadInput, match="cannot be unpacked"):
        unpacking.unpack({"ok": b"", name: b"x"})
    assert list(room.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(room: Path) -> None:
    left = room / "hyperscale-test-left"
    left.mkdir()
    (left / ".lock").write_bytes(b"")
    new = room / "hyperscale-test-new"  # its maker has not locked it yet
    new.mkdir()
    old = room / "hyperscale-test-old"
    old.mkdir()
    os.utime(old, (0, 0))
    first = unpacking.unpack({"x": b""})
    second = unpacking.unpack({"x": b""})
    assert {first, second, new} == set(room.iterdir())


def test_a_directory_that_was_swept_before_it_was_locked_is_not_used(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, swept = unpacking._locked, False

    def another_process_first(file: IO[bytes]) -> bool:
        nonlocal swept
        if not swept:
            swept = True
            unpacking._sweep()
        return locked(file)

    monkeypatch.setattr(unpacking, "_locked", another_process_first)
    root = unpacking.make_directory()
    assert swept
    assert [root] == list(room.iterdir())
