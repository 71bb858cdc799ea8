"""A page of a run of an hour with 1,000 steps, all of which change every second; for page.py."""

from __future__ import annotations

import asyncio
import math
import random
import time

import numpy as np

from hyperscale.metrics import tiers
from hyperscale.metrics.histogram import Histogram
from hyperscale.metrics.ranges import ranges
from hyperscale.metrics.results import (
    Distribution,
    Mark,
    Point,
    Results,
    StepResult,
    WorkflowResult,
)
from hyperscale.ui.web.beside_run import RunPage

STEPS = 1_000
HOUR_S = 3_600.0


class Hour:
    def __init__(self) -> None:
        self._began = time.monotonic() - HOUR_S
        self._points: dict[tiers.Stretch, Point] = {}
        histogram = Histogram()
        histogram.record_many(np.random.default_rng(1).lognormal(-4.5, 0.8, 3_000))
        self._ranges = ranges(histogram)

    def results(self) -> Results:
        now_s = time.monotonic() - self._began
        cells = tiers.cells(0, now_s, tiers.layout(now_s, tiers.TIERS))
        series = [self._point(cell, now_s) for cell in cells]
        workflow = WorkflowResult(
            name="Hour",
            load="100 VUs for 2h",
            state="running",
            planned_s=2 * HOUR_S,
            vus=100,
            elapsed_s=now_s,
            steps=[_step(number, now_s) for number in range(STEPS)],
            series=series,
            marks=[Mark(at_s=100.0, text="added 10 VUs")],
        )
        return Results(name="Hour", state="running", elapsed_s=now_s, workflows=[workflow])

    def _point(self, cell: tiers.Stretch, now_s: float) -> Point:
        if cell not in self._points or cell.start_s + cell.width_s > now_s - 2:
            width_s = min(float(cell.width_s), max(0.1, now_s - cell.start_s))
            first, *counts = self._ranges
            self._points[cell] = Point(
                at_s=float(cell.start_s),
                width_s=width_s,
                requests=int(3_000 * width_s * (1 + 0.2 * math.sin(cell.start_s / 200))),
                failed=int(random.randint(0, 20) * width_s),
                vus=100,
                p50_ms=10 + random.random(),
                p95_ms=40 + 5 * random.random(),
                p99_ms=80 + 20 * random.random(),
                max_ms=200.0,
                response_p99_ms=90.0,
                ranges=[first, *(int(count * width_s) for count in counts)],
            )
        return self._points[cell]

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...

    def scale(self, delta_vus: int, workflow: str | None = None, /) -> None: ...

    def change_rate(self, factor: float, workflow: str | None = None, /) -> None: ...


def _step(number: int, now_s: float) -> StepResult:
    return StepResult(
        name=f"step number {number} of a long test",
        workflow="Hour",
        method="GET",
        count=int(now_s * 3) + number,
        failed=number % 7 and int(now_s / 9),
        rate=3.0,
        bytes_in=int(now_s * 1_000),
        service=Distribution(
            count=5,
            mean_ms=random.random() * 20,
            p50_ms=9 + random.random(),
            p95_ms=40 + random.random(),
            p99_ms=90 * random.random(),
            max_ms=200,
        ),
    )


if __name__ == "__main__":
    page = RunPage("127.0.0.1:0")
    print(page.url, flush=True)
    asyncio.run(page.run(Hour()))
