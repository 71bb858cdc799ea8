"""Results in a few lines, for notebooks, data frames and the text of a failed assertion.

Plain and the same everywhere; the summary that a run prints, with everything in it, is made in
`ui`, which lies above this room.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyperscale.metrics.results import (
        Distribution,
        ErrorCount,
        RequestResult,
        Results,
        StepResult,
        ThresholdResult,
    )

_HEADINGS = ("step", "requests", "failed", "p50 ms", "p95 ms", "p99 ms", "max ms", "req/s")
_ERRORS_MAX = 5
_COUNTS = ("kind", "method", "count", "failed", "unsent", "rate", "bytes_in", "bytes_out")
_LATENCIES = (
    *("mean_ms", "stdev_ms", "min_ms", "p50_ms", "p75_ms", "p90_ms", "p95_ms", "p99_ms"),
    *("p999_ms", "max_ms"),
)


def one_line(results: Results) -> str:
    """The verdict, and what decided it."""
    verdict = "passed" if results.passed else f"failed (exit {results.exit_code})"
    parts = [
        f"{results.name or 'run'} {verdict}",
        f"{results.requests:,} requests, {results.failed:,} failed, {results.elapsed_s:.1f} s",
        *(f"crossed {_threshold(each)}" for each in results.thresholds if not each.passed),
    ]
    if results.cut_reason:
        parts.append(results.cut_reason)
    return "; ".join(parts)


def summary(results: Results) -> str:
    lines = [one_line(results)]
    if results.thresholds:
        lines += ["", *(f"  {_sign(each)} {_threshold(each)}" for each in results.thresholds)]
    if steps := list(_steps(results)):
        lines += ["", *_aligned([_HEADINGS, *map(_cells, steps)])]
    if errors := list(islice(_errors(steps), _ERRORS_MAX)):
        lines += ["", *(f"  {line}" for line in errors)]
    if notes := _notes(results):
        lines += ["", *notes]
    return "\n".join(lines) + "\n"


def as_html(results: Results) -> str:
    thresholds = "".join(f"<li>{_sign(t)} {escape(_threshold(t))}</li>" for t in results.thresholds)
    steps = list(_steps(results))
    rows = [_html_row("th", _HEADINGS), *(_html_row("td", _cells(step)) for step in steps)]
    others = [*islice(_errors(steps), _ERRORS_MAX), *_notes(results)]
    return "".join(
        (
            f"<p><b>{escape(one_line(results))}</b></p>",
            f"<ul style='list-style: none'>{thresholds}</ul>" if thresholds else "",
            f"<table>{''.join(rows)}</table>" if steps else "",
            *(f"<p>{escape(line)}</p>" for line in others),
        )
    )


def rows(results: Results) -> list[dict[str, Any]]:
    """One for each name of requests in a step, or for the step if it made none. Columns are named
    as in the CSV file."""
    found = []
    for step in _steps(results):
        found += [_row(step, request) for request in step.requests] or [_row(step, step)]
    return found


def _row(step: StepResult, numbers: StepResult | RequestResult) -> dict[str, Any]:
    return {
        "workflow": step.workflow,
        "step": step.name,
        "request": "" if numbers is step else numbers.name,
        **{name: getattr(numbers, name) for name in _COUNTS},
        **{f"service_{name}": getattr(numbers.service, name) for name in _LATENCIES},
        **{f"response_{name}": getattr(numbers.response, name) for name in _LATENCIES},
        "tags": " ".join(f"{name}={value}" for name, value in numbers.tags.items()),
    }


def _steps(results: Results) -> Iterator[StepResult]:
    return (step for workflow in results.workflows for step in workflow.steps)


def _cells(step: StepResult) -> tuple[str, ...]:
    return (
        f"{step.workflow}.{step.name}",
        f"{step.count:,}",
        f"{step.failed:,}",
        *_latencies(step.service),
        f"{step.rate:,.1f}",
    )


def _latencies(latency: Distribution) -> tuple[str, ...]:
    if not latency.count:
        return ("-",) * 4
    shown = (latency.p50_ms, latency.p95_ms, latency.p99_ms, latency.max_ms)
    return tuple(f"{value:,.2f}" for value in shown)


def _sign(threshold: ThresholdResult) -> str:
    return "✓" if threshold.passed else "✗"


def _threshold(threshold: ThresholdResult) -> str:
    actual = "nothing to judge" if threshold.actual is None else threshold.actual_text
    return f"{threshold.scope} '{threshold.expression}' {actual}".rstrip()


def _errors(steps: list[StepResult]) -> Iterator[str]:
    """The most frequent first."""
    found = [(step, error) for step in steps for error in step.errors]
    for step, error in sorted(found, key=lambda pair: -pair[1].count):
        yield f"{error.count:,} × {step.workflow}.{step.name}  {_explained(error)}"


def _explained(error: ErrorCount) -> str:
    sample = error.samples[0] if error.samples else f"{error.outcome} {error.detail}"
    where = error.first.where if error.first else ""
    return " ".join(f"{sample} {where}".split())


def _notes(results: Results) -> list[str]:
    return [*results.lost, *filter(None, [results.saturation]), *results.warnings]


def _aligned(table: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for name, *numbers in table:
        cells = (number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True))
        yield "  ".join(["", name.ljust(widths[0]), *cells])


def _html_row(tag: str, cells: tuple[str, ...]) -> str:
    name, *numbers = (escape(cell) for cell in cells)
    right = "".join(f"<{tag} style='text-align: right'>{number}</{tag}>" for number in numbers)
    return f"<tr><{tag} style='text-align: left'>{name}</{tag}>{right}</tr>"
