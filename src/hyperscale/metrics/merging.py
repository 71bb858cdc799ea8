"""Several deltas as one: of the cores of a machine, or of a time when nobody could be told.

Applying the merged delta gives the same totals and histograms as applying each. Only which moment
within the merged time something happened is lost, and failures beyond the kinds that are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from hyperscale.metrics.delta import CheckDelta, Delta, MetricDelta, StepDelta
from hyperscale.metrics.failures import SAMPLES_MAX, FailureKinds
from hyperscale.metrics.histogram import add_up

T = TypeVar("T", StepDelta, CheckDelta, MetricDelta)


def merge_deltas(deltas: Iterable[Delta], seq: int, vus: int | None = None) -> Delta:
    """`vus` are the users alive now; without it there is one delta per core and theirs add up."""
    given = list(deltas)
    steps = _by_name([step for delta in given for step in delta.steps])
    checks = _by_name([check for delta in given for check in delta.checks])
    metrics = _by_name([metric for delta in given for metric in delta.metrics])
    return Delta(
        seq=seq,
        vus=sum([delta.vus for delta in given]) if vus is None else vus,
        dropped=sum([delta.dropped for delta in given]),
        interrupted=sum([delta.interrupted for delta in given]),
        iteration=add_up([delta.iteration for delta in given]),
        steps=[_merge_steps(several) for several in steps],
        checks=[_merge_checks(several) for several in checks],
        metrics=[_merge_metrics(several) for several in metrics],
        lag=add_up([delta.lag for delta in given]),
        cpu=max([delta.cpu for delta in given], default=0.0),
        rss_mb=max([delta.rss_mb for delta in given], default=0.0),
    )


def _by_name(parts: list[T]) -> list[list[T]]:
    if len({part.name for part in parts}) < 2:
        return [parts] if parts else []
    groups: dict[str, list[T]] = {}
    for part in parts:
        groups.setdefault(part.name, []).append(part)
    return list(groups.values())


def _merge_steps(several: Sequence[StepDelta]) -> StepDelta:
    if len(several) == 1:
        return several[0]
    late = any(step.response is not None for step in several)
    phases = dict.fromkeys(phase for step in several for phase in step.phases)
    statuses: dict[int, int] = {}
    failures = FailureKinds()
    for step in several:
        for status, count in step.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
        if step.errors:
            failures.merge(step.errors)
    return StepDelta(
        name=several[0].name,
        count=sum([step.count for step in several]),
        failed=sum([step.failed for step in several]),
        bytes_in=sum([step.bytes_in for step in several]),
        bytes_out=sum([step.bytes_out for step in several]),
        service=add_up([step.service for step in several]),
        response=add_up([step.response or step.service for step in several]) if late else None,
        phases={
            phase: total
            for phase in phases
            if (total := add_up([step.phases.get(phase) for step in several])) is not None
        },
        statuses=statuses,
        errors=failures.snapshot(),
    )


def _merge_checks(several: Sequence[CheckDelta]) -> CheckDelta:
    samples = [sample for check in several for sample in check.samples]
    return CheckDelta(
        several[0].name,
        sum(check.passed for check in several),
        sum(check.failed for check in several),
        samples[:SAMPLES_MAX],
    )


def _merge_metrics(several: Sequence[MetricDelta]) -> MetricDelta:
    values = add_up(metric.values for metric in several)
    assert values is not None, "a metric is told only with a value"
    return MetricDelta(several[0].name, values, several[-1].last)
