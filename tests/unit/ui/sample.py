"""A realistic run to draw: two workflows, six steps, five minutes of timeline, some failures.

There is no chance in it, so that golden tests can compare text.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from hyperscale.metrics.histogram import VALUES, Histogram
from hyperscale.metrics.results import (
    CheckResult,
    CoreUse,
    Distribution,
    Environment,
    ErrorCount,
    Exchange,
    FirstFailure,
    GeneratorCost,
    GroupResult,
    Mark,
    MetricResult,
    Point,
    RequestResult,
    Results,
    StepPoint,
    StepResult,
    ThresholdResult,
    WorkflowResult,
)


def latencies(median_ms: float, count: int, *, spread: float = 0.5) -> Distribution:
    """The quantiles of a log-normal target, 2,000 of them, scaled to `count` requests."""
    normal = NormalDist()
    values = [
        median_ms / 1000 * math.exp(spread * normal.inv_cdf((i + 0.5) / 2000)) for i in range(2000)
    ]
    histogram = Histogram()
    histogram.record_many(np.array(values))
    distribution = histogram.distribution()
    factor = max(1, count // 2000)
    distribution.counts = [each * factor for each in distribution.counts]
    distribution.count = sum(distribution.counts)
    return distribution


def step(
    name: str, workflow: str, method: str, path: str, median_ms: float, count: int, seconds: float
) -> StepResult:
    service = latencies(median_ms, count)
    return StepResult(
        name=name,
        workflow=workflow,
        method=method,
        target=f"https://shop.example{path}",
        count=service.count,
        rate=service.count / seconds if seconds else 0.0,
        bytes_in=service.count * 1800,
        bytes_out=service.count * 210,
        service=service,
        response=service,
        phases={
            "connect": latencies(0.4, 64),
            "tls": latencies(3.1, 64),
            "wait": latencies(median_ms * 0.9, count),
        },
        statuses={"200": service.count},
        requests=[named(f"https://shop.example{path}", name, workflow, method, median_ms, count)],
        runs=service.count,
        duration=latencies(median_ms * 1.1, count),
        series=[
            StepPoint(
                at_s=float(i), width_s=1.0, requests=100, p50_ms=median_ms, p95_ms=median_ms * 2.1
            )
            for i in range(10)
        ],
    )


def named(
    name: str, step: str, workflow: str, method: str, median_ms: float, count: int
) -> RequestResult:
    service = latencies(median_ms, count)
    return RequestResult(
        name=name,
        step=step,
        workflow=workflow,
        method=method,
        count=service.count,
        rate=service.count / 300,
        service=service,
        response=service,
    )


def key_error() -> FirstFailure:
    """The author's code raised on an answer that was fine."""
    return FirstFailure(
        at_s=12.42,
        user=3,
        worker="w1",
        where="shop.py:31 in browse",
        traceback='  File "shop.py", line 31, in browse\n    return item["price"]\n',
        exchange=Exchange(
            method="GET",
            url="https://shop.example/items/77",
            status=200,
            reason="OK",
            headers={"content-type": "application/json"},
            body='{"id": 77, "name": "Lamp", "cost": 1200}',
            size=312,
        ),
    )


def timeline(points: int, per_second: float, p50_ms: float, vus: int) -> list[Point]:
    wave = [1 + 0.15 * math.sin(i / 9) + 0.04 * math.sin(i * 1.7) for i in range(points)]
    return [
        Point(
            at_s=float(i),
            width_s=1.0,
            requests=int(per_second * wave[i]),
            failed=int(per_second * 0.3) if 100 <= i < 112 else 0,
            iterations=int(per_second * wave[i] / 3),
            vus=vus,
            bytes_in=int(per_second * wave[i] * 1800),
            bytes_out=int(per_second * wave[i] * 210),
            p50_ms=p50_ms / wave[i],
            p95_ms=p50_ms * 2.1 * wave[i],
            p99_ms=p50_ms * (3.2 if not 100 <= i < 112 else 9.0) * wave[i],
            max_ms=p50_ms * 12,
            response_p99_ms=p50_ms * (3.4 if not 100 <= i < 112 else 22.0) * wave[i],
        )
        for i in range(points)
    ]


def checkout(seconds: float = 300.0, scale: float = 1.0) -> WorkflowResult:
    count = int(1_200_000 * scale)
    steps = [
        step("login", "Checkout", "POST", "/login", 12.4, count, seconds),
        step("browse", "Checkout", "GET", "/items", 3.2, count, seconds),
        step("add_to_cart", "Checkout", "POST", "/cart", 6.8, count, seconds),
        step("pay", "Checkout", "POST", "/pay", 48.0, count, seconds),
    ]
    browse, add_to_cart, pay = steps[1:]
    browse.target, browse.tags = "", {"kind": "api", "team": "shop"}
    browse.requests = [
        named("/items", "browse", "Checkout", "GET", 2.9, count // 2),
        named("GET /items/{id}", "browse", "Checkout", "GET", 3.5, count // 2),
    ]
    browse.runs_failed = 41
    browse.errors = [
        ErrorCount(
            outcome="exception",
            detail="KeyError",
            count=41,
            samples=["KeyError: 'price'"],
            first=key_error(),
        )
    ]
    add_to_cart.group = pay.group = "buying"
    add_to_cart.skipped, add_to_cart.skips = 12, {"login got no answer": 12}
    pay.runs_interrupted = 3
    pay.failed, pay.unsent = 1_846, 12
    pay.statuses = {"200": pay.count - 1_834, "503": 1_790}
    pay.errors = [
        ErrorCount(
            outcome="status",
            detail="503",
            count=1_790,
            samples=["503 Service Unavailable: upstream timed out"],
            first=FirstFailure(
                at_s=100.1,
                user=12,
                exchange=Exchange(
                    method="POST",
                    url="https://shop.example/pay",
                    status=503,
                    reason="Service Unavailable",
                    request_headers={"authorization": "***"},
                    headers={"Retry-After": "1", "Content-Length": "18"},
                    body="upstream timed out",
                    size=18,
                ),
            ),
        ),
        ErrorCount(
            outcome="reset",
            detail="ConnectionResetError",
            count=44,
            samples=["connection reset by shop.example:443 while reading the response"],
        ),
        ErrorCount(outcome="refused", detail="ConnectionRefusedError", count=12),
    ]
    return WorkflowResult(
        name="Checkout",
        load="64 VUs for 5m",
        state="running",
        planned_s=300.0,
        cores=1,
        vus=64,
        vus_max=64,
        elapsed_s=seconds,
        prepare_s=0.04,
        iterations=count,
        stopped_iterations=5,
        stopped_users=1,
        unmeasured={"warmup": 240, "setup": 3, "teardown": 1},
        iteration=latencies(72.0, count),
        steps=steps,
        groups=[GroupResult(name="buying", workflow="Checkout", duration=latencies(55.0, count))],
        checks=[
            CheckResult(name="token_is_fresh", workflow="Checkout", passed=count),
            CheckResult(
                name="total_is_right",
                workflow="Checkout",
                passed=count - 21,
                failed=21,
                samples=["expected 19.99, got 0"],
                first=FirstFailure(at_s=3.2, user=7, where="shop.py:58 in total_is_right"),
            ),
        ],
        metrics=[
            MetricResult(
                name="orders",
                workflow="Checkout",
                kind="count",
                count=count,
                value=count,
                per_second=count / seconds,
            ),
            MetricResult(
                name="basket_value",
                workflow="Checkout",
                kind="distribution",
                count=4,
                value=31.0,
                distribution=_values(),
            ),
            MetricResult(
                name="basket_value",
                workflow="Checkout",
                kind="distribution",
                tags={"kind": "api"},
                count=4,
                value=31.0,
                distribution=_values(),
            ),
        ],
        series=timeline(int(seconds), count * 4 / seconds, 12.0, 64),
        marks=[
            Mark(at_s=101.0, text="threshold crossed: http_req_failed rate<0.001"),
            Mark(at_s=180.0, text="+6 VUs by key"),
        ],
    )


def search(seconds: float = 300.0) -> WorkflowResult:
    steps = [
        step("query", "Search", "GET", "/search?q=shoe", 8.0, 150_000, seconds),
        step("suggest", "Search", "GET", "/suggest", 1.1, 150_000, seconds),
    ]
    for each in steps:
        each.response = latencies(each.service.p50_ms * 1.6, each.count, spread=1.1)
    return WorkflowResult(
        name="Search",
        load="500/s for 5m, up to 200 VUs",
        open_model=True,
        state="running",
        planned_s=300.0,
        cores=1,
        vus=37,
        vus_max=200,
        elapsed_s=seconds,
        iterations=150_000,
        dropped_iterations=312,
        interrupted_iterations=2,
        iteration=latencies(9.5, 150_000),
        steps=steps,
        series=timeline(int(seconds), 1000.0, 8.0, 37),
    )


def sample_results(state: str = "finished") -> Results:
    """The run as it stands at its end; `state="running"` gives a snapshot with the same numbers."""
    results = Results(
        name="shop",
        started_at="2026-01-05T12:00:00Z",
        elapsed_s=301.2,
        state=state,  # type: ignore[arg-type]
        passed=False,
        exit_code=99,
        workflows=[checkout(), search()],
        thresholds=[
            ThresholdResult(
                expression="p(95)<500",
                scope="http_req_duration",
                passed=True,
                actual=84.1,
                actual_text="p(95)=84.1ms",
            ),
            ThresholdResult(
                expression="rate<0.0001",
                scope="http_req_failed",
                passed=False,
                actual=0.00036,
                actual_text="rate=0.036%",
            ),
        ],
        saturation="The generator was the bottleneck: core 0 was 97 % busy, its loop 12ms late.",
        warnings=["Step 'pay' returned no body in 3 % of its answers."],
        core_use=[
            CoreUse(
                core=0,
                workflow="Checkout",
                cpu_mean=0.91,
                cpu_max=0.97,
                lag_p99_ms=12.0,
                rss_mb=58.0,
            )
        ],
        generator=GeneratorCost(cpu_seconds=361.2, cores=1.2, requests_per_cpu_second=13_289.0),
        environment=Environment(
            hyperscale="0.1.0",
            python="3.11.7",
            platform="Linux x86_64",
            cpu="2 x vCPU",
            cores=2,
            workers=2,
            host="ci",
            command="hyperscale run shop.py",
        ),
    )
    for workflow in results.workflows:
        workflow.state = results.state
    return results


def empty_results() -> Results:
    """A run that ended before anything was measured."""
    workflow = WorkflowResult(
        name="Checkout",
        state="finished",
        load="64 VUs for 5m",
        planned_s=300.0,
        steps=[StepResult(name="login", workflow="Checkout")],
        checks=[CheckResult(name="never_ran", workflow="Checkout")],
        metrics=[
            MetricResult(name="orders", workflow="Checkout", kind="count"),
            MetricResult(name="basket", workflow="Checkout", kind="distribution"),
        ],
        error="shop.example does not resolve",
    )
    return Results(
        name="shop",
        state="finished",
        cut="error",
        cut_reason="No workflow could start.",
        workflows=[workflow],
        thresholds=[
            ThresholdResult(
                expression="p(95)<500", scope="http_req_duration", passed=False, actual=None
            )
        ],
    )


def _values() -> Distribution:
    histogram = Histogram(VALUES)
    histogram.record_many(np.array([12.5, 19.99, 31.0, 240.0]))
    return histogram.distribution()
