"""The datacenters of a run side by side, and the whole: percentiles are of merged histograms."""

from __future__ import annotations

from hyperscale.metrics.histogram import Histogram
from hyperscale.metrics.results import DatacenterResult, Distribution, Results
from hyperscale.ui import text
from hyperscale.ui.output import Paint

HEADINGS = ("datacenter", "status", "#reqs", "#fails", "med", "p95", "p99", "max", "req/s")
TEXTS = 2  # columns that begin at the left


def whole(results: Results) -> DatacenterResult:
    """All of them as one."""
    total = Histogram()
    for one in results.datacenters:
        if one.duration.buckets:
            total.merge(Histogram.from_distribution(one.duration))
    return DatacenterResult(
        name="all",
        status="",
        requests=sum(one.requests for one in results.datacenters),
        failed=sum(one.failed for one in results.datacenters),
        elapsed_s=max(one.elapsed_s for one in results.datacenters),
        duration=total.distribution(),
    )


def rows(results: Results) -> list[tuple[str, ...]]:
    """A row for each, and the whole."""
    return [_row(one) for one in (*results.datacenters, whole(results))]


def datacenter_table(results: Results, paint: Paint) -> list[str]:
    cells = [HEADINGS, *rows(results)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for number, row in enumerate(cells):
        line = "  " + "  ".join(
            cell.ljust(width) if place < TEXTS else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append(paint.faint(line) if number == 0 else _painted(line, row, paint))
    return lines


def _painted(line: str, row: tuple[str, ...], paint: Paint) -> str:
    return paint.bad(line) if row[1] in ("lost", "failed") else line


def datacenter_line(results: Results) -> str:
    """While it runs: who is where."""
    told = (
        f"{one.name} {one.status}"
        if one.status not in ("running", "completing")
        else f"{one.name} {text.short_count(one.requests)}"
        for one in results.datacenters
    )
    return " · ".join(told)


def _row(one: DatacenterResult) -> tuple[str, ...]:
    rate = one.requests / one.elapsed_s if one.elapsed_s else 0.0
    return (
        one.name, one.status, f"{one.requests:,}", f"{one.failed:,}", *_latencies(one.duration),
        text.rate(rate),
    )  # fmt: skip


def _latencies(spread: Distribution) -> tuple[str, ...]:
    if not spread.count:
        return (text.NOTHING,) * 4
    found = (spread.p50_ms, spread.p95_ms, spread.p99_ms, spread.max_ms)
    return tuple(map(text.short_duration, found))
