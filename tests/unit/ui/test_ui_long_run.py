"""A long run is fine at its end and coarse at its beginning; its curves must not show that."""

from __future__ import annotations

import re
from itertools import accumulate

from hyperscale.metrics.results import Point, WorkflowResult
from hyperscale.ui import plot
from hyperscale.ui.html.timeline import timeline
from hyperscale.ui.live.charts import Charts


def long_run() -> WorkflowResult:
    """100 requests a second all the time, though in every second there are 50 or 150."""
    widths_s = [60.0] * 180 + [10.0] * 360 + [1.0] * 1_000
    series, at_s = [], 0.0
    for number, width_s in enumerate(widths_s):
        requests = int(100 * width_s) if width_s > 1 else (50, 150)[number % 2]
        series.append(
            Point(
                at_s=at_s,
                width_s=width_s,
                requests=requests,
                vus=5,
                p50_ms=10.0,
                p95_ms=20.0,
                p99_ms=30.0,
                max_ms=40.0,
                response_p99_ms=30.0,
            )
        )
        at_s += width_s
    return WorkflowResult(name="Soak", state="finished", elapsed_s=at_s, series=series)


def test_the_terminal_shows_a_steady_run_as_steady() -> None:
    lines = Charts().draw(long_run(), 70, 9, plot.ASCII)
    rows = ["".join(segment.text for segment in line)[8:] for line in lines[1:-1]]
    drawn = [row for row in rows if "*" in row]
    assert len(drawn) == 1
    assert drawn[0].count("*") == len(drawn[0].rstrip())


def test_the_report_shows_a_steady_run_as_steady() -> None:
    page = str(timeline(long_run(), 0))
    (path,) = re.findall(r'<path d="M\d+ \d+l([^"]*)" class="line requests"', page)
    steps = [int(number) for number in re.findall(r"-?\d+", path)]
    assert len(steps) > 2 * 400
    heights = list(accumulate(steps[1::2]))
    # Of 1,000; a second with 150 requests would stand 300 or more above one with 100.
    assert max(heights) - min(heights) < 50
