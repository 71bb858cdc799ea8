"""How flags and config file stand around the test file."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperscale.cli.overrides import overrides_of
from hyperscale.config.run import Settings
from hyperscale.engine.source import FileSource
from hyperscale.errors import BadInput
from hyperscale.workload.plan import Overrides

HEAD = """
from hyperscale import HTTPOptions, Workflow, step
from hyperscale.testing import URL, HTTPResponse
"""
BODY = """
    @step()
    async def get(self, url: URL = "/") -> HTTPResponse:
        return await self.client.http.get(url)
"""


def source(tmp_path: Path, *attributes: str) -> FileSource:
    classes = [
        f"class W{n}(Workflow):\n    {text or 'pass'}\n{BODY}" for n, text in enumerate(attributes)
    ]
    file = tmp_path / "overridden.py"
    file.write_text(HEAD + "\n".join(classes))
    return FileSource(str(file))


def test_what_was_said_goes_over_the_test_file(tmp_path: Path) -> None:
    said = Settings(
        vus=3,
        stage=["10s:5", "1m:0"],
        rate="5/s",
        threshold=["p(95)<1"],
        tag={"a": "b"},
        host="http://x",
        insecure_skip_tls_verify=True,
        no_thresholds=True,
    )
    assert overrides_of(said, Settings(), FileSource("not even read")) == Overrides(
        vus=3,
        stages=[("10s", "5"), ("1m", "0")],
        rate="5/s",
        thresholds=["p(95)<1"],
        tags={"a": "b"},
        base_url="http://x",
        insecure=True,
        no_thresholds=True,
    )


@pytest.mark.parametrize("stage", ["10s", ":5", "10s:", ""])
def test_stages_have_a_time_and_a_number(stage: str) -> None:
    with pytest.raises(BadInput, match="--stage takes TIME:N"):
        overrides_of(Settings(stage=[stage]), Settings(), FileSource("not even read"))


FILLED = Settings(vus=7, duration="1m", host="http://filled", threshold=["p(95)<9"])


def test_the_config_file_fills_in_what_the_test_file_leaves_open(tmp_path: Path) -> None:
    filled = overrides_of(Settings(), FILLED, source(tmp_path, ""))
    assert (filled.vus, filled.duration) == (7, "1m")
    assert (filled.base_url, filled.thresholds) == ("http://filled", ["p(95)<9"])


def test_the_test_file_beats_the_config_file(tmp_path: Path) -> None:
    attributes = 'vus = 2; thresholds = ["p(95)<1"]; http = HTTPOptions(base_url="http://own")'
    filled = overrides_of(Settings(), FILLED, source(tmp_path, attributes))
    assert (filled.vus, filled.duration) == (None, "1m")
    assert (filled.base_url, filled.thresholds) == (None, [])


def test_tags_are_decided_one_by_one(tmp_path: Path) -> None:
    tagged = source(tmp_path, 'tags = {"team": "own"}')
    weak = Settings(tag={"team": "filled", "stage": "filled", "run": "filled"})
    overrides = overrides_of(Settings(tag={"run": "said"}), weak, tagged)
    assert overrides.tags == {"stage": "filled", "run": "said"}


@pytest.mark.parametrize("model", ['rate = "5/s"', "iterations = 3", 'stages = [("1s", 2)]'])
def test_a_load_model_of_the_test_file_is_left_alone(tmp_path: Path, model: str) -> None:
    filled = overrides_of(Settings(), FILLED, source(tmp_path, "", model))
    assert filled.load_flags() == {}


def test_a_load_model_that_was_said_is_left_alone(tmp_path: Path) -> None:
    filled = overrides_of(Settings(iterations=5), FILLED, source(tmp_path, ""))
    assert filled.load_flags() == {"iterations": 5}
