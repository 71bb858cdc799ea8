"""Several deltas as one: of the cores of a machine, or of a time when nobody could be told.

Applying the merged delta gives the same totals and histograms as applying each. Only which moment
within the merged time something happened is lost, and failures beyond the kinds that are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from hyperscale.metrics.delta import (
    CheckDelta,
    Delta,
    ErrorDelta,
    GroupDelta,
    MetricDelta,
    RequestDelta,
    StepDelta,
)
from hyperscale.metrics.failures import SAMPLES_MAX, FailureKinds, add_counts, earlier
from hyperscale.metrics.histogram import add_up

T = TypeVar("T", RequestDelta, StepDelta, GroupDelta, CheckDelta, MetricDelta)


def merge_deltas(deltas: Iterable[Delta], seq: int, vus: int | None = None) -> Delta:
    """`vus` are the users alive now; without it there is one delta per core and theirs add up."""
    given = list(deltas)
    requests = _alike([request for delta in given for request in delta.requests], _request_key)
    steps = _alike([step for delta in given for step in delta.steps], _name)
    groups = _alike([group for delta in given for group in delta.groups], _name)
    checks = _alike([check for delta in given for check in delta.checks], _name)
    metrics = _alike([metric for delta in given for metric in delta.metrics], _metric_key)
    unmeasured: dict[str, int] = {}
    for delta in given:
        add_counts(unmeasured, delta.unmeasured)
    return Delta(
        seq=seq,
        vus=sum([delta.vus for delta in given]) if vus is None else vus,
        dropped=sum([delta.dropped for delta in given]),
        interrupted=sum([delta.interrupted for delta in given]),
        iteration=add_up([delta.iteration for delta in given]),
        requests=[_merge_requests(several) for several in requests],
        steps=[_merge_steps(several) for several in steps],
        groups=[_merge_groups(several) for several in groups],
        checks=[_merge_checks(several) for several in checks],
        metrics=[_merge_metrics(several) for several in metrics],
        lag=add_up([delta.lag for delta in given]),
        cpu=max([delta.cpu for delta in given], default=0.0),
        rss_mb=max([delta.rss_mb for delta in given], default=0.0),
        stopped_iterations=sum([delta.stopped_iterations for delta in given]),
        stopped_users=sum([delta.stopped_users for delta in given]),
        unmeasured=unmeasured,
        cpu_s=math.fsum([delta.cpu_s for delta in given]),
        offered=math.fsum([delta.offered for delta in given]),
    )


def _name(told: StepDelta | GroupDelta | CheckDelta) -> object:
    return told.name


def _request_key(told: RequestDelta) -> object:
    return told.key


def _metric_key(told: MetricDelta) -> object:
    return told.name, told.kind, told.tags


def _alike(parts: list[T], key: Callable[[T], object]) -> list[list[T]]:
    groups: dict[object, list[T]] = {}
    for part in parts:
        groups.setdefault(key(part), []).append(part)
    return list(groups.values())


def _merge_requests(several: Sequence[RequestDelta]) -> RequestDelta:
    if len(several) == 1:
        return several[0]
    late = any(one.response is not None for one in several)
    phases = dict.fromkeys(phase for one in several for phase in one.phases)
    statuses: dict[int, int] = {}
    for one in several:
        for status, count in one.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
    return RequestDelta(
        several[0].key,
        count=sum([one.count for one in several]),
        failed=sum([one.failed for one in several]),
        unsent=sum([one.unsent for one in several]),
        bytes_in=sum([one.bytes_in for one in several]),
        bytes_out=sum([one.bytes_out for one in several]),
        service=add_up([one.service for one in several]),
        response=add_up([one.response or one.service for one in several]) if late else None,
        phases={
            phase: total
            for phase in phases
            if (total := add_up([one.phases.get(phase) for one in several])) is not None
        },
        statuses=statuses,
        errors=_merge_errors(several),
    )


def _merge_steps(several: Sequence[StepDelta]) -> StepDelta:
    if len(several) == 1:
        return several[0]
    skips: dict[str, int] = {}
    for step in several:
        add_counts(skips, step.skips)
    return StepDelta(
        several[0].name,
        runs=sum([step.runs for step in several]),
        failed=sum([step.failed for step in several]),
        interrupted=sum([step.interrupted for step in several]),
        duration=add_up([step.duration for step in several]),
        skips=skips,
        errors=_merge_errors(several),
    )


def _merge_errors(several: Sequence[RequestDelta] | Sequence[StepDelta]) -> list[ErrorDelta]:
    failures = FailureKinds()
    for one in several:
        if one.errors:
            failures.merge(one.errors)
    return failures.snapshot()


def _merge_groups(several: Sequence[GroupDelta]) -> GroupDelta:
    duration = add_up(group.duration for group in several)
    assert duration is not None, "a group is told only with a duration"
    return GroupDelta(several[0].name, duration)


def _merge_checks(several: Sequence[CheckDelta]) -> CheckDelta:
    samples = [sample for check in several for sample in check.samples]
    first = None
    for check in several:
        first = earlier(first, check.first)
    return CheckDelta(
        several[0].name,
        sum(check.passed for check in several),
        sum(check.failed for check in several),
        samples[:SAMPLES_MAX],
        first,
    )


def _merge_metrics(several: Sequence[MetricDelta]) -> MetricDelta:
    values = add_up(metric.values for metric in several)
    assert values is not None, "a metric is told only with a value"
    one = several[0]
    return MetricDelta(one.name, values, several[-1].last, one.kind, one.tags)
