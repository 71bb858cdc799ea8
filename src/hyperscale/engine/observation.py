"""What a threshold speaks of, taken from results: a histogram, how many, how many of them failed.

The difference of two observations is the time between them, so a rule for ten seconds is judged as
one for the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from hyperscale.metrics.arrays import np
from hyperscale.metrics.histogram import LATENCY, VALUES, Histogram, Sparse
from hyperscale.metrics.results import Distribution, RequestResult, StepResult, WorkflowResult
from hyperscale.workload.selectors import Selector
from hyperscale.workload.thresholds import (
    AGGREGATIONS,
    FAMILY_OF_KIND,
    METRICS,
    Subject,
    Threshold,
    aggregations_of,
)

# The sums of a step and those of its requests of one name have the same fields.
Requests = RequestResult | StepResult


@dataclass
class Observation:
    """`share` is what `rate` means when it is a share (failed requests, passed checks)."""

    histogram: Histogram = field(default_factory=Histogram)
    count: float = 0.0
    hits: float = 0.0  # failed requests, passed checks, sum of a custom rate
    seconds: float = 0.0
    share: bool = False
    value: float = 0.0
    missing: str = ""  # why there is nothing to judge; not even zero

    def since(self, before: Observation) -> Observation:
        return Observation(
            histogram=_difference(self.histogram, before.histogram),
            count=self.count - before.count,
            hits=self.hits - before.hits,
            seconds=self.seconds - before.seconds,
            share=self.share,
            value=self.value,
            missing=self.missing,
        )

    def measure(self, threshold: Threshold) -> float | None:
        """The number the threshold speaks of; None when nothing was observed."""
        aggregation = threshold.aggregation
        if self.missing:
            return None
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
    known = METRICS.get(threshold.metric)
    observation = Observation(seconds=workflow.elapsed_s)
    _OBSERVE[known.of if known else "value"](observation, threshold, workflow)
    return observation


def _observe_requests(
    observation: Observation, threshold: Threshold, workflow: WorkflowResult
) -> None:
    metric, selector = threshold.metric, threshold.selector
    of_names = bool(selector.name or selector.method or selector.kind or selector.tags)
    by_status = bool(selector.status) and metric != "http_reqs"
    found: list[Requests] = []
    for step in _steps(selector, workflow):
        found += _of_names(step, selector) if of_names or by_status else [step]
    if metric.startswith("http_") and not selector.kind and not selector.step:
        found = _of_http(found)
    if of_names and not found:
        observation.missing = "there were no such requests"
    if by_status:  # their requests are told apart by it
        found = [each for each in found if each.tags.get("status") == selector.status]
    if selector.status and not by_status:
        observation.count = sum(each.statuses.get(selector.status, 0) for each in found)
        return
    if metric in _AMOUNTS:
        observation.count = sum(_AMOUNTS[metric](each) for each in found)
    elif metric == "http_req_failed":
        observation.share = True
        observation.count = sum(each.count + each.unsent for each in found)
        observation.hits = sum(each.failed for each in found)
    else:
        observation.count = sum(each.count for each in found)
        _merge(observation, (_duration(metric, each) for each in found))


def _observe_steps(
    observation: Observation, threshold: Threshold, workflow: WorkflowResult
) -> None:
    selector = threshold.selector
    found = [
        step
        for step in _steps(selector, workflow)
        if selector.kind in ("", step.kind) and _has(step.tags, selector.tags)
    ]
    if threshold.metric == "step_failed":
        observation.share = True
        observation.count = sum(step.runs for step in found)
        observation.hits = sum(step.runs_failed for step in found)
    else:
        _merge(observation, (step.duration for step in found))
        observation.count = observation.histogram.count


def _observe_groups(
    observation: Observation, threshold: Threshold, workflow: WorkflowResult
) -> None:
    wanted = threshold.selector.group
    _merge(observation, (each.duration for each in workflow.groups if wanted in ("", each.name)))
    observation.count = observation.histogram.count


def _observe_checks(
    observation: Observation, threshold: Threshold, workflow: WorkflowResult
) -> None:
    observation.share = True
    for check in workflow.checks:
        if threshold.selector.check in ("", check.name):
            observation.count += check.passed + check.failed
            observation.hits += check.passed


def _observe_workflow(
    observation: Observation, threshold: Threshold, workflow: WorkflowResult
) -> None:
    match threshold.metric:
        case "iteration_duration":
            _merge(observation, [workflow.iteration])
            observation.count = workflow.iterations
        case "iterations":
            observation.count = workflow.iterations
        case "dropped_iterations":
            observation.count = workflow.dropped_iterations
        case "vus":
            observation.count = 1
            seen = [point.vus for point in workflow.series]
            # After the end, those who were there last.
            observation.value = workflow.vus or next(filter(None, reversed(seen)), 0)
            observation.histogram = Histogram(VALUES)
            observation.histogram.record_many(np.array(seen, float))


def _observe_values(
    observation: Observation, threshold: Threshold, workflow: WorkflowResult
) -> None:
    tags = threshold.selector.tags
    observation.histogram = Histogram(VALUES)
    found = [m for m in workflow.metrics if m.name == threshold.metric and _has(m.tags, tags)]
    if not found and (tags or threshold.family != "counter"):
        observation.missing = "nothing was recorded"
    for each in found:
        family = FAMILY_OF_KIND[each.kind]
        if threshold.aggregation not in AGGREGATIONS[family]:
            observation.missing = f"it is a {family}, which has {aggregations_of(family)}"
        observation.share = each.kind == "rate"
        observation.count += each.value if each.kind == "count" else each.count
        observation.hits += each.value * each.count
        observation.value = each.value
        if each.distribution is not None:
            observation.histogram.merge(Histogram.from_distribution(each.distribution, VALUES))


_OBSERVE: dict[Subject, Callable[[Observation, Threshold, WorkflowResult], None]] = {
    "request": _observe_requests,
    "step": _observe_steps,
    "group": _observe_groups,
    "check": _observe_checks,
    "workflow": _observe_workflow,
    "value": _observe_values,
}
_AMOUNTS: dict[str, Callable[[Requests], int]] = {
    "http_reqs": lambda each: each.count,
    "data_received": lambda each: each.bytes_in,
    "data_sent": lambda each: each.bytes_out,
}
_PHASES = {
    "http_req_looking_up": "dns",
    "http_req_connecting": "connect",
    "http_req_tls_handshaking": "tls",
    "http_req_sending": "write",
    "http_req_waiting": "wait",
    "http_req_receiving": "read",
}


def _duration(metric: str, each: Requests) -> Distribution:
    if metric in _PHASES:
        return each.phases.get(_PHASES[metric], Distribution())
    return each.response if metric == "http_req_response" else each.service


def _steps(selector: Selector, workflow: WorkflowResult) -> Iterable[StepResult]:
    return (
        step
        for step in workflow.steps
        if selector.step in ("", step.name) and selector.group in ("", step.group)
    )


def _of_http(found: list[Requests]) -> list[Requests]:
    """Without those of other protocols, which have metrics of their own; in a test that has no
    others, they are meant."""
    kept = [each for each in found if each.kind in ("http", "custom")]
    return kept or found


def _of_names(step: StepResult, selector: Selector) -> list[RequestResult]:
    return [
        each
        for each in step.requests
        if selector.name in ("", each.name)
        and selector.method in ("", each.method)
        and selector.kind in ("", each.kind)
        and _has(each.tags, selector.tags)
    ]


def _has(tags: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return wanted.items() <= tags.items()


def _merge(observation: Observation, distributions: Iterable[Distribution]) -> None:
    for distribution in distributions:
        observation.histogram.merge(Histogram.from_distribution(distribution, LATENCY))


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
