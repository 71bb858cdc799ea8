"""Did the second run get better or worse than the first, beyond noise?

Throughput, share of errors and the service-time percentiles are compared per workflow and per
step. A difference counts only if it is both significant (1 % false alarms over the whole
comparison, Holm's correction) and relevant (`tolerance`, 5 % by default), because run-to-run
effects such as a warmer cache are invisible to any statistics within two runs.

The noise of a workflow and of each step comes from its own timelines, see `noise`; what swings
more slowly than the run is long cannot be seen in it, so compare runs of 30 s or more. A step
without a timeline, or with too few requests in it, is as uncertain as independent requests,
inflated by as much as the workflow's timeline shows its requests to be noisier than independent
ones, and never below the workflow's own. Nothing is random: the same files always give the same
verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

from hyperscale.errors import ExitCode
from hyperscale.metrics import noise
from hyperscale.metrics.histogram import Histogram
from hyperscale.metrics.pairs import Metric, step_spreads, timeline_spreads
from hyperscale.metrics.results import (
    Results,
    StepResult,
    Struct,
    WorkflowResult,
    failed_share,
)

SCHEMA = "hyperscale.comparison/1"

Unit = Literal["/s", "share", "ms"]
Verdict = Literal["better", "worse", "same"]

METRICS: tuple[Metric, ...] = ("throughput", "error_share", "p50", "p95", "p99")
UNITS: dict[Metric, Unit] = {
    "throughput": "/s",
    "error_share": "share",
    "p50": "ms",
    "p95": "ms",
    "p99": "ms",
}
PERCENTS: dict[Metric, float] = {"p50": 50.0, "p95": 95.0, "p99": 99.0}
TOLERANCE = 0.05
ERROR_TOLERANCE = 0.001  # a tenth of a percentage point of all requests


class Change(Struct):
    """One number before and after.

    `change` with its 95 % interval `low`..`high` is relative (0.1 = 10 % more); for error_share
    it is the difference of the shares (0.01 = one percentage point more).
    """

    metric: Metric
    unit: Unit
    before: float
    after: float
    change: float
    low: float
    high: float
    p_value: float
    verdict: Verdict = "same"


class Compared(Struct):
    """A workflow (`step` empty) or one of its steps, in both runs."""

    workflow: str
    step: str
    changes: list[Change]
    verdict: Verdict = "same"

    @property
    def name(self) -> str:
        return f"{self.workflow}.{self.step}" if self.step else self.workflow


class Comparison(Struct):
    compared: list[Compared]  # each workflow followed by its steps
    only_before: list[str]  # steps the second run does not have
    only_after: list[str]
    notes: list[str]  # what makes the two runs hard to compare
    tolerance: float
    verdict: Literal["better", "worse", "same", "not comparable"] = "same"
    exit_code: int = ExitCode.PASSED
    reason: str = ""  # one sentence: the verdict and what decided it
    schema: str = SCHEMA


def compare(
    baseline: Results,
    candidate: Results,
    *,
    tolerance: float = TOLERANCE,
    error_tolerance: float = ERROR_TOLERANCE,
) -> Comparison:
    before = {workflow.name: workflow for workflow in baseline.workflows}
    after = {workflow.name: workflow for workflow in candidate.workflows}
    compared = [
        scope
        for name, workflow in before.items()
        if name in after
        for scope in _compare_workflow(workflow, after[name])
    ]
    names_before, names_after = _step_names(baseline), _step_names(candidate)
    comparison = Comparison(
        tolerance=tolerance,
        compared=compared,
        only_before=[name for name in names_before if name not in names_after],
        only_after=[name for name in names_after if name not in names_before],
        notes=_notes(baseline, candidate),
    )
    if not compared:
        comparison.verdict = "not comparable"
        comparison.exit_code = ExitCode.BAD_INPUT
        comparison.reason = "The two runs have no step with requests in common."
        return comparison
    _judge(comparison, error_tolerance)
    return comparison


class _Side(NamedTuple):
    """What one run knows of a workflow or step."""

    requests: int
    unsent: int
    failed: int
    elapsed_s: float
    service: Histogram

    @property
    def calls(self) -> int:
        return self.requests + self.unsent

    @property
    def error_share(self) -> float:
        return failed_share(self.failed, self.requests, self.unsent)


class _Noise(NamedTuple):
    """What timelines say about the uncertainty of a difference.

    `floor` is the variance they show and `inflation` how many times that is what independent
    requests would show. A step without a timeline is taken to be no calmer than its workflow.
    """

    floor: float
    inflation: float
    freedom: float


class _Test(NamedTuple):
    """A difference and its variance if requests were independent."""

    difference: float
    variance: float


def _compare_workflow(before: WorkflowResult, after: WorkflowResult) -> Iterator[Compared]:
    steps_after = {step.name: step for step in after.steps}
    common = [
        (step, steps_after[step.name])
        for step in before.steps
        if step.name in steps_after and (_calls(step) or _calls(steps_after[step.name]))
    ]
    if not common:
        return
    whole = (
        _side([old for old, _ in common], before.elapsed_s),
        _side([new for _, new in common], after.elapsed_s),
    )
    spreads = timeline_spreads(before.series, after.series)
    noises = {
        metric: _noise(test, spreads.get(metric))
        for metric in METRICS
        if (test := _test(metric, *whole)) is not None
    }
    yield Compared(workflow=before.name, step="", changes=_changes(*whole, noises))
    for old, new in common:
        sides = _side([old], before.elapsed_s), _side([new], after.elapsed_s)
        own = {
            metric: _noise(test, spread)
            for metric, spread in step_spreads(old.series, new.series).items()
            if (test := _test(metric, *sides)) is not None
        }
        changes = _changes(*sides, noises | own)
        yield Compared(workflow=before.name, step=old.name, changes=changes)


def _side(steps: list[StepResult], elapsed_s: float) -> _Side:
    service = Histogram()
    for step in steps:
        service.merge(Histogram.from_distribution(step.service))
    return _Side(
        requests=sum(step.count for step in steps),
        unsent=sum(step.unsent for step in steps),
        failed=sum(step.failed for step in steps),
        elapsed_s=max(elapsed_s, 1e-9),
        service=service,
    )


def _test(metric: Metric, before: _Side, after: _Side) -> _Test | None:
    if metric == "throughput":
        # Half a request more keeps the logarithm finite when one side has none.
        old, new = before.requests + 0.5, after.requests + 0.5
        difference = math.log(new / after.elapsed_s) - math.log(old / before.elapsed_s)
        return _Test(difference, 1 / old + 1 / new)
    if metric == "error_share":
        if not before.calls or not after.calls:
            return None
        difference = after.error_share - before.error_share
        return _Test(difference, _share_variance(before) + _share_variance(after))
    percent = PERCENTS[metric]
    if not all(noise.has_percentile(side.service, percent) for side in (before, after)):
        return None
    old, new = before.service.percentile(percent), after.service.percentile(percent)
    return _Test(
        math.log(max(new, 1e-9) / max(old, 1e-9)),
        noise.percentile_variance(before.service, percent)
        + noise.percentile_variance(after.service, percent),
    )


def _share_variance(side: _Side) -> float:
    share = (side.failed + 0.5) / (side.calls + 1)
    return share * (1 - share) / side.calls


def _noise(test: _Test, spread: noise.Spread | None) -> _Noise:
    if spread is None:
        return _Noise(0.0, noise.INFLATION_UNKNOWN, noise.FREEDOM_UNKNOWN)
    return _Noise(
        floor=spread.variance,
        inflation=max(1.0, spread.variance / test.variance),
        freedom=spread.freedom,
    )


def _changes(before: _Side, after: _Side, noises: dict[Metric, _Noise]) -> list[Change]:
    return [
        _change(metric, before, after, test, noises[metric])
        for metric in noises
        if (test := _test(metric, before, after)) is not None
    ]


def _change(metric: Metric, before: _Side, after: _Side, test: _Test, noisy: _Noise) -> Change:
    variance = max(noisy.floor, test.variance * noisy.inflation)
    margin = noise.margin(variance, noisy.freedom)
    interval = [test.difference - margin, test.difference, test.difference + margin]
    if metric != "error_share":  # the difference of two logarithms
        interval = [math.expm1(min(difference, 50.0)) for difference in interval]
    low, change, high = interval
    return Change(
        metric=metric,
        unit=UNITS[metric],
        before=_value(metric, before),
        after=_value(metric, after),
        change=change,
        low=low,
        high=high,
        p_value=noise.p_value(test.difference, variance, noisy.freedom),
    )


def _value(metric: Metric, side: _Side) -> float:
    if metric == "throughput":
        return side.requests / side.elapsed_s
    if metric == "error_share":
        return side.error_share
    return side.service.percentile(PERCENTS[metric]) * 1000


def _judge(comparison: Comparison, error_tolerance: float) -> None:
    changes = [(scope, change) for scope in comparison.compared for change in scope.changes]
    significant = noise.holm([change.p_value for _, change in changes])
    decided: dict[Verdict, list[str]] = {"worse": [], "better": [], "same": []}
    for (scope, change), sure in zip(changes, significant, strict=True):
        relevant = comparison.tolerance
        if change.metric == "error_share":
            relevant = max(error_tolerance, comparison.tolerance * change.before)
        if sure and abs(change.change) >= relevant:
            more_is_better = change.metric == "throughput"
            change.verdict = "better" if (change.change > 0) == more_is_better else "worse"
            decided[change.verdict].append(_sentence(scope, change))
    for scope in comparison.compared:
        scope.verdict = _overall({change.verdict for change in scope.changes})
    comparison.verdict = verdict = _overall({scope.verdict for scope in comparison.compared})
    if verdict == "worse":
        comparison.exit_code = ExitCode.THRESHOLDS_CROSSED
    if verdict == "same":
        comparison.reason = f"No change beyond noise and {comparison.tolerance:.0%}."
    else:
        first, *others = decided[verdict]
        more = f", and {len(others)} more" if others else ""
        comparison.reason = f"{verdict.capitalize()} beyond noise: {first}{more}."


def _overall(verdicts: set[Verdict]) -> Verdict:
    if "worse" in verdicts:
        return "worse"
    return "better" if "better" in verdicts else "same"


def _sentence(scope: Compared, change: Change) -> str:
    if change.metric == "error_share":
        return f"{scope.name} errors {change.before:.2%} → {change.after:.2%}"
    unit = "/s" if change.unit == "/s" else " ms"
    return (
        f"{scope.name} {change.metric} {change.change:+.1%} "
        f"({_number(change.before)}{unit} → {_number(change.after)}{unit})"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _step_names(results: Results) -> list[str]:
    return [f"{w.name}.{s.name}" for w in results.workflows for s in w.steps if _calls(s)]


def _calls(step: StepResult) -> int:
    return step.count + step.unsent


def _notes(baseline: Results, candidate: Results) -> list[str]:
    notes = []
    after = {workflow.name: workflow for workflow in candidate.workflows}
    for old in baseline.workflows:
        new = after.get(old.name)
        if new is None:
            continue
        if old.load != new.load:
            notes.append(f"{old.name} had another load: {old.load!r}, then {new.load!r}.")
        if min(len(old.series), len(new.series)) < noise.PAIRS_MIN:
            notes.append(
                f"{old.name} ran too short to show its own noise; differences are judged "
                "cautiously. Run at least 10 s."
            )
    for label, results in (("first", baseline), ("second", candidate)):
        if results.saturation:
            notes.append(f"In the {label} run: {results.saturation}")
        if results.cut is not None:
            notes.append(f"The {label} run was cut short: {results.cut_reason or results.cut}.")
    return notes
