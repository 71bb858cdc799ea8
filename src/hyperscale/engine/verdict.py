"""Thresholds judged: on the whole run at its end, and on the last second while it runs.

A threshold sees one observation: a histogram, how many, how many failed, over how long. The
difference of two observations is the time between them, so `for 10s` and `abort` use the same
judgement as the end of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hyperscale.metrics.histogram import LATENCY, VALUES, Histogram, Sparse
from hyperscale.metrics.results import Distribution, StepResult, ThresholdResult, WorkflowResult
from hyperscale.workload.thresholds import Threshold


@dataclass
class Observation:
    """`share` is what `rate` means when it is a share (failed requests, passed checks)."""

    histogram: Histogram = field(default_factory=Histogram)
    count: float = 0.0
    hits: float = 0.0  # failed requests, passed checks, sum of a custom rate
    seconds: float = 0.0
    share: bool = False
    value: float = 0.0

    def since(self, before: Observation) -> Observation:
        return Observation(
            histogram=_difference(self.histogram, before.histogram),
            count=self.count - before.count,
            hits=self.hits - before.hits,
            seconds=self.seconds - before.seconds,
            share=self.share,
            value=self.value,
        )

    def measure(self, threshold: Threshold) -> float | None:
        """The number the threshold speaks of; None when nothing was observed."""
        aggregation = threshold.aggregation
        if aggregation == "count":
            return self.hits if self.share else self.count
        if aggregation == "rate" and not self.share:
            return self.count / self.seconds if self.seconds > 0 else None
        if not self.count:
            return None
        if aggregation == "rate":
            return self.hits / self.count
        if aggregation == "value":
            return self.value
        if not self.histogram.count:
            return None
        unit = self.histogram.scale.unit
        if aggregation == "avg":
            return self.histogram.mean * unit
        percent = {"min": 0.0, "med": 50.0, "max": 100.0}.get(aggregation, threshold.percentile)
        return self.histogram.percentile(percent) * unit


def observe(threshold: Threshold, workflow: WorkflowResult) -> Observation:
    """What the threshold speaks of, over the whole run so far."""
    observation = Observation(seconds=workflow.elapsed_s)
    metric = threshold.metric
    if metric in _VIEWS:
        observation.share = metric == "http_req_failed"
        for step in workflow.steps:
            if threshold.step in ("", step.name):
                observation.count += step.count
                observation.hits += step.failed
                observation.histogram.merge(_histogram(_VIEWS[metric](step)))
    elif metric == "checks":
        observation.share = True
        for check in workflow.checks:
            if threshold.step in ("", check.name):
                observation.count += check.passed + check.failed
                observation.hits += check.passed
    elif metric == "iteration_duration":
        observation.histogram.merge(_histogram(workflow.iteration))
        observation.count = workflow.iterations
    elif metric == "vus":
        observation.count = 1
        observation.value = workflow.vus
        observation.histogram = Histogram(VALUES)
        observation.histogram.record_many(np.array([p.vus for p in workflow.series], float))
    elif metric in _COUNTS:
        observation.count = _COUNTS[metric](workflow)
    else:
        (found,) = [m for m in workflow.metrics if m.name == metric]
        observation.share = found.kind == "rate"
        observation.count = found.value if found.kind == "count" else found.count
        observation.hits = found.value * found.count
        observation.value = found.value
        if found.distribution is not None:
            observation.histogram = Histogram.from_distribution(found.distribution, VALUES)
    return observation


_VIEWS: dict[str, Callable[[StepResult], Distribution]] = {
    "http_req_duration": lambda step: step.service,
    "http_req_response": lambda step: step.response,
    "http_req_failed": lambda step: step.service,
    "http_reqs": lambda step: step.service,
}
_COUNTS: dict[str, Callable[[WorkflowResult], int]] = {
    "iterations": lambda workflow: workflow.iterations,
    "dropped_iterations": lambda workflow: workflow.dropped_iterations,
    "data_received": lambda workflow: sum(step.bytes_in for step in workflow.steps),
    "data_sent": lambda workflow: sum(step.bytes_out for step in workflow.steps),
}


def _histogram(distribution: Distribution) -> Histogram:
    return Histogram.from_distribution(distribution, LATENCY)


def _difference(now: Histogram, before: Histogram) -> Histogram:
    new, old = now.sparse(), before.sparse()
    if new is None or old is None:
        return now
    known = dict(zip(old.buckets, old.counts, strict=True))
    left = {
        bucket: grown
        for bucket, count in zip(new.buckets, new.counts, strict=True)
        if (grown := count - known.get(bucket, 0)) > 0
    }
    if not left:
        return Histogram(now.scale)
    edges = now.scale.edges
    return Histogram.of(
        Sparse.of(
            buckets=list(left),
            counts=list(left.values()),
            low=max(new.low, float(edges[min(left)])),
            high=min(new.high, float(edges[max(left) + 1])),
            total=new.total - old.total,
            squares=new.squares - old.squares,
        ),
        now.scale,
    )


class Standing(NamedTuple):
    """How a `for` threshold stands: since what load time it does not hold, if so, and the value
    with which it was crossed, if it ever was."""

    bad_since_s: float | None = None
    crossing: float | None = None


class Judge:
    """One threshold of one workflow over the life of a run: the `number`th of that workflow."""

    def __init__(self, threshold: Threshold, workflow: str, number: int = 0) -> None:
        self.threshold = threshold
        self.workflow = workflow
        self.number = number
        self.standing = Standing()
        self.aborted_at_s: float | None = None
        self._before: Observation | None = Observation()

    def resume(self, standing: Standing) -> None:
        """Go on where another judge was: what it has seen is not judged again."""
        self.standing = standing
        self._before = None

    def is_news(self, known: Standing) -> bool:
        """It is worth remembering against what is known of it. A bad moment is not yet: it must
        have lasted for a quarter of the time it may."""
        since_s = self.standing.bad_since_s
        if self.standing == known or self._before is None:
            return False
        if since_s is None or self.standing.crossing != known.crossing:
            return True
        return self._before.seconds - since_s >= self.threshold.for_s / 4

    def watch(self, workflow: WorkflowResult) -> bool:
        """Look at the run while it goes on; True when it must be aborted now."""
        now = observe(self.threshold, workflow)
        if self.threshold.for_s:
            if self._before is not None:
                self._look(self._before, now)
            self._before = now
            crossed = self.standing.crossing is not None
        else:
            actual = now.measure(self.threshold)
            crossed = actual is not None and not self.threshold.holds(actual)
        if crossed and self.threshold.abort and workflow.elapsed_s >= self.threshold.delay_s:
            self.aborted_at_s = workflow.elapsed_s
        return self.aborted_at_s is not None

    def _look(self, before: Observation, now: Observation) -> None:
        actual = now.since(before).measure(self.threshold)
        since_s, crossing = self.standing
        if actual is None or self.threshold.holds(actual):
            since_s = None
        elif since_s is None:
            since_s = before.seconds
        if since_s is not None and now.seconds - since_s >= self.threshold.for_s:
            crossing = actual
        self.standing = Standing(since_s, crossing)

    def judge(self, workflow: WorkflowResult) -> ThresholdResult:
        observation = observe(self.threshold, workflow)
        actual = observation.measure(self.threshold)
        if self.threshold.for_s:
            crossing = self.standing.crossing
            passed = crossing is None and actual is not None
            actual = actual if crossing is None else crossing
        else:
            passed = actual is not None and self.threshold.holds(actual)
        return ThresholdResult(
            expression=self.threshold.expression,
            scope=f"{self.workflow}: {self.threshold.scope}",
            passed=passed,
            actual=actual,
            actual_text=_text(self.threshold, actual, observation),
            aborted_at_s=self.aborted_at_s,
        )


def _text(threshold: Threshold, actual: float | None, observation: Observation) -> str:
    is_percentile = threshold.aggregation == "p"
    name = f"p({threshold.percentile:g})" if is_percentile else threshold.aggregation
    if actual is None:
        return f"{name}: nothing to judge"
    if threshold.aggregation == "rate" and observation.share:
        return f"{name}={100 * actual:.{_digits(100 * actual, 100 * threshold.value)}f}%"
    if threshold.aggregation in ("count", "value"):
        return f"{name}={actual:,.10g}"
    unit = "ms" if observation.histogram.scale is LATENCY else ""
    unit = "/s" if threshold.aggregation == "rate" else unit
    return f"{name}={actual:,.{_digits(actual, threshold.value)}f}{unit}"


def _digits(actual: float, limit: float) -> int:
    """As many as it takes to see on which side of its limit a number is, and at least two."""
    return next(
        (n for n in range(2, 9) if actual == limit or round(actual, n) != round(limit, n)), 9
    )
