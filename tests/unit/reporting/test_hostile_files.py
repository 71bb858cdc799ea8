"""Names that are formulas, and results that no run has measured."""

from __future__ import annotations

import copy
import csv
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.cli import outputs
from hyperscale.cli.outputs import File
from hyperscale.errors import BadInput, HyperscaleError
from hyperscale.metrics.results import encode
from hyperscale.reporting.csv_file import requests_csv, steps_csv
from tests.unit.reporting.sample import sample_results

STRANGE = [
    None, True, 0, -1, 1e308, -1e308, 2**63, 2**64, "", "x" * 1000, [], {}, [[]] * 5, "NaN",
    1e-320, -0.0, {"a": 1}, "\0", 10**18,
]  # fmt: skip


@pytest.mark.parametrize(
    "name", ['=HYPERLINK("http://evil","x")', "+1", "-1+2", "@SUM(A1)", "\t=1"]
)
def test_no_field_is_a_formula(name: str) -> None:
    results = sample_results()
    for workflow in results.workflows:
        for step in workflow.steps:
            step.name = step.target = step.group = name
            for request in step.requests:
                request.name = name
    for made in (steps_csv(results), requests_csv(results)):
        rows = list(csv.reader(io.StringIO(made.decode())))[1:]
        assert any(f"'{name}" in row for row in rows)
        for row in rows:
            for cell in row:
                assert not cell.startswith(("=", "+", "@", "\t")) or _is_number(cell)
                assert not cell.startswith("-") or _is_number(cell)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*at, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value[:4]):
            yield from _places(inner, (*at, index))
    if at:
        yield at


def test_results_that_cannot_be_give_a_sentence(tmp_path: Path) -> None:
    base = json.loads(encode(sample_results()))
    places = list(_places(base))
    dice = random.Random(14)
    path = tmp_path / "results.json"
    formats = ("html", "csv", "junit")
    files = [File(tmp_path / f"out.{name}", name) for name in formats]
    refused = 0
    for _ in range(300):
        changed = copy.deepcopy(base)
        at = dice.choice(places)
        inner = changed
        for key in at[:-1]:
            inner = inner[key]
        inner[at[-1]] = copy.deepcopy(dice.choice(STRANGE))
        path.write_text(json.dumps(changed))
        try:
            loaded = outputs.read(path)
            with outputs.consistent(str(path)):
                outputs.write(files, loaded)
        except HyperscaleError:
            refused += 1
    assert refused


def test_nesting_without_end_gives_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"schema":' + "[" * 100_000)
    with pytest.raises(BadInput):
        outputs.read(path)
    path.write_text(
        '{"schema":"' + json.loads(encode(sample_results()))["schema"] + '","x":' + "[" * 100_000
    )
    with pytest.raises(BadInput):
        outputs.read(path)
