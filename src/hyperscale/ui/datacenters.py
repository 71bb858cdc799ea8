"""The datacenters of a run side by side, and the whole: percentiles are of merged histograms."""

from __future__ import annotations

from hyperscale.metrics.results import DatacenterResult, Results
from hyperscale.ui import text
from hyperscale.ui.output import Paint

HEADINGS = ("datacenter", "status", "#reqs", "#fails", "med", "p95", "p99", "max", "req/s")
TEXTS = 2  # columns that begin at the left
_UNREMARKABLE = ("running", "completing", "completed")


def rows(results: Results) -> list[tuple[str, ...]]:
    """A row for each, and the whole."""
    whole = [] if results.together is None else [results.together]
    return [_row(one) for one in (*results.datacenters, *whole)]


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
    """While it runs: how slow it is where, and who does not run."""
    told = [_told(one) for one in results.datacenters]
    if results.together is not None and results.together.requests and len(told) > 1:
        told.append(_told(results.together))
    return f"p99: {' · '.join(told)}"


def _told(one: DatacenterResult) -> str:
    if not one.requests:
        return f"{one.name} {one.status}"
    slow = f"{one.name} {text.short_duration(one.duration.p99_ms)}"
    return f"{slow} ({one.status})" if one.status not in ("", *_UNREMARKABLE) else slow


def _row(one: DatacenterResult) -> tuple[str, ...]:
    rate = one.requests / one.elapsed_s if one.elapsed_s else 0.0
    spread = one.duration
    slow = (spread.p50_ms, spread.p95_ms, spread.p99_ms, spread.max_ms)
    latencies = map(text.short_duration, slow) if spread.count else (text.NOTHING,) * len(slow)
    return (
        f"{one.name}={one.share}" if one.share else one.name, one.status,
        f"{one.requests:,}", f"{one.failed:,}", *latencies, text.rate(rate),
    )  # fmt: skip
