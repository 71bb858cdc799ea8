"""docs/results.md promises a schema; this keeps the promise and the structures the same."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from hyperscale.metrics import results

PAGE = Path(__file__).parents[3] / "docs" / "results.md"
SECTIONS: dict[str, type[msgspec.Struct]] = {
    "Top level": results.Results,
    "Workflow": results.WorkflowResult,
    "Step": results.StepResult,
    "Request": results.RequestResult,
    "Step point": results.StepPoint,
    "Group": results.GroupResult,
    "Distribution": results.Distribution,
    "Error": results.ErrorCount,
    "First failure": results.FirstFailure,
    "Exchange": results.Exchange,
    "Check": results.CheckResult,
    "Custom metric": results.MetricResult,
    "Timeline point": results.Point,
    "Mark": results.Mark,
    "Threshold": results.ThresholdResult,
    "Generator": results.GeneratorCost,
    "Generator process": results.CoreUse,
    "Environment": results.Environment,
    "Datacenter": results.DatacenterResult,
}


def documented(section: str) -> list[str]:
    text = PAGE.read_text().split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_field_is_documented_and_every_documented_field_exists(section: str) -> None:
    assert documented(section) == list(SECTIONS[section].__struct_fields__)


def test_no_structure_is_left_out() -> None:
    structures = {
        value
        for value in vars(results).values()
        if isinstance(value, type)
        and issubclass(value, results.Struct)
        and value is not results.Struct
    }
    assert structures == set(SECTIONS.values())


def test_the_schema_is_named() -> None:
    assert results.SCHEMA in PAGE.read_text()


def test_the_bucket_formula_is_the_one_in_use() -> None:
    from hyperscale.metrics.histogram import LATENCY

    for bucket in (0, 1, 63, 64, 700, 1281, 2047):
        begins = 2 ** (bucket // 64 - 20) * (1 + (bucket % 64) / 64)
        assert LATENCY.edges[bucket] == begins
