"""A result with something in every corner, for the exporters to write."""

from __future__ import annotations

from hyperscale.metrics.results import (
    CheckResult,
    Distribution,
    Environment,
    ErrorCount,
    Mark,
    MetricResult,
    Point,
    RequestResult,
    Results,
    StepResult,
    ThresholdResult,
    WorkflowResult,
)


def sample_results() -> Results:
    latency = Distribution(count=90, mean_ms=12.5, p50_ms=11.0, p99_ms=80.25, max_ms=123.456789)
    login = StepResult(
        name="login",
        workflow="Checkout",
        method="POST",
        target='https://shop.example/login?a=1,"b"',
        tags={"team": "shop", "tier": "1"},
        count=100,
        failed=10,
        rate=10.0,
        service=latency,
        response=latency,
        statuses={"200": 90, "503": 10},
        errors=[ErrorCount(outcome="status", detail="503", count=10, samples=["Bad luck."])],
        group="entrance",
        requests=[
            RequestResult(
                name="/login", step="login", workflow="Checkout", method="POST", count=60, failed=10
            ),
            RequestResult(
                name="/token/{id}",
                step="login",
                workflow="Checkout",
                method="GET",
                tags={"kind": "api"},
                count=40,
                service=latency,
            ),
        ],
        unsent=2,
        runs=60,
        runs_failed=3,
        skipped=4,
        duration=Distribution(count=60, p95_ms=95.5),
    )
    checkout = WorkflowResult(
        name="Checkout",
        state="finished",
        elapsed_s=10.0,
        steps=[login, StepResult(name="buy", workflow="Checkout")],
        checks=[
            CheckResult(name="has_token", workflow="Checkout", passed=100),
            CheckResult(name="cart", workflow="Checkout", passed=7, failed=3, samples=["empty"]),
        ],
        metrics=[MetricResult(name="sold", workflow="Checkout", kind="count", value=7)],
        series=[Point(at_s=float(n), width_s=1.0, requests=10 + n) for n in range(3)],
        marks=[Mark(at_s=1.0, text="VUs 10 to 20")],
    )
    return Results(
        name="shop",
        started_at="2026-01-02T03:04:05Z",
        elapsed_s=10.5,
        state="finished",
        exit_code=99,
        tags={"branch": "main"},
        workflows=[checkout, WorkflowResult(name="Search", error="Search could not start.")],
        thresholds=[
            ThresholdResult(
                expression="p(95)<50",
                scope="http_req_duration",
                passed=False,
                actual=80.25,
                actual_text="p(95)=80.25ms",
                aborted_at_s=9.5,
            ),
            ThresholdResult(
                expression="rate<0.5", scope="http_req_failed", passed=True, actual=0.1
            ),
            ThresholdResult(expression="p(95)<50", scope="Search.find", passed=True, actual=None),
        ],
        environment=Environment(host="laptop", cores=2),
    )
