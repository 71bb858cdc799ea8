"""Realistic results of a run, made from a seed: a checkout under open load with a stall, and a
closed browse workflow that VUs were added to while it ran."""

from __future__ import annotations

from functools import cache

import numpy as np

from hyperscale.metrics.histogram import Histogram
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
    decode,
    encode,
)

STALL = range(31, 34)


def distribution(values_s: np.ndarray) -> Distribution:
    histogram = Histogram()
    histogram.record_many(np.asarray(values_s, dtype=np.float64))
    return histogram.distribution()


def latencies(seed: int, count: int, median_ms: float, spread: float = 0.35) -> np.ndarray:
    random = np.random.default_rng(seed)
    body = random.lognormal(np.log(median_ms / 1000), spread, count)
    slow = random.random(count) < 0.012
    body[slow] *= random.uniform(3, 9, int(slow.sum()))
    return body


def step(
    seed: int,
    name: str,
    workflow: str,
    count: int,
    median_ms: float,
    *,
    seconds: float,
    stalled: bool = False,
    errors: list[ErrorCount] | None = None,
    method: str = "GET",
    target: str = "",
    fresh_connections: bool = False,
) -> StepResult:
    service = latencies(seed, count, median_ms)
    response = service.copy()
    if stalled:
        random = np.random.default_rng(seed + 1)
        held = random.random(count) < 0.03
        response[held] += random.uniform(0.0, 2.4, int(held.sum()))
        few = random.random(count) < 0.0006
        service[few] += random.uniform(1.0, 2.4, int(few.sum()))
        response = np.maximum(response, service)
    failed = sum(error.count for error in errors or [])
    statuses = {"200": count - failed}
    for error in errors or []:
        if error.outcome == "status":
            statuses[error.detail] = error.count
    phases = {
        "write": distribution(service * 0.01 + 2e-5),
        "wait": distribution(service * 0.86),
        "read": distribution(service * 0.11),
    }
    if fresh_connections:
        phases |= {
            "dns": distribution(latencies(seed + 2, 60, 1.1)),
            "connect": distribution(latencies(seed + 3, count // 20, 2.4)),
            "tls": distribution(latencies(seed + 4, count // 20, 9.5)),
        }
    return StepResult(
        name=name,
        workflow=workflow,
        method=method,
        target=target,
        tags={"team": "shop"} if method == "POST" else {},
        count=count,
        failed=failed,
        rate=count / seconds,
        bytes_in=count * 2310,
        bytes_out=count * 320,
        service=distribution(service),
        response=distribution(response),
        phases=phases,
        statuses=statuses,
        errors=errors or [],
        requests=[
            RequestResult(
                name=target,
                step=name,
                workflow=workflow,
                method=method,
                count=count,
                failed=failed,
                rate=count / seconds,
                service=distribution(service),
                response=distribution(response),
                statuses=statuses,
            )
        ],
        runs=count,
        runs_failed=failed,
        duration=distribution(service * 1.04),
        series=step_series(seed, int(seconds), count / seconds, median_ms, failed / seconds),
    )


def step_series(
    seed: int, points: int, rate: float, median_ms: float, failed: float
) -> list[StepPoint]:
    random = np.random.default_rng(seed)
    busy = 1 + 0.25 * np.sin(np.arange(points) / 9) + random.normal(0, 0.05, points)
    return [
        StepPoint(
            at_s=float(at),
            width_s=1.0,
            requests=int(rate / busy[at]),
            failed=int(random.poisson(failed)),
            p50_ms=float(median_ms * busy[at]),
            p95_ms=float(median_ms * 2.1 * busy[at]),
            p99_ms=float(median_ms * 4 * busy[at]),
        )
        for at in range(points)
    ]


def split_by_name(step: StepResult, names: list[str]) -> None:
    """As if the requests of the step had gone to several places."""
    share = len(names)
    (whole,) = step.requests
    step.target = ""
    step.requests = [
        RequestResult(
            name=name,
            step=step.name,
            workflow=step.workflow,
            method=whole.method,
            tags={"kind": "asset"} if name.endswith(".js") else {},
            count=whole.count // share,
            rate=whole.rate / share,
            service=distribution(latencies(70 + i, 900, 4.0 * (i + 1))),
            response=distribution(latencies(70 + i, 900, 4.0 * (i + 1))),
        )
        for i, name in enumerate(names)
    ]


def open_series(points: int, rate: int, median_ms: float) -> list[Point]:
    random = np.random.default_rng(7)
    series = []
    for at in range(points):
        stalled = at in STALL
        requests = 0 if stalled else int(random.normal(rate, rate * 0.015))
        if at == STALL.stop:
            requests = int(rate * 3.1)
        busy = 1 + 0.25 * np.sin(at / 9) + random.normal(0, 0.03)
        p50 = 0.0 if stalled else float(median_ms * busy)
        waited = 2400.0 if at == STALL.stop else p50 * 4.3
        series.append(
            Point(
                at_s=float(at),
                width_s=1.0,
                requests=requests,
                failed=int(requests * 0.004) if at < STALL.stop else int(requests * 0.011),
                iterations=requests // 3,
                dropped=210 if at == STALL.stop - 1 else 0,
                vus=180 if stalled else 34 + int(random.integers(0, 6)),
                bytes_in=requests * 2310,
                bytes_out=requests * 320,
                p50_ms=p50,
                p95_ms=p50 * 2.1,
                p99_ms=p50 * float(random.uniform(3.4, 4.6)),
                max_ms=p50 * float(random.uniform(6, 9)),
                response_p99_ms=0.0 if stalled else waited,
            )
        )
    return series


def closed_series(points: int, width_s: float = 1.0) -> list[Point]:
    random = np.random.default_rng(11)
    series = []
    for at in range(points):
        vus = 64 if at < points // 2 else 96
        p50 = float((vus / 64) ** 1.3 * 11.5 + random.normal(0, 0.4))
        p99 = p50 * float(random.uniform(2.1, 2.5))
        requests = int(vus * 1000 / p50 * width_s + random.normal(0, 40))
        series.append(
            Point(
                at_s=at * width_s,
                width_s=width_s,
                requests=requests,
                iterations=requests // 2,
                vus=vus,
                bytes_in=requests * 5400,
                bytes_out=requests * 210,
                p50_ms=p50,
                p95_ms=p50 * 1.7,
                p99_ms=p99,
                max_ms=p50 * 4,
                response_p99_ms=p99,
            )
        )
    return series


def _checkout() -> WorkflowResult:
    refused = ErrorCount(
        outcome="reset",
        detail="ConnectionResetError",
        count=41,
        samples=["The server closed the connection before it answered POST /checkout."],
    )
    unavailable = ErrorCount(
        outcome="status",
        detail="503",
        count=412,
        samples=[
            "POST /checkout answered 503 Service Unavailable: upstream connect error or disconnect",
            "POST /checkout answered 503 Service Unavailable: no healthy upstream",
            'POST /checkout answered 503 Service Unavailable: {"error": "stock service timed out"}',
        ],
        first=FirstFailure(
            at_s=3.21,
            user=17,
            worker="w1",
            exchange=Exchange(
                method="POST",
                url="https://shop.example.test/checkout?currency=EUR&express=true",
                status=503,
                reason="Service Unavailable",
                request_headers={"authorization": "***", "content-type": "application/json"},
                request_body='{"cart": 4711, "pay": "card"}',
                headers={"retry-after": "1", "content-type": "text/plain"},
                body="upstream connect error or disconnect/reset before headers",
                size=57,
                duration_ms=31.4,
            ),
        ),
    )
    slow = ErrorCount(
        outcome="timeout", detail="read", count=9, samples=["No answer to GET /cart within 30 s."]
    )
    no_price = ErrorCount(
        outcome="exception",
        detail="KeyError",
        count=32,
        samples=["KeyError: 'price'"],
        first=FirstFailure(
            at_s=12.4,
            user=3,
            where="shop.py:31 in cart",
            traceback='  File "shop.py", line 31, in cart\n    return item["price"]\n',
            exchange=Exchange(
                method="GET",
                url="https://shop.example.test/items/77",
                status=200,
                reason="OK",
                headers={"content-type": "application/json"},
                body='{"id": 77, "name": "Lamp", "cost": 1200}',
                size=312,
                duration_ms=4.2,
            ),
        ),
    )
    base = "https://shop.example.test"
    workflow = WorkflowResult(
        name="Checkout",
        load="500/s for 1m, up to 200 VUs",
        open_model=True,
        state="finished",
        planned_s=60.0,
        cores=2,
        vus_max=200,
        elapsed_s=60.0,
        prepare_s=0.021,
        iterations=9_874,
        dropped_iterations=210,
        interrupted_iterations=3,
        iteration=distribution(latencies(5, 9_874, 58)),
        steps=[
            step(
                1,
                "login",
                "Checkout",
                9_912,
                9.4,
                seconds=60,
                method="POST",
                target=f"{base}/login",
                fresh_connections=True,
            ),
            step(
                2,
                "cart",
                "Checkout",
                9_903,
                12.1,
                seconds=60,
                stalled=True,
                errors=[slow, no_price],
                target=f"{base}/cart",
            ),
            step(
                3,
                "checkout",
                "Checkout",
                9_880,
                31.0,
                seconds=60,
                stalled=True,
                errors=[unavailable, refused],
                method="POST",
                target=f"{base}/checkout?currency=EUR&express=true",
            ),
        ],
        checks=[
            CheckResult(
                name="cart_has_items",
                workflow="Checkout",
                passed=9_871,
                failed=32,
                samples=["AssertionError: cart is empty", "KeyError: 'items'"],
                first=FirstFailure(at_s=4.4, user=9, where="shop.py:44 in cart_has_items"),
            ),
            CheckResult(name="token_is_fresh", workflow="Checkout", passed=9_912),
        ],
        metrics=[
            MetricResult(
                name="orders",
                workflow="Checkout",
                kind="count",
                count=9_427,
                value=9_427.0,
                per_second=157.1,
            ),
            MetricResult(
                name="basket_value",
                workflow="Checkout",
                kind="distribution",
                count=9_427,
                distribution=Distribution(
                    count=9_427, mean_ms=48.2, p50_ms=41.0, p95_ms=119.0, p99_ms=240.0, max_ms=812.0
                ),
            ),
            MetricResult(
                name="basket_value",
                workflow="Checkout",
                kind="distribution",
                tags={"kind": "gift"},
                count=27,
                distribution=Distribution(count=27, mean_ms=31.0, p50_ms=30.0, max_ms=90.0),
            ),
            MetricResult(
                name="cache_hits", workflow="Checkout", kind="rate", count=9_903, value=0.934
            ),
        ],
        series=open_series(60, 495, 14.0),
        marks=[
            Mark(at_s=12.0, text="paused for 0.4 s"),
            Mark(at_s=34.0, text="checkout p(99)<800ms crossed"),
        ],
        groups=[
            GroupResult(
                name="buying", workflow="Checkout", duration=distribution(latencies(8, 9_880, 45.0))
            )
        ],
        unmeasured={"warmup": 500, "setup": 2},
        stopped_iterations=7,
    )
    login, cart, checkout = workflow.steps
    cart.group = checkout.group = "buying"
    cart.tags = {"kind": "api"}
    split_by_name(cart, ["/cart", "GET /items/{id}", "/static/app.js"])
    checkout.skipped, checkout.skips = 12, {"login got no answer": 12}
    login.unsent, login.failed = 5, 5
    return workflow


def _browse() -> WorkflowResult:
    return WorkflowResult(
        name="Browse",
        load="64 VUs for 45s",
        state="finished",
        planned_s=45.0,
        cores=1,
        vus_max=96,
        started_s=2.0,
        elapsed_s=45.0,
        prepare_s=0.008,
        iterations=120_310,
        iteration=distribution(latencies(6, 40_000, 25)),
        steps=[
            step(21, "home", "Browse", 120_310, 11.0, seconds=45, target="http://10.0.0.7/"),
            step(
                22,
                "search",
                "Browse",
                120_290,
                14.5,
                seconds=45,
                target="http://10.0.0.7/search?q=lamp",
            ),
        ],
        series=closed_series(45),
        marks=[Mark(at_s=22.0, text="32 VUs added (96)")],
    )


@cache
def _encoded() -> bytes:
    results = Results(
        name="checkout.py",
        started_at="2026-11-15T20:41:07Z",
        elapsed_s=62.4,
        state="finished",
        passed=False,
        exit_code=99,
        tags={"build": "4711", "branch": "main"},
        workflows=[_checkout(), _browse()],
        thresholds=[
            ThresholdResult(
                expression="p(95)<500",
                scope="http_req_duration",
                passed=True,
                actual=46.2,
                actual_text="p(95)=46.2ms",
            ),
            ThresholdResult(
                expression="rate<0.01",
                scope="http_req_failed",
                passed=True,
                actual=0.0017,
                actual_text="rate=0.17%",
            ),
            ThresholdResult(
                expression="p(99)<800",
                scope="Checkout.checkout",
                passed=False,
                actual=1640.0,
                actual_text="p(99)=1.64s",
            ),
        ],
        warnings=["Browse sent most of its load to one address: shop-2 resolved to nothing."],
        core_use=[
            CoreUse(
                core=0,
                workflow="Checkout",
                cpu_mean=0.22,
                cpu_max=0.41,
                lag_p99_ms=0.8,
                rss_mb=58.1,
            ),
            CoreUse(
                core=1,
                workflow="Checkout",
                cpu_mean=0.24,
                cpu_max=0.44,
                lag_p99_ms=0.9,
                rss_mb=57.4,
            ),
            CoreUse(
                core=2, workflow="Browse", cpu_mean=0.71, cpu_max=0.93, lag_p99_ms=3.2, rss_mb=61.0
            ),
        ],
        generator=GeneratorCost(cpu_seconds=70.4, cores=1.17, requests_per_cpu_second=8_120.0),
        environment=Environment(
            hyperscale="0.1.0",
            python="3.11.9 (CPython)",
            platform="Linux 6.8 x86_64",
            cpu="AMD EPYC 7763",
            cores=4,
            workers=3,
            host="runner-17",
            command="hyperscale run checkout.py --html report.html --tag build=4711",
        ),
    )
    return encode(results)


def sample() -> Results:
    return decode(_encoded())


def checkout() -> WorkflowResult:
    return sample().workflows[0]
