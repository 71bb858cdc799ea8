"""What thresholds see of requests, steps, groups and values: by step, name, status and tag."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hyperscale.engine.thresholds import Judge
from hyperscale.metrics.histogram import VALUES, Histogram
from hyperscale.metrics.results import (
    CheckResult,
    Distribution,
    GroupResult,
    MetricResult,
    Point,
    RequestResult,
    StepResult,
    ThresholdResult,
    WorkflowResult,
)
from hyperscale.workload.code_words import CodeWords
from hyperscale.workload.threshold_scopes import Names, bind
from hyperscale.workload.thresholds import parse_threshold

NAMES = Names(
    "Shop",
    ("view", "pay"),
    ("paid", "shown"),
    others=("on_start",),
    groups={"pay": "buying"},
    tags={"kind": ("api", "page")},
    code=CodeWords(
        frozenset({"page", "cache"}),
        {"ttfb": "distribution", "sold": "count", "broken": "count", "hit": "rate"},
        names_metrics=True,
    ),
)


def durations(*latencies_ms: float) -> Distribution:
    histogram = Histogram()
    for latency in latencies_ms:
        histogram.record(latency / 1000)
    return histogram.distribution()


def values(*numbers: float) -> Distribution:
    histogram = Histogram(VALUES)
    for number in numbers:
        histogram.record(number)
    return histogram.distribution()


def request(name: str, latencies_ms: Sequence[float], **known: object) -> RequestResult:
    facts = {"step": "view", "workflow": "Shop", "method": "GET", "count": len(latencies_ms)}
    service = durations(*latencies_ms)
    return RequestResult(
        name=name,
        service=service,
        response=service,
        phases={"wait": service},
        **(facts | known),  # type: ignore[arg-type]
    )


def step_of(name: str, requests: Sequence[RequestResult], **known: object) -> StepResult:
    """A step as it is told: its sums are those of its requests."""
    service = Histogram()
    statuses: dict[str, int] = {}
    for each in requests:
        service.merge(Histogram.from_distribution(each.service))
        for status, count in each.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
    told = service.distribution()
    return StepResult(
        name=name,
        workflow="Shop",
        count=sum(each.count for each in requests),
        failed=sum(each.failed for each in requests),
        unsent=sum(each.unsent for each in requests),
        bytes_in=sum(each.bytes_in for each in requests),
        service=told,
        response=told,
        phases={"wait": told},
        statuses=statuses,
        requests=list(requests),
        **known,  # type: ignore[arg-type]
    )


def metric(name: str, kind: str, tags: dict[str, str], *numbers: float) -> MetricResult:
    total = sum(numbers)
    value = {"count": total, "rate": total / len(numbers), "sample": numbers[-1]}
    return MetricResult(
        name=name,
        workflow="Shop",
        kind=kind,  # type: ignore[arg-type]
        tags=tags,
        count=len(numbers),
        value=value.get(kind, total / len(numbers)),
        distribution=values(*numbers) if kind in ("distribution", "sample") else None,
    )


SHOP = WorkflowResult(
    name="Shop",
    elapsed_s=10.0,
    steps=[
        step_of(
            "view",
            [
                request("/items/{id}", [10, 20], tags={"kind": "api"}, statuses={"200": 2}),
                request(
                    "/", [90], tags={"kind": "page", "page": "home"}, statuses={"500": 1}, failed=1
                ),
            ],
            tags={"kind": "api"},
            runs=4,
            runs_failed=1,
            duration=durations(100, 200, 300, 400),
        ),
        step_of(
            "pay",
            [request("/pay", [50], step="pay", method="POST", statuses={"200": 1}, bytes_in=700)],
            group="buying",
            runs=1,
            duration=durations(1000),
        ),
        step_of("on_start", [request("/login", [], step="on_start", failed=3, unsent=3)]),
    ],
    groups=[GroupResult(name="buying", workflow="Shop", duration=durations(1500))],
    checks=[
        CheckResult(name="paid", workflow="Shop", passed=1, failed=0),
        CheckResult(name="shown", workflow="Shop", passed=0, failed=3),
    ],
    metrics=[
        metric("ttfb", "distribution", {"page": "home"}, 5.0, 7.0),
        metric("ttfb", "distribution", {"page": "item"}, 50.0),
        metric("sold", "count", {"page": "home"}, 2.0, 3.0),
        metric("sold", "count", {"page": "item"}, 4.0),
        metric("hit", "rate", {"cache": "a"}, 1.0, 1.0, 0.0),
        metric("hit", "rate", {"cache": "b"}, 0.0),
        metric("made", "sample", {}, 8.0),
    ],
)


def judge(expression: str, workflow: WorkflowResult = SHOP) -> ThresholdResult:
    return Judge(bind(parse_threshold(expression), NAMES), "Shop").judge(workflow)


@pytest.mark.parametrize(
    ("expression", "actual"),
    [
        ("http_reqs: count>0", 4),
        ("http_reqs{step:view}: count>0", 3),
        ("http_reqs{group:buying}: count>0", 1),
        ("http_reqs{workflow:Shop}: count>0", 4),
        ("http_reqs{name:/items/{id}}: count>0", 2),
        ("http_reqs{method:post}: count>0", 1),
        ("http_reqs{kind:http}: count>0", 4),
        ("http_reqs{kind:api}: count>0", 2),
        ("http_reqs{page:home}: count>0", 1),
        ("http_reqs{kind:page,page:home}: count>0", 1),
        ("http_reqs{status:200}: count>0", 3),
        ("http_reqs{status:200}: rate>0", 0.3),
        ("http_reqs{status:404}: count<1", 0),
        ("http_reqs{step:view,status:500}: count>0", 1),
        ("http_reqs{name:/,status:200}: count<1", 0),
        ("view: count>0", 3),
        ("view{name:/}: max<100", 90),
        ("http_req_duration: max<100", 90),
        ("http_req_duration{kind:api}: max<100", 20),
        ("http_req_response{group:buying}: max<100", 50),
        ("http_req_waiting{kind:api}: max<100", 20),
        ("http_req_failed: rate<1%", 4 / 7),
        ("http_req_failed{step:view}: rate<1%", 1 / 3),
        ("http_req_failed{on_start}: rate<1%", 1.0),
        ("data_received{step:pay}: count<1000", 700),
        ("data_received{method:GET}: count<1000", 0),
        ("step_duration: max<5000", 1000),
        ("step_duration{step:view}: max<5000", 400),
        ("step_duration{kind:api}: max<5000", 400),
        ("step_duration{group:buying}: max<5000", 1000),
        ("step_failed: rate<1%", 0.2),
        ("step_failed{step:view}: rate<1%", 0.25),
        ("group_duration{group:buying}: max<5000", 1500),
        ("group_duration: max<5000", 1500),
        ("checks: rate>0", 0.25),
        ("checks{check:shown}: rate>0", 0.0),
        ("ttfb: max<100", 50),
        ("ttfb{page:home}: max<100", 7),
        ("ttfb: avg<100", 62 / 3),
        ("sold: count>0", 9),
        ("sold{page:item}: count>0", 4),
        ("broken: count<1", 0),
        ("hit: rate>0", 0.5),
        ("hit{cache:a}: rate>0", 2 / 3),
        ("made: value>0", 8),
    ],
)
def test_what_is_judged(expression: str, actual: float) -> None:
    verdict = judge(expression)
    assert verdict.actual == pytest.approx(actual), verdict


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("http_reqs{name:/itms}: count<5", "count: nothing to judge, there were no such requests"),
        ("http_reqs{page:none}: count<5", "count: nothing to judge, there were no such requests"),
        ("http_req_duration{on_start}: avg<5", "avg: nothing to judge"),
        ("http_req_duration{status:200}: avg<5", "avg: nothing to judge"),
        ("http_req_connecting: avg<5", "avg: nothing to judge"),
        ("never_made: count<5", "count: nothing to judge, nothing was recorded"),
        ("sold{page:none}: count<5", "count: nothing to judge, nothing was recorded"),
        (
            "made: count<5",
            "count: nothing to judge, it is a gauge, which has value, min, max",
        ),
    ],
)
def test_nothing_to_judge_is_not_passed(expression: str, text: str) -> None:
    verdict = judge(expression)
    assert (verdict.passed, verdict.actual, verdict.actual_text) == (False, None, text)


def test_requests_split_by_status_are_judged_by_it() -> None:
    requests = [
        request("/", [10, 12], tags={"status": "200"}, statuses={"200": 2}, bytes_in=60),
        request("/", [900], tags={"status": "500"}, statuses={"500": 1}, failed=1, bytes_in=5),
    ]
    split = WorkflowResult(name="Shop", elapsed_s=1.0, steps=[step_of("view", requests)])
    assert judge("http_req_duration{status:200}: max<100", split).passed
    assert judge("http_req_duration{status:500}: max<100", split).actual == pytest.approx(900)
    assert judge("http_req_failed{status:200}: rate<1%", split).actual == 0
    assert judge("data_received{status:500}: count<10", split).actual == 5
    assert judge("data_received{status:404}: count<10", split).actual == 0
    assert judge("http_reqs{status:200}: count<10", split).actual == 2
    assert judge("http_req_duration: max<100", split).actual == pytest.approx(900)


def test_each_protocol_has_metrics_of_its_own() -> None:
    pages = step_of("view", [request("/", [10, 12], bytes_in=60)])
    lines = step_of("pay", [request("host:1", [900], kind="tcp", failed=1, bytes_in=5)])
    lines.kind = "tcp"
    both = WorkflowResult(name="Shop", elapsed_s=1.0, steps=[pages, lines])
    assert judge("http_reqs: count>0", both).actual == 2
    assert judge("tcp_reqs: count>0", both).actual == 1
    assert judge("tcp_req_duration: max<1s", both).actual == pytest.approx(900)
    assert judge("http_req_duration: max<1s", both).actual == pytest.approx(12, rel=0.02)
    assert judge("tcp_req_failed: rate<1%", both).actual == 1
    assert judge("data_received: count>0", both).actual == 65
    assert judge("pay: max<1s", both).actual == pytest.approx(900)
    alone = WorkflowResult(name="Shop", elapsed_s=1.0, steps=[lines])
    assert judge("max<1s", alone).actual == pytest.approx(900)


def test_scopes_read_well() -> None:
    assert judge("Shop.view: avg<5").scope == "Shop: view"
    assert judge("http_reqs{ workflow:Shop, kind:api }: count>0").scope == (
        "Shop: http_reqs{kind:api}"
    )


def test_a_selected_threshold_watches_the_time_since_its_last_look() -> None:
    watcher = Judge(bind(parse_threshold("ttfb{page:item}: med<10 for 2s abort"), NAMES), "Shop")

    def so_far(*numbers: float) -> WorkflowResult:
        home = metric("ttfb", "distribution", {"page": "home"}, 900.0)
        found = [home, metric("ttfb", "distribution", {"page": "item"}, *numbers)]
        return WorkflowResult(name="Shop", elapsed_s=float(len(numbers)), metrics=found)

    seconds = [1.0, 1.0, 50.0, 50.0, 50.0]
    looks = [watcher.watch(so_far(*seconds[: n + 1])) for n in range(len(seconds))]
    assert looks == [False, False, False, True, True]


def test_while_it_runs_a_count_may_still_be_reached() -> None:
    def standing(expression: str) -> bool | None:
        watcher = Judge(bind(parse_threshold(expression), NAMES), "Shop")
        watcher.watch(SHOP)
        assert watcher.latest is not None
        assert watcher.judge(SHOP).passed is False
        return watcher.latest.passed

    assert standing("http_reqs: count>100") is True
    assert standing("http_reqs: count==100") is True
    assert standing("http_reqs: count==1") is False
    assert standing("http_reqs: count<2") is False
    assert standing("http_reqs: count>100 abort") is False
    assert standing("http_req_duration: max<1") is False


@pytest.mark.parametrize(
    ("failed", "text"),
    [(9_974, "rate=0.9974%"), (12_345, "rate=1.23%"), (10_000, "rate=1.00%")],
)
def test_near_the_limit_more_digits_are_shown(failed: int, text: str) -> None:
    near = WorkflowResult(
        name="Shop",
        elapsed_s=1.0,
        steps=[StepResult(name="view", workflow="Shop", count=1_000_000, failed=failed)],
    )
    assert judge("http_req_failed: rate<1%", near).actual_text == text


def test_users_at_the_end_are_those_who_were_there_last() -> None:
    series = [Point(at_s=0.0, width_s=1.0, vus=3), Point(at_s=1.0, width_s=1.0, vus=0)]
    ended = WorkflowResult(name="Shop", elapsed_s=2.0, series=series)
    assert judge("vus: value>2", ended).actual == 3
