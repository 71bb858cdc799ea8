"""What travels with a test, and what is said when something cannot."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hyperscale import Workflow, step
from hyperscale.engine.bundle import bundle, largest
from hyperscale.engine.source import (
    AttachedFiles,
    BundleSource,
    ClassSource,
    FileSource,
    PickledSource,
    decode_source,
    encode_source,
)
from hyperscale.errors import BadInput
from hyperscale.testing import HTTPResponse

TEST = """
from hyperscale import Workflow, step
from hyperscale.testing import File, HTTPResponse
from helpers.users import name
import helpers.lazy_parent as _unused
{imports}

class Upload(Workflow):
    vus = 1
    {settings}

    @step()
    async def send(self, data: File = {file!r}) -> HTTPResponse:
        import late
        from helpers import deep
        return await self.client.http.post("/", data=data)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tests = tmp_path / "load"
    helpers = tests / "helpers"
    helpers.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/picture.png").write_bytes(b"png")
    (helpers / "__init__.py").write_text("")
    (helpers / "users.py").write_text("from .far import away\nname = 'x'\n")
    (helpers / "far.py").write_text("away = 1\n")
    (helpers / "deep.py").write_text("from . import users\n")
    (helpers / "lazy_parent.py").write_text("import json, os.path\n")
    (tests / "late.py").write_text("import helpers.far\n")
    (tests / "unused.py").write_text("raise SystemExit\n")
    (tests / "users.csv").write_text("user\nann\n")
    return tmp_path


def write(project: Path, **changes: str) -> FileSource:
    words = {"imports": "", "settings": "data = 'users.csv'", "file": "picture.png", **changes}
    path = project / "load/test_upload.py"
    path.write_text(TEST.format(**words))
    return FileSource(str(path), ["Upload"])


def bundled(source: FileSource) -> BundleSource:
    made = bundle(source)
    assert isinstance(made, BundleSource)
    assert decode_source(encode_source(made)) == made
    return made


def test_all_that_is_imported_or_named_comes_along(project: Path) -> None:
    made = bundled(write(project))
    assert set(made.attached.files) == {
        "load/test_upload.py",
        "load/late.py",
        "load/helpers/__init__.py",
        "load/helpers/users.py",
        "load/helpers/far.py",
        "load/helpers/deep.py",
        "load/helpers/lazy_parent.py",
        "load/users.csv",
        "elsewhere/picture.png",
    }
    assert made.attached.names == {
        "users.csv": "load/users.csv",
        "picture.png": "elsewhere/picture.png",
    }
    assert (made.entry, made.names) == ("load/test_upload.py", ["Upload"])
    assert made.attached.files["elsewhere/picture.png"] == b"png"


def test_several_test_files_travel_together(project: Path) -> None:
    source = write(project)
    other = project / "other/test_more.py"
    other.parent.mkdir()
    other.write_text(
        TEST.format(imports="", settings="", file="picture.png").replace("Upload", "More")
    )
    both = FileSource(source.path, ["Upload", "More"], [str(other)])
    made = bundled(both)
    assert (made.entry, made.others) == ("load/test_upload.py", ["other/test_more.py"])
    assert made.attached.files["other/test_more.py"] == other.read_bytes()


def test_files_beside_the_test_alone_have_no_directories(project: Path) -> None:
    (project / "load/picture.png").write_bytes(b"png")
    made = bundled(write(project, file=str(project / "load/picture.png")))
    assert made.entry == "test_upload.py"
    assert made.attached.names[str(project / "load/picture.png")] == "picture.png"


def test_files_named_in_code_and_certificates_come_along(project: Path) -> None:
    for name in ("ca.pem", "shop.pem", "shop.key"):
        (project / "elsewhere" / name).write_text(name)
    (project / "elsewhere/part.bin").write_text("part")
    made = bundled(
        write(
            project,
            imports="from hyperscale.testing import ClientCert, HTTPOptions\n"
            "PARTS = {'a': File('part.bin'), 'b': File('not there')}",
            settings="http = HTTPOptions(ca='ca.pem', "
            "certs=(ClientCert('shop.test', cert='shop.pem', key='shop.key'),))",
        )
    )
    assert made.attached.names == {
        "picture.png": "elsewhere/picture.png",
        "part.bin": "elsewhere/part.bin",
        "ca.pem": "elsewhere/ca.pem",
        "shop.pem": "elsewhere/shop.pem",
        "shop.key": "elsewhere/shop.key",
    }


def test_a_directory_of_authorities_is_refused(project: Path) -> None:
    source = write(
        project,
        imports="from hyperscale.testing import HTTPOptions",
        settings=f"http = HTTPOptions(ca={str(project)!r})",
    )
    with pytest.raises(BadInput, match=r"http\.ca is the directory"):
        bundle(source)


def test_a_file_that_is_not_there_is_named(project: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere\.png cannot be read: No such file"):
        bundle(write(project, file="nowhere.png"))


def test_the_largest_are_named(project: Path) -> None:
    (project / "elsewhere/picture.png").write_bytes(bytes(25_200_000))
    assert largest(bundle(write(project))).startswith("elsewhere/picture.png (25.2 MB), ")
    assert largest(bundle(ClassSource(Plain))).startswith("the workflows (0.0 MB)")


def test_a_syntax_error_in_a_module_names_file_and_line(project: Path) -> None:
    (project / "load/late.py").write_text("x = 1\nif:\n")
    with pytest.raises(BadInput, match=r"late\.py line 2"):
        bundle(write(project))


class Plain(Workflow):
    vus = 1

    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get("/")


def test_classes_travel_pickled_without_this_machine_s_paths() -> None:
    made = bundle(ClassSource(Plain))
    assert isinstance(made, PickledSource)
    assert made.import_path == []
    assert made.attached == AttachedFiles()
    assert [workflow.__name__ for workflow in made.load()] == ["Plain"]


def test_a_class_that_cannot_be_pickled_is_refused() -> None:
    class Locked(Plain):
        lock = threading.Lock()

    with pytest.raises(BadInput, match="Locked cannot be sent") as refusal:
        bundle(ClassSource(Locked))
    assert "setup()" in refusal.value.hint


def test_large_sources_are_packed_on_their_way() -> None:
    big = BundleSource(AttachedFiles({"rows.csv": b"a,b\n" * 500_000}), "t.py")
    data = encode_source(big)
    assert len(data) < 100_000
    assert decode_source(data) == big
