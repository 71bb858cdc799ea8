"""The runs of a folder: what is a run, what is not, and what was read before."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperscale.errors import BadInput
from hyperscale.metrics.results import Results, encode
from hyperscale.ui.html import render
from hyperscale.ui.web.folder import Folder
from hyperscale.ui.web.started import StartedRuns
from tests.unit.ui.sample import sample_results


def written(path: Path, started_at: str = "") -> Results:
    results = sample_results("finished")
    results.started_at = started_at or results.started_at
    path.parent.mkdir(exist_ok=True)
    page = path.suffix == ".html"
    path.write_bytes(render(results).encode() if page else encode(results))
    return results


def test_results_and_reports_are_runs_and_the_newest_comes_first(tmp_path: Path) -> None:
    written(tmp_path / "old.json", "2026-01-01T00:00:00+00:00")
    results = written(tmp_path / "nightly" / "new.html", "2026-01-03T00:00:00+00:00")
    written(tmp_path / "both.json", "2026-01-02T00:00:00+00:00")
    written(tmp_path / "both.html", "2026-01-02T00:00:00+00:00")
    (tmp_path / "package.json").write_text('{"name": "hyperscale.results/1"}')
    (tmp_path / "broken.json").write_text('{"schema": "hyperscale.results/1", "workflows": 3}')
    (tmp_path / "page.html").write_text("<p>hyperscale.results/1</p>")
    folder = Folder(tmp_path)
    entries = folder.entries()
    assert [entry.run for entry in entries] == ["nightly/new.html", "both.json", "old.json"]
    assert (entries[0].requests, entries[0].failed) == (results.requests, results.failed)
    assert entries[0].p95_ms == pytest.approx(entries[2].p95_ms)
    loaded = folder.load("nightly/new.html")
    assert loaded is not None
    assert loaded.requests == results.requests


def test_a_file_is_read_again_when_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    written(path)
    folder = Folder(tmp_path)
    (before,) = folder.entries()
    (same,) = folder.entries()
    assert same is before
    results = sample_results("finished")
    results.name = "another, with a longer name"
    path.write_bytes(encode(results))
    (after,) = folder.entries()
    assert after.name == results.name
    path.unlink()
    assert folder.entries() == []


@pytest.mark.parametrize("run", ["../secret.json", "/etc/passwd", "", "deep/er/run.json", "x.txt"])
def test_nothing_outside_of_the_list_is_read(tmp_path: Path, run: str) -> None:
    inside = tmp_path / "inside"
    written(tmp_path / "secret.json")
    written(inside / "run.json")
    (inside / "deep" / "er").mkdir(parents=True)
    written(inside / "deep" / "er" / "run.json")
    assert Folder(inside).load(run) is None


def test_a_damaged_file_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(BadInput):
        Folder(tmp_path).load("run.json")


def test_tests_are_found_without_running_them(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from hyperscale import Workflow\nraise SystemExit\nclass Shop(Workflow):\n    pass\n"
    )
    (tmp_path / "other.py").write_text("class Other(Thing):\n    pass\n")
    assert StartedRuns(tmp_path).tests() == [{"file": "shop.py", "workflows": ["Shop"]}]
