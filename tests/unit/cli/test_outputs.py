"""Which files were asked for, in which format."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperscale.cli.outputs import File, check, read, requested, write
from hyperscale.config.run import Settings
from hyperscale.errors import BadInput
from hyperscale.metrics.results import Results


@pytest.mark.parametrize(
    ("out", "file"),
    [
        ("a.json", File(Path("a.json"), "json")),
        ("dir/a.CSV", File(Path("dir/a.CSV"), "csv")),
        ("a.xml", File(Path("a.xml"), "junit")),
        ("a.htm", File(Path("a.htm"), "html")),
        ("json=results", File(Path("results"), "json")),
        ("x=1.html", File(Path("x=1.html"), "html")),
    ],
)
def test_format_by_suffix_or_by_name(out: str, file: File) -> None:
    assert requested(Settings(out=[out])) == [file]


def test_each_file_is_written_once() -> None:
    files = requested(Settings(out=["a.json", "a.json"], json="a.json", html="b"))
    assert files == [File(Path("a.json"), "json"), File(Path("b"), "html")]


def test_unknown_format() -> None:
    with pytest.raises(BadInput, match=r"results\.txt"):
        requested(Settings(out=["results.txt"]))


def test_what_is_written_can_be_read_back(tmp_path: Path) -> None:
    results = Results(name="a run", tags={"team": "shop"})
    files = [File(tmp_path / "a.json", "json"), File(tmp_path / "a.html", "html")]
    check(files)
    assert write(files, results) == []
    assert read(tmp_path / "a.json") == results
    assert read(tmp_path / "a.html") == results


def test_one_failing_file_does_not_cost_the_others(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    bad, good = File(tmp_path / "file/a.json", "json"), File(tmp_path / "b.json", "json")
    (error,) = write([bad, good], Results())
    assert "a.json" in error.message
    assert good.path.exists()


def test_reading_a_report_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read(tmp_path / "none.html")
