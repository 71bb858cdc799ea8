"""Nothing secret leaves a generator process as text: all its reports pass here.

First failures are masked when they are described (`explain`), before anything is cut off. The
values that steps hand to one another are no text: they arrive as they were.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from hyperscale.engine.messages import Done, Failed, Progress, Report, StopTest, TornDown
from hyperscale.metrics.delta import Delta
from hyperscale.metrics.recorder import Tags
from hyperscale.workload.secrets import mask, mask_excerpt

T = TypeVar("T", bound=Done | Failed | TornDown)
_TEXTS = ("message", "hint", "detail", "error")


def masked(report: Report) -> Report:
    if isinstance(report, Progress):
        _mask_samples(report.delta)
        _mask_tags(report.delta)
        return report
    if isinstance(report, StopTest):
        return msgspec.structs.replace(report, reason=mask_excerpt(report.reason))
    if isinstance(report, Done | Failed | TornDown):
        return _without_secrets(report)
    return report


def _without_secrets(report: T) -> T:
    fields = {name: mask_excerpt(getattr(report, name)) for name in _TEXTS if hasattr(report, name)}
    if isinstance(report, Done):
        return msgspec.structs.replace(
            report, **fields, warnings=[*map(mask_excerpt, report.warnings)]
        )
    return msgspec.structs.replace(report, **fields)


def _mask_tags(delta: Delta) -> None:
    for request in delta.requests:
        if request.key.tags:
            tags = _without_values(request.key.tags)
            request.key = msgspec.structs.replace(request.key, tags=tags)
    for metric in delta.metrics:
        metric.tags = _without_values(metric.tags)


def _without_values(tags: Tags) -> Tags:
    return tuple((name, mask(value)) for name, value in tags)


def _mask_samples(delta: Delta) -> None:
    failures = [error for one in delta.requests for error in one.errors]
    failures += [error for step in delta.steps for error in step.errors]
    for error in failures:
        error.detail = mask_excerpt(error.detail)
        error.samples = [*map(mask_excerpt, error.samples)]
    for step in delta.steps:
        step.skips = {mask_excerpt(reason): count for reason, count in step.skips.items()}
    for check in delta.checks:
        check.samples = [*map(mask_excerpt, check.samples)]
