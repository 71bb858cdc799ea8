"""Thresholds against results: every metric, intervals, aborts."""

import pytest

from hyperscale.engine.thresholds import Judge, Standing
from hyperscale.metrics.histogram import Histogram
from hyperscale.metrics.results import (
    CheckResult,
    MetricResult,
    StepResult,
    ThresholdResult,
    WorkflowResult,
)
from hyperscale.workload.threshold_scopes import Names, bind
from hyperscale.workload.thresholds import parse_threshold

NAMES = Names("Shop", ("login", "buy"), ("is_fast",), {"cart": "distribution", "sold": "count"})


def distribution(*latencies_ms: float) -> Histogram:
    histogram = Histogram()
    for latency in latencies_ms:
        histogram.record(latency / 1000)
    return histogram


def shop(login_ms: list[float], *, failed: int = 0, elapsed_s: float = 10.0) -> WorkflowResult:
    login = distribution(*login_ms).distribution()
    buy = distribution(5.0, 5.0).distribution()
    cart = Histogram.from_distribution(distribution(1000.0).distribution())
    return WorkflowResult(
        name="Shop",
        elapsed_s=elapsed_s,
        iterations=7,
        dropped_iterations=3,
        steps=[
            StepResult(
                name="login",
                workflow="Shop",
                count=len(login_ms),
                failed=failed,
                service=login,
                response=login,
                bytes_in=100,
            ),
            StepResult(name="buy", workflow="Shop", count=2, service=buy, response=buy),
        ],
        checks=[CheckResult(name="is_fast", workflow="Shop", passed=9, failed=1)],
        metrics=[
            MetricResult(name="sold", workflow="Shop", kind="count", count=4, value=12.0),
            MetricResult(
                name="cart",
                workflow="Shop",
                kind="distribution",
                count=1,
                value=1.0,
                distribution=cart.distribution(),
            ),
        ],
    )


def judge(expression: str, result: WorkflowResult) -> ThresholdResult:
    return Judge(bind(parse_threshold(expression), NAMES), "Shop").judge(result)


@pytest.mark.parametrize(
    ("expression", "passed"),
    [
        ("p(95)<200", True),
        ("p(95)<50", False),
        ("login: max<100ms", False),
        ("login: min>=1", True),
        ("buy: med<10", True),
        ("http_req_failed: rate<0.2", True),
        ("http_req_failed: rate<0.05", False),
        ("http_reqs: count>=12", True),
        ("http_reqs: rate>=1.2", True),
        ("login: rate>=1", True),
        ("checks: rate>0.95", False),
        ("is_fast: rate>=0.9", True),
        ("iterations: count>7", False),
        ("dropped_iterations: count==0", False),
        ("data_received: count==100", True),
        ("sold: count>=12", True),
    ],
)
def test_each_metric(expression: str, passed: bool) -> None:
    result = shop([1, 2, 3, 4, 5, 6, 7, 8, 9, 100], failed=1)
    verdict = judge(expression, result)
    assert verdict.passed is passed, verdict


def test_nothing_to_judge_does_not_pass() -> None:
    verdict = judge("login: p(95)<200", shop([]))
    assert verdict.passed is False
    assert verdict.actual is None
    assert "nothing to judge" in verdict.actual_text


def test_a_number_close_to_its_limit_has_the_digits_to_tell_them_apart() -> None:
    result = shop([1.0] * 9998, failed=99)  # of 10,000
    assert judge("http_req_failed: rate<1%", result).actual_text == "rate=0.99%"
    result.steps[0].count += 25
    result.steps[0].failed = 100
    assert judge("http_req_failed: rate<1%", result).actual_text == "rate=0.9975%"


def test_abort_waits_for_its_delay() -> None:
    watcher = Judge(bind(parse_threshold("login: p(50)<10 abort after 5s"), NAMES), "Shop")
    assert watcher.watch(shop([50.0], elapsed_s=4.0)) is False
    assert watcher.watch(shop([50.0], elapsed_s=5.0)) is True
    assert watcher.aborted_at_s == 5.0


def test_for_looks_at_the_time_since_the_last_look_only() -> None:
    """Slow for three seconds is forgiven by 'for 5s'; slow for five is not."""
    watcher = Judge(bind(parse_threshold("login: p(50)<10 for 5s"), NAMES), "Shop")
    latencies: list[float] = []
    for second in range(1, 20):
        latencies.append(50.0 if 3 < second <= 6 else 1.0)
        watcher.watch(shop(list(latencies), elapsed_s=float(second)))
    assert watcher.judge(shop(latencies)).passed is True
    for second in range(20, 26):
        latencies.append(50.0)
        watcher.watch(shop(list(latencies), elapsed_s=float(second)))
    assert watcher.judge(shop(latencies)).passed is False


def slow_from(second: int, until: int, watcher: Judge, begin: int = 1) -> list[float]:
    """Look at every second, with the latencies of all seconds before."""
    latencies = [50.0 if second < n <= until else 1.0 for n in range(1, begin)]
    for now in range(begin, until + 1):
        latencies.append(50.0 if now > second else 1.0)
        watcher.watch(shop(list(latencies), elapsed_s=float(now)))
    return latencies


def for_five() -> Judge:
    return Judge(bind(parse_threshold("login: p(50)<10 for 5s"), NAMES), "Shop")


def test_a_clock_goes_on_under_another_judge() -> None:
    first, second = for_five(), for_five()
    slow_from(10, 13, first)
    assert first.standing == Standing(10.0, None)
    second.resume(first.standing)
    slow_from(10, 14, second, begin=14)
    assert second.standing.crossing is None
    slow_from(10, 16, second, begin=15)
    assert second.standing.crossing is not None


def test_what_was_judged_before_is_not_judged_again() -> None:
    """All of the run until now, seen at once, is no bad moment."""
    judge = for_five()
    judge.resume(Standing())
    slow = shop([50.0] * 60, elapsed_s=60.0)
    assert judge.watch(slow) is False
    assert judge.standing == Standing()
    judge.watch(shop([50.0] * 60 + [1.0], elapsed_s=61.0))
    assert judge.judge(shop([1.0], elapsed_s=61.0)).passed is True


def test_a_crossing_is_kept() -> None:
    judge = for_five()
    judge.resume(Standing(None, 50.0))
    verdict = judge.judge(shop([1.0], elapsed_s=70.0))
    assert (verdict.passed, verdict.actual) == (False, 50.0)


def test_a_bad_moment_is_no_news_and_a_lasting_one_is() -> None:
    judge = for_five()
    slow_from(10, 11, judge)
    assert not judge.is_news(Standing())
    slow_from(10, 12, judge, begin=12)
    assert judge.is_news(Standing())
    assert not judge.is_news(judge.standing)
    assert Judge(judge.threshold, "Shop").is_news(judge.standing), "it is over: that is news"
