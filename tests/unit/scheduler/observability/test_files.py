"""The alert rules and the dashboard ask only for metrics that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hyperscale.scheduler.observability.metrics import Metrics

DEPLOY = Path(__file__).parents[4] / "deploy" / "scheduler"


def exported() -> set[str]:
    names = set()
    for family in Metrics().registry.collect():
        names.add(family.name)
        names |= {f"{family.name}_{end}" for end in ("total", "bucket", "count", "sum")}
    return names


@pytest.mark.parametrize("file", ["alert-rules.yaml", "grafana-dashboard.json"])
def test_every_metric_asked_for_exists(file: str) -> None:
    asked = set(re.findall(r"scheduler_[a-z_]+", (DEPLOY / file).read_text()))
    assert len(asked) > 8
    assert asked <= exported()


def test_the_dashboard_is_json_with_a_query_in_every_panel() -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    assert all(panel["targets"][0]["expr"] for panel in dashboard["panels"])
