"""Results as three tables of a database: runs, their steps, and the timeline of each workflow.

The id of a run follows from when it ran, so that results sent twice are stored once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hyperscale.metrics.results import Results, StepResult, WorkflowResult

Row = tuple[Any, ...]
_LATENCIES = ("mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms")
_COUNTS = ("requests", "failed", "iterations", "dropped", "vus", "bytes_in", "bytes_out")
_POINT_LATENCIES = ("p50_ms", "p95_ms", "p99_ms", "max_ms", "response_p99_ms")


@dataclass(frozen=True)
class Table:
    name: str
    columns: dict[str, type]
    rows: Callable[[str, Results], list[Row]]


def run_id(results: Results) -> str:
    """Of what no two runs share and a file keeps exactly: when, and for how long to the nanosecond.

    Not of all results: numbers read from JSON need not be of the type they were measured in.
    """
    names = [workflow.name for workflow in results.workflows]
    told = (results.started_at, float(results.elapsed_s), results.requests, results.name, names)
    return hashlib.sha256(repr(told).encode()).hexdigest()[:32]


def _started(results: Results) -> datetime:
    """Results that were never started (an empty run) are stored as of 1970."""
    if not results.started_at:
        return datetime.fromtimestamp(0, UTC)
    return datetime.fromisoformat(results.started_at).astimezone(UTC)


def _runs(run: str, results: Results) -> list[Row]:
    name = results.name or ", ".join(workflow.name for workflow in results.workflows)
    counts = (results.requests, results.failed)
    verdict = (results.passed, results.exit_code)
    return [(run, _started(results), name, results.elapsed_s, *verdict, *counts)]


def _steps(run: str, results: Results) -> list[Row]:
    return [_step(run, step) for workflow in results.workflows for step in workflow.steps]


def _step(run: str, step: StepResult) -> Row:
    counts = (step.count, step.failed, step.unsent, step.rate, step.bytes_in, step.bytes_out)
    latencies = (getattr(step.service, name) for name in _LATENCIES)
    return (run, step.workflow, step.name, *counts, *latencies)


def _series(run: str, results: Results) -> list[Row]:
    return [
        row for workflow in results.workflows for row in _points(run, workflow, _started(results))
    ]


def _points(run: str, workflow: WorkflowResult, started: datetime) -> list[Row]:
    begin = started + timedelta(seconds=workflow.started_s)
    return [
        (
            run,
            begin + timedelta(seconds=point.at_s),
            workflow.name,
            point.width_s,
            *(getattr(point, name) for name in _COUNTS + _POINT_LATENCIES),
        )
        for point in workflow.series
    ]


TABLES = (
    Table(
        "hyperscale_runs",
        {
            "run": str, "started_at": datetime, "name": str, "elapsed_s": float, "passed": bool,
            "exit_code": int, "requests": int, "failed": int,
        },
        _runs,
    ),
    Table(
        "hyperscale_steps",
        {
            "run": str, "workflow": str, "step": str, "requests": int, "failed": int,
            "unsent": int, "rate": float, "bytes_in": int, "bytes_out": int,
            **dict.fromkeys(_LATENCIES, float),
        },
        _steps,
    ),
    Table(
        "hyperscale_series",
        {
            "run": str, "time": datetime, "workflow": str, "width_s": float,
            **dict.fromkeys(_COUNTS, int), **dict.fromkeys(_POINT_LATENCIES, float),
        },
        _series,
    ),
)  # fmt: skip


def create_statement(table: Table, types: dict[type, str]) -> str:
    key = " primary key" if table is TABLES[0] else ""
    columns = [f'"{name}" {types[kind]} not null' for name, kind in table.columns.items()]
    columns[0] += key
    return f"create table if not exists {table.name} ({', '.join(columns)})"


def insert_statement(table: Table, places: list[str]) -> str:
    names = ", ".join(f'"{name}"' for name in table.columns)
    return f"insert into {table.name} ({names}) values ({', '.join(places)})"
