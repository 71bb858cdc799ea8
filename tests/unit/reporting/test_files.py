from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hyperscale.errors import BadInput, RunFailed
from hyperscale.reporting.files import check_file, write_file


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    write_file(path, b"old")
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_missing_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "out.json"
    check_file(path)
    assert not path.exists()
    write_file(path, b"x")
    assert path.read_bytes() == b"x"


def test_a_file_has_the_permissions_any_new_file_would_have(tmp_path: Path) -> None:
    path, plain = tmp_path / "out.json", tmp_path / "plain"
    write_file(path, b"x")
    plain.write_bytes(b"x")
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    write_file(link, b"x")
    assert link.is_symlink()
    assert real.read_bytes() == b"x"


def test_checking_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_bytes(b"old")
    check_file(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_refused_with_an_example(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it is a folder") as caught:
        check_file(tmp_path)
    assert "results.json" in caught.value.hint


def test_a_file_where_a_folder_is_needed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "out.json"
    with pytest.raises(BadInput, match=r"out\.json"):
        check_file(path)
    with pytest.raises(RunFailed, match=r"out\.json"):
        write_file(path, b"x")


@pytest.mark.skipif(not os.path.exists("/proc/version"), reason="/proc is Linux")
def test_a_folder_that_takes_no_files() -> None:
    with pytest.raises(BadInput, match=r"/proc/out\.json"):
        check_file(Path("/proc/out.json"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is Linux")
def test_a_full_disk_is_one_sentence_naming_the_path() -> None:
    with pytest.raises(RunFailed, match="/dev/full: no space left on device"):
        write_file(Path("/dev/full"), b"x")


def test_devices_are_written_to_and_never_replaced() -> None:
    check_file(Path("/dev/null"))
    write_file(Path("/dev/null"), b"x")
    assert Path("/dev/null").is_char_device()


LIMITED = """
import resource, signal, sys
from pathlib import Path
from hyperscale.errors import HyperscaleError
from hyperscale.reporting.files import check_file, write_file
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for act in (lambda p: write_file(p, bytes(5000)), check_file):
    try:
        act(Path(sys.argv[1]))
    except HyperscaleError as error:
        sys.stdout.write(type(error).__name__ + ": " + error.message + "\\n")
"""


def test_a_disk_that_takes_no_more_leaves_the_old_file(tmp_path: Path) -> None:
    """A file size limit fails the write half-way, as a full disk does, and needs no root."""
    path = tmp_path / "out.json"
    path.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines() == [
        f"RunFailed: Cannot write results to {path}: file too large.",
        f"BadInput: Cannot write results to {path}: file too large.",
    ], done.stderr
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
