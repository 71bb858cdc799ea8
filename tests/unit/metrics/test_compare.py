from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from hyperscale.metrics import noise
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.compare import Comparison, compare
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.metrics.histogram import Histogram, summarise
from hyperscale.metrics.results import Distribution, Results, StepPoint, decode, encode

SEEDS = 60


def simulate(
    seed: int,
    *,
    slower: float = 1.0,
    slower_step: float = 1.0,
    errors: float = 0.01,
    rate: float = 1.0,
    seconds: int = 30,
    swing: float = 0.02,
    ramp: bool = False,
    steps: tuple[str, ...] = ("home", "cart"),
    base_ms: tuple[float, ...] = (20.0, 40.0),
    mix: tuple[float, ...] = (1.0, 1.0),
    own_timelines: bool = True,
) -> Results:
    """A run whose seconds are good or bad together: the level swings with a memory (AR(1))."""
    random = np.random.default_rng(seed)
    aggregate = WorkflowAggregate("Shop", steps)
    timelines: dict[str, list[StepPoint]] = {name: [] for name in steps}
    level = 0.0
    for second in range(seconds):
        level = 0.5 * level + random.normal(0, swing * np.sqrt(0.75))
        load = (second + 1) / seconds if ramp else 1.0
        total = max(1, int(500 * rate * load * np.exp(-level) * random.normal(1, 0.01)))
        deltas = []
        for number, name in enumerate(steps):
            count = total if mix[number] == 1 else int(random.binomial(total, mix[number]))
            factor = slower * (slower_step if number == 1 else 1.0) * (1 + load) / 1000
            values = random.lognormal(np.log(base_ms[number] * factor) + level, 0.4, count)
            delta = RequestDelta(
                RequestKey(name),
                count=count,
                failed=int(random.binomial(count, errors)),
                service=summarise(values),
            )
            deltas.append(delta)
            timelines[name].append(point(second, delta))
        aggregate.apply(0, Delta(seq=second + 1, requests=deltas), second + 0.9)
        aggregate.advance(second + 1)
    result = aggregate.freeze()
    for step in result.steps:
        step.series = timelines[step.name] if own_timelines else []
    return Results(workflows=[result])


def point(second: int, delta: RequestDelta) -> StepPoint:
    latencies = Histogram()
    if delta.service is not None:
        latencies.add(delta.service)
    p50, p95, p99 = (value * 1000 for value in latencies.percentiles((50, 95, 99)))
    return StepPoint(
        at_s=float(second),
        width_s=1.0,
        requests=delta.count,
        failed=delta.failed,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
    )


def verdicts(slower: float = 1.0, **both: Any) -> list[str]:
    return [
        compare(simulate(seed, **both), simulate(seed + 1000, slower=slower, **both)).verdict
        for seed in range(SEEDS)
    ]


def scope(comparison: Comparison, name: str):
    return next(c for c in comparison.compared if c.name == name)


def change(comparison: Comparison, name: str, metric: str):
    return next(c for c in scope(comparison, name).changes if c.metric == metric)


@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"own_timelines": False},
        {"swing": 0.1},
        {"mix": (1.0, 0.02)},  # a step that is rarely taken
        {"base_ms": (1.0, 5.0)},
    ],
)
def test_runs_of_the_same_system_are_the_same(kind: dict[str, Any]):
    assert verdicts(**kind).count("same") >= 0.95 * SEEDS


def test_one_percent_slower_is_not_worth_an_alarm():
    assert verdicts(slower=1.01).count("same") >= 0.95 * SEEDS


def test_ten_percent_slower_is_found():
    assert verdicts(slower=1.1).count("worse") >= 0.95 * SEEDS


def test_the_verdict_names_what_decided_it_and_sets_the_exit_code():
    comparison = compare(simulate(1), simulate(2, slower=1.3))
    assert (comparison.verdict, comparison.exit_code) == ("worse", 99)
    assert comparison.reason.startswith("Worse beyond noise: Shop p50 +")
    p95 = change(comparison, "Shop.cart", "p95")
    assert p95.verdict == "worse"
    assert p95.low < p95.change < p95.high
    assert p95.change == pytest.approx(p95.after / p95.before - 1)
    assert p95.change == pytest.approx(0.3, abs=0.05)


def test_the_other_way_round_is_better_and_passes():
    comparison = compare(simulate(1, slower=1.3), simulate(2))
    assert (comparison.verdict, comparison.exit_code) == ("better", 0)


def test_a_single_slower_step_is_found_in_its_step():
    comparison = compare(simulate(1), simulate(2, slower_step=1.3))
    assert change(comparison, "Shop.cart", "p50").verdict == "worse"
    assert change(comparison, "Shop.home", "p50").verdict == "same"


def test_a_step_is_as_noisy_as_itself_and_not_as_its_workflow():
    """Half of the requests are fast and half are slow: the median of them all jumps from one half
    to the other from second to second, while that of each step is calm."""
    system = {"base_ms": (0.25, 2.64), "mix": (0.5, 0.5)}
    before, after = simulate(1, **system), simulate(2, slower_step=1.58, **system)
    comparison = compare(before, after)
    slow = change(comparison, "Shop.cart", "p50")
    assert slow.verdict == "worse"
    assert (slow.low, slow.high) == (pytest.approx(0.58, abs=0.1), pytest.approx(0.58, abs=0.1))
    assert {one.verdict for one in scope(comparison, "Shop.home").changes} == {"same"}
    for results in (before, after):
        for step in results.workflows[0].steps:
            step.series = []
    assert change(compare(before, after), "Shop.cart", "p50").verdict == "same", "as without"


def test_calls_that_were_never_sent_are_errors():
    down = simulate(2)
    for step in down.workflows[0].steps:
        step.failed = step.unsent = step.count
        step.count, step.service = 0, Distribution()
        step.series = [
            StepPoint(at_s=each.at_s, width_s=1.0, failed=each.requests) for each in step.series
        ]
    comparison = compare(simulate(1), down)
    for name in ("Shop", "Shop.home", "Shop.cart"):
        errors = change(comparison, name, "error_share")
        assert (errors.after, errors.verdict) == (1.0, "worse")


def test_more_errors_are_worse_although_latencies_stay():
    comparison = compare(simulate(1), simulate(2, errors=0.03))
    errors = change(comparison, "Shop", "error_share")
    assert errors.verdict == "worse"
    assert errors.change == pytest.approx(0.02, abs=0.003)
    assert "errors" in comparison.reason
    assert comparison.exit_code == 99


def test_fewer_requests_per_second_are_worse():
    comparison = compare(simulate(1), simulate(2, rate=0.8))
    assert change(comparison, "Shop", "throughput").verdict == "worse"


def test_a_ramp_shared_by_both_runs_does_not_hide_a_change():
    assert compare(simulate(1, ramp=True), simulate(2, ramp=True)).verdict == "same"
    slower = compare(simulate(1, ramp=True), simulate(2, ramp=True, slower=1.15))
    assert change(slower, "Shop", "p50").verdict == "worse"


def test_tolerance_decides_what_is_relevant():
    before, after = simulate(1), simulate(2, slower=1.3)
    assert compare(before, after, tolerance=0.5).verdict == "same"


def test_short_runs_are_judged_cautiously_and_say_so():
    same = compare(simulate(1, seconds=3), simulate(2, seconds=3, slower=1.05))
    assert same.verdict == "same"
    assert "too short" in same.notes[0]
    assert compare(simulate(1, seconds=3), simulate(2, seconds=3, slower=2)).verdict == "worse"


def test_runs_of_different_length_meet_over_the_time_they_share():
    long = simulate(3, seconds=1_100)
    assert {point.width_s for point in long.workflows[0].series} == {10.0, 1.0}
    assert compare(simulate(1), long).verdict == "same"
    assert compare(long, simulate(1, slower=1.3)).verdict == "worse"


def test_runs_without_a_common_step_are_not_comparable():
    comparison = compare(simulate(1, seconds=3), simulate(2, seconds=3, steps=("other",)))
    assert (comparison.verdict, comparison.exit_code) == ("not comparable", 2)
    assert comparison.only_before == ["Shop.home", "Shop.cart"]
    assert comparison.only_after == ["Shop.other"]


def test_a_target_that_no_longer_answers_is_worse():
    down = Results(workflows=[simulate(2).workflows[0]])
    aggregate = WorkflowAggregate("Shop", ["home", "cart"])
    for second in range(30):
        step = RequestDelta(RequestKey("home"), count=500, failed=500)
        aggregate.apply(0, Delta(seq=second + 1, requests=[step]), second + 0.9)
    aggregate.advance(30)
    down.workflows = [aggregate.freeze()]
    comparison = compare(simulate(1), down)
    assert change(comparison, "Shop", "error_share").verdict == "worse"
    assert change(comparison, "Shop.cart", "throughput").verdict == "worse"


def test_notes_warn_of_unequal_conditions():
    before, after = simulate(1, seconds=6), simulate(2, seconds=6)
    after.workflows[0].load = "20 VUs for 6s"
    after.saturation = "The load generator was the bottleneck."
    before.cut, before.cut_reason = "signal", "Ctrl-C"
    notes = " ".join(compare(before, after).notes)
    assert "another load" in notes
    assert "In the second run: The load generator was the bottleneck." in notes
    assert "The first run was cut short: Ctrl-C." in notes


def test_the_same_files_give_the_same_verdict_also_after_a_round_trip():
    before, after = simulate(1), simulate(2, slower=1.1)
    once = compare(before, after)
    again = compare(decode(encode(before)), decode(encode(after)))
    assert msgspec.json.encode(once) == msgspec.json.encode(again)


@pytest.mark.parametrize(
    ("t", "freedom", "expected"),
    [(2.0, 10, 0.0734), (4.0, 5, 0.0103), (1.0, 30, 0.3253), (3.0, 1000, 0.00277)],
)
def test_p_values_agree_with_student(t, freedom, expected):
    assert noise.p_value(t, 1.0, freedom) == pytest.approx(expected, abs=0.002)


def test_the_margin_is_where_the_p_value_reaches_five_percent():
    for freedom in (3, 10, 100):
        assert noise.p_value(noise.margin(4.0, freedom), 4.0, freedom) == pytest.approx(0.05)


def test_memory_in_a_series_widens_its_spread():
    random = np.random.default_rng(5)
    white = random.normal(size=200)
    slow = np.convolve(random.normal(size=220), np.ones(20) / np.sqrt(20), "valid")[:200]
    calm, wavy = noise.spread(white), noise.spread(slow)
    assert wavy.variance / slow.var() > 5 * calm.variance / white.var()
    assert noise.spread(white[:4]) is None


def test_holm_accepts_fewer_of_many():
    assert noise.holm([0.004], 0.01) == [True]
    assert noise.holm([0.004, 0.5, 0.5, 0.5], 0.01) == [False] * 4
    assert noise.holm([0.5, 0.001, 0.004], 0.01) == [False, True, True]


def test_the_largest_of_a_few_requests_is_no_percentile() -> None:
    def few(slowest_s: float) -> Results:
        aggregate = WorkflowAggregate("Shop", ("home",))
        values = np.array([0.002] * 19 + [slowest_s])
        told = RequestDelta(RequestKey("home"), count=20, service=summarise(values))
        aggregate.apply(0, Delta(seq=1, requests=[told]), 0.9)
        aggregate.advance(1)
        return Results(workflows=[aggregate.freeze()])

    comparison = compare(few(0.002), few(0.05))
    assert comparison.verdict == "same"
    metrics = {change.metric for scope in comparison.compared for change in scope.changes}
    assert "p99" not in metrics
    assert "p95" in metrics
