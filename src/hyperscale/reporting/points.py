"""What a run tells while it goes on: each second, counts and latencies of each workflow and step.

Counts are what came since the point before; all of them together are the counts of the results,
because the last point is taken from the results. Latencies are those of the last second that is
complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from math import floor

import msgspec

from hyperscale.metrics.results import Point, Results, StepPoint, StepResult, WorkflowResult
from hyperscale.metrics.spans import Span

Labels = dict[str, str]

# Numbers of a second come until the next one is over.
SETTLED_S = 1.0
# Of one point. Who samples more wants a smaller share.
SPANS_MAX = 1_000
_LATENCIES = ("p50_ms", "p95_ms", "p99_ms")
_WORKFLOW_LATENCIES = (*_LATENCIES, "max_ms", "response_p99_ms")


class Row(msgspec.Struct, frozen=True, gc=False):
    """One thing at one moment: `about` is run, workflow, step, check, metric or error."""

    about: str
    labels: Labels
    counts: dict[str, int]  # since the row before
    totals: dict[str, int]  # of the same names, since the run began
    gauges: dict[str, float]


class Points(msgspec.Struct, frozen=True):
    """All rows of one moment."""

    common: Labels  # of every row: the run, the name of the test, its tags
    time_s: float  # since 1970
    width_s: float
    began_s: float  # of the run
    rows: Sequence[Row]
    spans: Sequence[Span] = ()

    @property
    def time_ns(self) -> int:
        return round(self.time_s * 1_000) * 1_000_000

    def only(self, workflows: frozenset[str] | None) -> Points:
        """Without the rows of other workflows."""
        if workflows is None:
            return self
        rows = [row for row in self.rows if row.labels.get("workflow", "") in {"", *workflows}]
        spans = [span for span in self.spans if span.workflow in workflows]
        return msgspec.structs.replace(self, rows=rows, spans=spans)


class Meter:
    """Makes points of snapshots of a run: remembers what was told, so that counts add up."""

    def __init__(self, run: str, at_s: float) -> None:
        self._run = run
        self._began_s = self._at_s = at_s
        self._told: dict[tuple[str, ...], tuple[Labels, dict[str, int]]] = {}
        self._common: Labels = {}
        self._resting: set[str] = set()
        self._spans: list[Span] = []

    def take(self, results: Results, at_s: float) -> Points:
        if self._common.keys() != {"run", "test", *results.tags}:
            self._common = {**results.tags, "run": self._run, "test": results.name}
        # Two points of one second would replace each other where seconds are the finest.
        at_s = max(at_s, floor(self._at_s) + 1.0)
        width_s, self._at_s = at_s - self._at_s, at_s
        rows = [
            self._row("run", (), {}, _of_run(results)),
            *chain.from_iterable(map(self._of_workflow, results.workflows)),
        ]
        spans, self._spans = self._spans, []
        return Points(self._common, at_s, width_s, self._began_s, rows, spans)

    def span(self, span: Span) -> None:
        """Goes with the next points."""
        if len(self._spans) < SPANS_MAX:
            self._spans.append(span)

    def _of_workflow(self, workflow: WorkflowResult) -> Iterator[Row]:
        """Nothing of one that has not begun, or has been told to its end."""
        if workflow.state == "preparing" or workflow.name in self._resting:
            return
        if workflow.state == "finished":
            self._resting.add(workflow.name)
        name = ("workflow", workflow.name)
        gauges = {"vus": float(workflow.vus)}
        point = _whole(workflow.series, workflow)
        yield self._row(
            "workflow", name, _counts(workflow), gauges | _latencies(point, _WORKFLOW_LATENCIES)
        )
        for step in workflow.steps:
            place = (*name, "step", step.name)
            gauges = _latencies(_whole(step.series, workflow), _LATENCIES)
            yield self._row("step", place, _step_counts(step), gauges)
            for error in step.errors:
                kind = (*place, "outcome", error.outcome, "detail", error.detail)
                yield self._row("error", kind, {"count": error.count}, {})
        for check in workflow.checks:
            counts = {"passed": check.passed, "failed": check.failed}
            yield self._row("check", (*name, "check", check.name), counts, {})
        for metric in workflow.metrics:
            tags = tuple(chain.from_iterable(metric.tags.items()))
            gauges = {"value": metric.value}
            if metric.distribution is not None:
                gauges = {part: getattr(metric.distribution, part + "_ms") for part in _PARTS}
            key = (*tags, *name, "metric", metric.name, "kind", metric.kind)
            yield self._row("metric", key, {"count": metric.count}, gauges)

    def _row(
        self, about: str, place: tuple[str, ...], totals: dict[str, int], gauges: dict[str, float]
    ) -> Row:
        key = (about, *place)
        labels, told = self._told.get(key) or (dict(zip(place[::2], place[1::2], strict=True)), {})
        if told:
            # What a lost worker took with it, or another manager had not heard, is not told again.
            totals = {name: max(total, told[name]) for name, total in totals.items()}
        self._told[key] = (labels, totals)
        counts = {name: total - told.get(name, 0) for name, total in totals.items()}
        return Row(about, labels, counts, totals, gauges)


_PARTS = ("mean", "p50", "p95", "p99", "max")


def history(results: Results, run: str) -> list[Points]:
    """The points of a run that is over, from its timeline: what `Meter` would have told of
    workflows and steps. Of one that never began, none."""
    if not results.started_at:
        return []
    began_s = datetime.fromisoformat(results.started_at).timestamp()
    common = {**results.tags, "run": run, "test": results.name}
    moments: dict[float, list[Row]] = {}
    widths: dict[float, float] = {}
    for workflow in results.workflows:
        named = {"workflow": workflow.name}
        courses: list[tuple[Sequence[Point | StepPoint], str, Labels]] = [
            (workflow.series, "workflow", named),
            *((step.series, "step", named | {"step": step.name}) for step in workflow.steps),
        ]
        for series, about, labels in courses:
            totals: dict[str, int] = {}
            for point in series:
                at_s = began_s + workflow.started_s + point.at_s + point.width_s
                widths[at_s] = point.width_s
                row = _of_point(about, labels, point, totals)
                totals = row.totals
                moments.setdefault(at_s, []).append(row)
    points = [
        Points(common, at_s, widths[at_s], began_s, moments[at_s]) for at_s in sorted(moments)
    ]
    last = Row("run", {}, {}, {}, _of_run(results))
    ended_s = max([began_s + results.elapsed_s, *moments])
    return [*points, Points(common, ended_s, results.elapsed_s, began_s, [last])]


def _of_point(
    about: str, labels: Labels, point: Point | StepPoint, before: Mapping[str, int]
) -> Row:
    if isinstance(point, Point):
        counts = {
            "requests": point.requests,
            "failed": point.failed,
            "iterations": point.iterations,
            "dropped_iterations": point.dropped,
            "bytes_in": point.bytes_in,
            "bytes_out": point.bytes_out,
        }
        gauges = {"vus": float(point.vus)} | _latencies(point, _WORKFLOW_LATENCIES)
    else:
        counts = {"requests": point.requests, "failed": point.failed}
        gauges = _latencies(point, _LATENCIES)
    totals = {name: before.get(name, 0) + count for name, count in counts.items()}
    return Row(about, labels, counts, totals, gauges)


def _of_run(results: Results) -> dict[str, float]:
    gauges = {
        "elapsed_s": results.elapsed_s,
        "coverage": results.coverage,
        "generator_cores": results.generator.cores,
    }
    if results.state == "finished":
        gauges |= {"passed": float(results.passed), "exit_code": float(results.exit_code)}
    return gauges


def _counts(workflow: WorkflowResult) -> dict[str, int]:
    return {
        "requests": workflow.requests,
        "failed": workflow.failed,
        "unsent": workflow.unsent,
        "iterations": workflow.iterations,
        "dropped_iterations": workflow.dropped_iterations,
        "bytes_in": sum(step.bytes_in for step in workflow.steps),
        "bytes_out": sum(step.bytes_out for step in workflow.steps),
    }


def _step_counts(step: StepResult) -> dict[str, int]:
    return {
        "requests": step.count,
        "failed": step.failed,
        "unsent": step.unsent,
        "bytes_in": step.bytes_in,
        "bytes_out": step.bytes_out,
    }


def _whole(
    series: Sequence[Point | StepPoint], workflow: WorkflowResult
) -> Point | StepPoint | None:
    """The last interval that nothing will change any more; of one that has ended, the last."""
    until_s = workflow.elapsed_s - (0.0 if workflow.state == "finished" else SETTLED_S)
    for point in reversed(series[-3:]):
        if point.at_s + point.width_s <= until_s:
            return point
    return None


def _latencies(point: Point | StepPoint | None, names: Sequence[str]) -> dict[str, float]:
    """None of a second without requests: zero would draw a fall."""
    if point is None or not point.requests:
        return {}
    return {name: getattr(point, name) for name in names}
