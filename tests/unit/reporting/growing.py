"""A run at several moments: what a live reporter sees."""

from __future__ import annotations

from hyperscale.metrics.results import (
    CheckResult,
    Distribution,
    ErrorCount,
    MetricResult,
    Point,
    Results,
    StepPoint,
    StepResult,
    WorkflowResult,
)

STEPS = ("item, with a comma", "order")


def growing(seconds: int, *, finished: bool = False, rate: int = 100) -> Results:
    """After so many seconds of that many requests each; every tenth fails."""
    done = seconds * rate
    latencies = {"p50_ms": 1.5, "p95_ms": 12.25, "p99_ms": 30.0}
    steps = [
        StepResult(
            name=name,
            workflow="Shop",
            count=done // 2,
            failed=done // 20,
            bytes_in=done * 10,
            errors=[ErrorCount("status", "503", done // 20)] if done else [],
            series=[
                StepPoint(at_s=at, width_s=1.0, requests=rate // 2, **latencies)
                for at in range(seconds)
            ],
        )
        for name in STEPS
    ]
    workflow = WorkflowResult(
        name="Shop",
        state="finished" if finished else "running",
        elapsed_s=float(seconds),
        vus=7,
        iterations=done // 2,
        steps=steps,
        checks=[CheckResult("was_accepted", "Shop", passed=done // 2, failed=1)],
        metrics=[
            MetricResult("basket", "Shop", "distribution", {"shop": "a b"}, done, 3.5, 1.0,
                         Distribution(count=done, mean_ms=3.5, p95_ms=9.0)),
        ],
        series=[
            Point(at_s=at, width_s=1.0, requests=rate, vus=7, max_ms=44.0, response_p99_ms=31.0,
                  **latencies)
            for at in range(seconds)
        ],
    )  # fmt: skip
    return Results(
        name="nightly",
        started_at="2026-01-05T12:00:00+00:00",
        elapsed_s=float(seconds),
        state="finished" if finished else "running",
        passed=finished,
        exit_code=0 if finished else 1,
        tags={"team": "check out"},
        workflows=[workflow],
    )
