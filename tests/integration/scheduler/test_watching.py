"""The alert rules and the dashboard, held against the metrics of a real scheduler that had a day
with a bit of everything."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.scheduler.alert_cases import CASES, EVERY
from tests.integration.scheduler.scheduler_process import (
    SchedulerProcess,
    scheduler_process,
    until,
)

DEPLOY = Path(__file__).parents[3] / "deploy" / "scheduler"
RULES = yaml.safe_load((DEPLOY / "alert-rules.yaml").read_text())["groups"][0]["rules"]
PANELS = json.loads((DEPLOY / "grafana-dashboard.json").read_text())["panels"]
QUERIES = {
    **{rule["alert"]: rule["expr"] for rule in RULES},
    **{panel["title"]: panel["targets"][0]["expr"] for panel in PANELS},
}
ON_WORKERS_ONLY = {"scheduler_worker_jobs"}

Samples = dict[str, list[dict[str, str]]]


def a_mixed_day(scheduler: SchedulerProcess) -> None:
    with scheduler.client() as client:
        work = {"name": "work", "kind": "command", "payload": {"command": "true"}}
        for key in ("one", "one"):
            client.submit_job(**work, idempotency_key=key)
        failing = {**work, "payload": {"command": "false"}, "max_retries": 0}
        client.submit_job(**failing)
        client.create_schedule(
            id="ticking", cron="* * * * * *", job={"kind": "command", "payload": work["payload"]}
        )
        until(lambda: client.overview()["letters"], "a job that failed for good")
        until(lambda: client.jobs(schedule_id="ticking", state="COMPLETED"), "a run by the clock")
        stale = {"report": "completed", "job_id": "nobody", "worker": "w-1", "token": 1}
        request = urllib.request.Request(
            f"{scheduler.url}/api/v1/messages",
            json.dumps(stale).encode(),
            {"Content-Type": "application/json", "Message-Type": "report"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert json.load(answer)["accepted"] is False


def metrics(scheduler: SchedulerProcess) -> str:
    with urllib.request.urlopen(f"{scheduler.url}/metrics", timeout=30) as answer:
        text: str = answer.read().decode()
    return text


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    with scheduler_process(
        tmp_path_factory.mktemp("watched"), "--command", HYPERSCALE_SCHEDULER_BEAT_S="0.5"
    ) as scheduler:
        a_mixed_day(scheduler)
        until(lambda: "heartbeat_latency_seconds_bucket" in metrics(scheduler), "a heartbeat")
        text = metrics(scheduler)
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def selectors(node: Any) -> Iterator[Any]:
    """Every metric a query asks for."""
    if isinstance(node, promql_parser.MatrixSelector):
        node = node.vector_selector
    if isinstance(node, promql_parser.VectorSelector):
        yield node
        return
    for name in ("expr", "lhs", "rhs"):
        child = getattr(node, name, None)
        if child is not None:
            yield from selectors(child)
    for argument in getattr(node, "args", None) or ():
        yield from selectors(argument)


@pytest.mark.parametrize("title", QUERIES)
def test_a_query_asks_for_what_a_scheduler_tells(title: str, samples: Samples) -> None:
    asked = list(selectors(promql_parser.parse(QUERIES[title])))
    assert asked
    for one in asked:
        if one.name in ON_WORKERS_ONLY:
            continue
        assert one.name in samples
        for matcher in one.matchers.matchers:
            told = {labels.get(matcher.name) for labels in samples[one.name]}
            assert matcher.value in told


def test_every_rule_has_cases_made_of_what_a_scheduler_tells(samples: Samples) -> None:
    assert {rule["alert"] for rule in RULES} == set(CASES)
    for case in CASES.values():
        for series in (*case.breach, *case.calm):
            wanted = promql_parser.parse(series)
            labels = {one.name: one.value for one in wanted.matchers.matchers}
            assert any(labels == told for told in unrestricted(samples[wanted.name], labels))


def unrestricted(told: list[dict[str, str]], labels: dict[str, str]) -> list[dict[str, str]]:
    """Which of its values a label has is the case's choice when the day had no such one."""
    free = {"priority", "job_type", "le", "success", "result"}
    return [
        {name: labels.get(name, "") if name in free else value for name, value in one.items()}
        for one in told
    ]


PROMTOOL = shutil.which("promtool")


@pytest.mark.skipif(PROMTOOL is None, reason="promtool (Debian's prometheus) is not installed")
@pytest.mark.parametrize("alert", CASES)
def test_a_rule_fires_on_its_breach_and_on_nothing_less(alert: str, tmp_path: Path) -> None:
    assert PROMTOOL is not None
    rule = next(one for one in RULES if one["alert"] == alert)
    fired = {"exp_labels": rule["labels"], "exp_annotations": rule["annotations"]}
    case = CASES[alert]
    tests = [
        {
            "interval": EVERY,
            "input_series": [{"series": name, "values": text} for name, text in given.items()],
            "alert_rule_test": [{"eval_time": case.at, "alertname": alert, "exp_alerts": expected}],
        }
        for given, expected in ((case.breach, [fired]), (case.calm, []))
    ]
    told = {"rule_files": [str(DEPLOY / "alert-rules.yaml")], "tests": tests}
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump(told))
    done = subprocess.run(
        [PROMTOOL, "test", "rules", str(file)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_says_how_bad_it_is_and_what_happened() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"]
        if rule["labels"]["severity"] == "critical":
            assert rule["annotations"]["runbook"].startswith("docs/scheduler.md#")


def test_panels_do_not_lie_on_each_other() -> None:
    cells = [
        (panel["gridPos"]["x"] + dx, panel["gridPos"]["y"] + dy)
        for panel in PANELS
        for dx in range(panel["gridPos"]["w"])
        for dy in range(panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
