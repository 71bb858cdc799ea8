"""Results handed to the author's own code in the end: `reporting = MyReporter()` in a workflow.

A reporter gets rows of one number each, in the words of the published package. Latencies are
milliseconds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import msgspec

from hyperscale.errors import HyperscaleError, RunFailed
from hyperscale.metrics.results import Distribution, StepResult, WorkflowResult

WorkflowMetric = dict[str, str | int | float]
"""`metric_workflow`, `metric_type` (count, rate, timing, sample), `metric_group`, `metric_name`,
`metric_value`."""
StepMetric = dict[str, str | int | float]
"""As of a workflow, with `metric_step`."""
WorkflowMetricSet = list[WorkflowMetric]
StepMetricSet = list[StepMetric]


class CustomReporter(ABC):
    """Each workflow's reporter is opened when the run has ended, gets its results, and is
    closed."""

    @abstractmethod
    async def connect(self) -> None: ...

    @abstractmethod
    async def submit_workflow_results(self, results: WorkflowMetricSet) -> None: ...

    @abstractmethod
    async def submit_step_results(self, results: StepMetricSet) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...


async def report(reporter: CustomReporter, result: WorkflowResult) -> HyperscaleError | None:
    """What went wrong in it, if anything did; it is closed in any case."""
    try:
        try:
            await reporter.connect()
            await reporter.submit_workflow_results(workflow_metrics(result))
            await reporter.submit_step_results(step_metrics(result))
        finally:
            await reporter.close()
    except Exception as error:  # noqa: BLE001 - the author's code: whatever it is, the run stands
        name = type(reporter).__name__
        return RunFailed(f"{name} of {result.name} failed: {type(error).__name__}: {error}")
    return None


def workflow_metrics(result: WorkflowResult) -> WorkflowMetricSet:
    rows = [
        ("count", "requests", "total", result.requests),
        ("count", "requests", "failed", result.failed),
        ("count", "iterations", "total", result.iterations),
        ("count", "iterations", "dropped", result.dropped_iterations),
        ("timing", "load", "elapsed_s", result.elapsed_s),
        *_timings("iteration", result.iteration),
    ]
    for check in result.checks:
        rows += [("count", check.name, "passed", check.passed)]
        rows += [("count", check.name, "failed", check.failed)]
    for metric in result.metrics:
        rows.append((metric.kind, "custom", metric.name, metric.value))
        if metric.distribution is not None:
            rows += _timings(metric.name, metric.distribution)
    return [{"metric_workflow": result.name, **row} for row in _named(rows)]


def step_metrics(result: WorkflowResult) -> StepMetricSet:
    return [
        {"metric_workflow": result.name, "metric_step": step.name, **row}
        for step in result.steps
        for row in _named(_of_step(step))
    ]


_Row = tuple[str, str, str, int | float]


def _of_step(step: StepResult) -> list[_Row]:
    return [
        ("count", "requests", "total", step.count),
        ("count", "requests", "failed", step.failed),
        ("rate", "requests", "per_second", step.rate),
        ("count", "bytes", "received", step.bytes_in),
        ("count", "bytes", "sent", step.bytes_out),
        *(("count", "status", code, count) for code, count in step.statuses.items()),
        *_timings("total", step.service),
        *(row for phase, times in step.phases.items() for row in _timings(phase, times)),
    ]


def _timings(group: str, times: Distribution) -> list[_Row]:
    numbers = msgspec.structs.asdict(times)
    return [("timing", group, name, value) for name, value in numbers.items() if "_ms" in name]


def _named(rows: Iterable[_Row]) -> list[dict[str, str | int | float]]:
    words = ("metric_type", "metric_group", "metric_name", "metric_value")
    return [dict(zip(words, row, strict=True)) for row in rows]
