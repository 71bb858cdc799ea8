from __future__ import annotations

import csv
from pathlib import Path

import pytest

from hyperscale.errors import BadInput
from hyperscale.metrics.results import Results
from hyperscale.reporting import FORMATS, Format, check_writable, choose, export, load
from tests.unit.reporting.sample import sample_results


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.json", "json"), ("a.CSV", "csv"), ("a.xml", "junit"), ("a.b.junit", "junit")],
)
def test_the_suffix_chooses_the_format(name: str, expected: str) -> None:
    assert choose(Path(name)).name == expected


def test_a_named_format_beats_the_suffix(tmp_path: Path) -> None:
    [path] = export(sample_results(), tmp_path / "data.txt", "json")
    assert load(path) == sample_results()


@pytest.mark.parametrize("name", ["results", "results.txt", "json"])
def test_an_unknown_suffix_is_refused_before_the_run(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match=name) as caught:
        check_writable(tmp_path / name)
    assert ".json, .csv, .xml, .junit" in caught.value.hint


def test_an_unknown_format_name_lists_the_known() -> None:
    with pytest.raises(BadInput, match="'yaml'") as caught:
        choose(Path("a.json"), "yaml")
    assert "json, csv, junit" in caught.value.hint


def test_a_format_from_elsewhere_is_written_like_the_others(tmp_path: Path) -> None:
    page = Format("html", (".html",), {"": lambda results: results.name.encode()})
    [path] = export(sample_results(), tmp_path / "report.html", page)
    assert path.read_bytes() == b"shop"
    assert FORMATS.get("html") is not page


def test_json_comes_back_as_it_went(tmp_path: Path) -> None:
    [path] = export(sample_results(), tmp_path / "out.json")
    assert load(path) == sample_results()
    assert path.read_bytes().endswith(b"}\n")


def test_csv_is_three_files_steps_requests_and_series(tmp_path: Path) -> None:
    written = export(sample_results(), tmp_path / "out.csv")
    assert [path.name for path in written] == ["out.csv", "out-requests.csv", "out-series.csv"]
    login, buy = rows(written[0])
    assert (login["workflow"], login["step"], login["count"]) == ("Checkout", "login", "100")
    assert login["target"] == 'https://shop.example/login?a=1,"b"'
    assert login["service_max_ms"] == "123.456789"
    assert login["response_p99_ms"] == "80.25"
    assert login["tags"] == "team=shop tier=1"
    assert (login["unsent"], login["runs"], login["skipped"]) == ("2", "60", "4")
    assert login["duration_p95_ms"] == "95.5"
    assert buy["count"] == "0"
    posted, got = rows(written[1])
    assert (posted["step"], posted["request"], posted["failed"]) == ("login", "/login", "10")
    assert (got["method"], got["request"], got["group"]) == ("GET", "/token/{id}", "entrance")
    assert (got["tags"], got["service_p99_ms"]) == ("kind=api", "80.25")
    assert [(row["at_s"], row["requests"]) for row in rows(written[2])] == [
        ("0.0", "10"),
        ("1.0", "11"),
        ("2.0", "12"),
    ]


def test_csv_to_a_device_is_the_steps_alone() -> None:
    assert export(sample_results(), "/dev/null", "csv") == [Path("/dev/null")]


def test_both_csv_files_are_checked_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "out-series.csv").mkdir()
    with pytest.raises(BadInput, match=r"out-series\.csv"):
        check_writable(tmp_path / "out.csv")


@pytest.mark.parametrize("format", list(FORMATS))
def test_results_of_a_run_that_never_began_can_be_written(tmp_path: Path, format: str) -> None:
    assert export(Results(), tmp_path / "out", format)[0].stat().st_size > 0


class TestLoad:
    def refused(self, path: Path, content: bytes | None, sentence: str) -> None:
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(BadInput, match=sentence) as caught:
            load(path)
        assert str(path) in caught.value.message

    def test_missing(self, tmp_path: Path) -> None:
        self.refused(tmp_path / "none.json", None, "no file")

    def test_folder(self, tmp_path: Path) -> None:
        self.refused(tmp_path, None, "is a directory")

    def test_empty(self, tmp_path: Path) -> None:
        self.refused(tmp_path / "a.json", b" \n", "is empty")

    @pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"<html>", b"\xff\xfe", b'{"schema": "hy'])
    def test_not_json(self, tmp_path: Path, content: bytes) -> None:
        self.refused(tmp_path / "a.json", content, "is not JSON")

    @pytest.mark.parametrize("content", [b"[1, 2]", b"{}", b'{"schema": 1}', b"null"])
    def test_other_json(self, tmp_path: Path, content: bytes) -> None:
        self.refused(tmp_path / "a.json", content, "not a result of Hyperscale")

    def test_other_schema(self, tmp_path: Path) -> None:
        self.refused(tmp_path / "a.json", b'{"schema": "k6/1"}', "not a result of Hyperscale")

    def test_other_version(self, tmp_path: Path) -> None:
        content = b'{"schema": "hyperscale.results/2"}'
        self.refused(tmp_path / "a.json", content, "version 2 of the result schema.* reads 1")

    def test_damaged(self, tmp_path: Path) -> None:
        content = b'{"schema": "hyperscale.results/1", "workflows": [{"name": 3}]}'
        self.refused(tmp_path / "a.json", content, r"workflows\[0\]\.name")

    def test_fields_of_a_later_release_are_ignored(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_bytes(b'{"schema": "hyperscale.results/1", "name": "x", "colour": "blue"}')
        assert load(path).name == "x"
