"""What a confined process may read, when private files lie in the middle of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from hyperscale.engine import confinement
from hyperscale.engine.confinement import Confinement, Proof, encoded
from hyperscale.runtime import landlock


def allowed(private: list[Path], directory: Path) -> dict[str, int]:
    return dict(confinement._without([str(path) for path in private], str(directory)))


def test_a_directory_without_private_files_is_one_rule(tmp_path: Path) -> None:
    assert allowed([tmp_path / "key"], tmp_path / "lib") == {str(tmp_path / "lib"): landlock.READ}


def test_private_files_are_left_out_and_names_can_be_listed(tmp_path: Path) -> None:
    for name in ("lib/etc/key.pem", "lib/etc/note", "lib/module.py", "secret"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "lib" / "link").symlink_to(tmp_path)

    assert allowed([tmp_path / "lib/etc/key.pem"], tmp_path / "lib") == {
        str(tmp_path / "lib"): landlock.READ_DIR,
        str(tmp_path / "lib/etc"): landlock.READ_DIR,
        str(tmp_path / "lib/etc/note"): landlock.READ,
        str(tmp_path / "lib/module.py"): landlock.READ,
    }


def test_a_directory_that_is_private_itself_is_closed(tmp_path: Path) -> None:
    assert allowed([tmp_path], tmp_path) == {}


def test_a_name_that_only_begins_alike_is_another(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    assert allowed([tmp_path / "data-of-w1"], tmp_path / "data") == {
        str(tmp_path / "data"): landlock.READ
    }


@pytest.mark.skipif(sys.platform != "linux", reason="a sandbox of Linux")
@pytest.mark.parametrize("kernel", ["old", "this"])
def test_the_trial_tells_what_could_be_read(tmp_path: Path, kernel: str) -> None:
    (tmp_path / "home").mkdir()
    secret = tmp_path / "secret"
    secret.write_text("private")
    old = "landlock.version = lambda: 0; " if kernel == "old" else ""
    program = f"from hyperscale.runtime import landlock; {old}"
    program += "from hyperscale.engine.confinement import check; check()"
    how = encoded(Confinement(home=str(tmp_path / "home"), private=[str(secret)]))
    done = subprocess.run(
        [sys.executable, "-c", program, how], capture_output=True, check=True, cwd=tmp_path / "home"
    )
    proof = msgspec.json.decode(done.stdout, type=Proof)
    closed = kernel == "this" and landlock.version() > 0
    assert proof.read == ([] if closed else [str(secret)])
    assert proof.unreadable == []
