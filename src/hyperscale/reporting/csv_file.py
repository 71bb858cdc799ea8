"""CSV for spreadsheets and data frames: a row per step, a row per name of a request, the timeline.

Each is a file of its own, so that a column can be summed up. Columns are the fields of the result
schema by the same names; `service_p99_ms` is the `p99_ms` of the step's `service`. Rows of several
workflows stand in one file, told apart by their first column.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

from hyperscale.metrics.results import Distribution, Point, RequestResult, Results, StepResult

STEP_FIELDS = ("kind", "method", "target", "group", "count", "failed", "rate")
STEP_SIZES = ("bytes_in", "bytes_out")
STEP_RUNS = ("unsent", "runs", "runs_failed", "runs_interrupted", "skipped")
LATENCY_FIELDS = tuple(
    name for name in Distribution.__struct_fields__ if name not in ("count", "buckets", "counts")
)
STEP_COLUMNS = (
    "workflow",
    "step",
    *STEP_FIELDS,
    *STEP_SIZES,
    *(f"service_{name}" for name in LATENCY_FIELDS),
    *(f"response_{name}" for name in LATENCY_FIELDS),
    "tags",
    *STEP_RUNS,
    *(f"duration_{name}" for name in LATENCY_FIELDS),
)
REQUEST_FIELDS = ("kind", "method", "count", "failed", "unsent", "rate")
REQUEST_COLUMNS = (
    "workflow",
    "step",
    "request",
    "group",
    *REQUEST_FIELDS,
    *STEP_SIZES,
    *(f"service_{name}" for name in LATENCY_FIELDS),
    *(f"response_{name}" for name in LATENCY_FIELDS),
    "tags",
)
# What a spreadsheet would carry out. Names and targets are written by others; with an apostrophe
# in front they are text, and are shown without it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
SERIES_COLUMNS = ("workflow", *Point.__struct_fields__)


def steps_csv(results: Results) -> bytes:
    return _table(
        STEP_COLUMNS,
        (_step_row(step) for workflow in results.workflows for step in workflow.steps),
    )


def requests_csv(results: Results) -> bytes:
    return _table(
        REQUEST_COLUMNS,
        (
            _request_row(step, request)
            for workflow in results.workflows
            for step in workflow.steps
            for request in step.requests
        ),
    )


def series_csv(results: Results) -> bytes:
    return _table(
        SERIES_COLUMNS,
        (
            [workflow.name, *(getattr(point, name) for name in Point.__struct_fields__)]
            for workflow in results.workflows
            for point in workflow.series
        ),
    )


def _step_row(step: StepResult) -> list[object]:
    return [
        step.workflow,
        step.name,
        *(getattr(step, name) for name in STEP_FIELDS + STEP_SIZES),
        *_latencies(step.service),
        *_latencies(step.response),
        _tags(step.tags),
        *(getattr(step, name) for name in STEP_RUNS),
        *_latencies(step.duration),
    ]


def _request_row(step: StepResult, request: RequestResult) -> list[object]:
    return [
        request.workflow,
        request.step,
        request.name,
        step.group,
        *(getattr(request, name) for name in REQUEST_FIELDS + STEP_SIZES),
        *_latencies(request.service),
        *_latencies(request.response),
        _tags(request.tags),
    ]


def _latencies(of: Distribution) -> list[float]:
    return [getattr(of, name) for name in LATENCY_FIELDS]


def _tags(tags: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in tags.items())


def _table(columns: tuple[str, ...], rows: Iterable[list[object]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue().encode(errors="replace")


def _cell(value: object) -> object:
    if isinstance(value, float):
        # A nanosecond in milliseconds: more digits than that are noise that hides the number.
        return round(value, 6)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value
