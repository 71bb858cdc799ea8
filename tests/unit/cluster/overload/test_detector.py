"""Synthetic sequences: a sample every 0.1 s, an assessment every 0.5 s, as a node would do."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from hyperscale.cluster.overload.detector import (
    OverloadDetector,
    OverloadSettings,
    Resources,
    slope,
    trimmed_mean,
)
from hyperscale.cluster.overload.priority import LoadLevel

USUAL_S = 0.010


class Story:
    def __init__(self, settings: OverloadSettings | None = None) -> None:
        self.detector = OverloadDetector(settings)
        self.now = 1_000.0
        self.states: list[LoadLevel] = []

    def feed(
        self, latencies: Iterable[float], resources: Resources | None = None
    ) -> list[LoadLevel]:
        """The states seen while this was fed."""
        before = len(self.states)
        for count, latency_s in enumerate(latencies, 1):
            self.now += 0.1
            self.detector.record(self.now, latency_s)
            if count % 5 == 0:
                self.states.append(self.detector.assess(self.now, resources).load)
        return self.states[before:]

    def usual(self, seconds: float = 30.0) -> None:
        assert set(self.feed([USUAL_S] * int(seconds * 10))) == {LoadLevel.HEALTHY}

    def resources(self, *readings: Resources) -> list[LoadLevel]:
        seen = []
        for reading in readings:
            self.now += 0.5
            seen.append(self.detector.assess(self.now, reading).load)
        return seen


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (1.15, LoadLevel.HEALTHY),
        (1.3, LoadLevel.BUSY),
        (1.7, LoadLevel.STRESSED),
        (2.0, LoadLevel.STRESSED),
        (2.2, LoadLevel.OVERLOADED),
        (10.0, LoadLevel.OVERLOADED),
        (1_000.0, LoadLevel.OVERLOADED),
    ],
)
def test_a_sustained_step_is_seen_and_stays_seen(factor: float, expected: LoadLevel) -> None:
    story = Story()
    story.usual()
    states = story.feed([USUAL_S * factor] * 3_000)
    assert states[1] == expected, "within a second"
    assert set(states[1:]) == {expected}, "and for five minutes"


def test_one_outlier_changes_nothing() -> None:
    story = Story()
    story.usual()
    states = story.feed([5.0] + [USUAL_S] * 300)
    assert set(states) == {LoadLevel.HEALTHY}
    assert story.detector.assess(story.now).baseline_s == pytest.approx(USUAL_S)


def test_recovery_goes_step_by_step() -> None:
    story = Story()
    story.usual()
    story.feed([USUAL_S * 10] * 100)
    states = story.feed([USUAL_S] * 300)
    assert states[0] == LoadLevel.OVERLOADED
    assert states[-1] == LoadLevel.HEALTHY
    assert states == sorted(states, reverse=True), "never worse again on the way"
    assert set(states) == set(LoadLevel), "through every step"
    assert states.count(LoadLevel.STRESSED) in (10, 11), "5 s each, seen every half second"


def test_flapping_input_gives_one_steady_state() -> None:
    story = Story()
    story.usual()
    flapping = ([USUAL_S * 1.3] * 10 + [USUAL_S] * 10) * 30
    states = story.feed(flapping)
    first_busy = states.index(LoadLevel.BUSY)
    assert set(states[first_busy:]) == {LoadLevel.BUSY}


def test_latency_just_under_a_limit_does_not_leave_the_state() -> None:
    story = Story()
    story.usual()
    story.feed([USUAL_S * 1.3] * 50)
    assert set(story.feed([USUAL_S * 1.19] * 200)) == {LoadLevel.BUSY}
    assert story.feed([USUAL_S * 1.1] * 200)[-1] == LoadLevel.HEALTHY


def test_the_baseline_is_frozen_while_unhealthy() -> None:
    story = Story()
    story.usual()
    story.feed([USUAL_S * 3] * 1_000)
    assert story.detector.assess(story.now).baseline_s == pytest.approx(USUAL_S)


def test_slow_drift_is_learned() -> None:
    story = Story()
    story.usual()
    states = story.feed(USUAL_S * (1 + step / 6_000) for step in range(6_000))
    assert set(states) == {LoadLevel.HEALTHY}


def test_a_steady_rise_counts_one_step_worse() -> None:
    story = Story()
    story.usual()
    ramp = [USUAL_S * (1 + 0.015 * step) for step in range(1, 60)]
    states = story.feed(ramp)
    assert LoadLevel.OVERLOADED in states, "0.15 per second, before the excess reaches 1.0"
    flat = Story()
    flat.usual()
    assert max(flat.feed([ramp[-1]] * 59)) == LoadLevel.STRESSED


def test_a_new_normal_is_accepted_in_the_end() -> None:
    story = Story(OverloadSettings(relearn_after_s=60.0))
    story.usual()
    states = story.feed([USUAL_S * 3] * 1_000)
    assert states[1] == LoadLevel.OVERLOADED
    assert states[-1] == LoadLevel.HEALTHY


def test_an_overload_with_another_symptom_is_never_a_new_normal() -> None:
    story = Story(OverloadSettings(relearn_after_s=60.0))
    story.usual()
    states = story.feed([USUAL_S * 3] * 2_000, Resources(cpu=0.8))
    assert set(states[1:]) == {LoadLevel.OVERLOADED}


@pytest.mark.parametrize(
    ("latency_s", "expected"),
    [
        (0.199, LoadLevel.HEALTHY),
        (0.21, LoadLevel.BUSY),
        (0.51, LoadLevel.STRESSED),
        (2.01, LoadLevel.OVERLOADED),
    ],
)
def test_absolute_bounds_hold_without_a_baseline(latency_s: float, expected: LoadLevel) -> None:
    assert Story().feed([latency_s] * 5) == [expected]


def test_below_the_floor_relative_latency_is_noise() -> None:
    story = Story()
    assert set(story.feed([0.001] * 300)) == {LoadLevel.HEALTHY}
    assert set(story.feed([0.005] * 300)) == {LoadLevel.HEALTHY}


@pytest.mark.parametrize("name", ["cpu", "memory", "queue"])
@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.7, LoadLevel.HEALTHY),
        (0.71, LoadLevel.BUSY),
        (0.86, LoadLevel.STRESSED),
        (0.96, LoadLevel.OVERLOADED),
    ],
)
def test_resources(name: str, share: float, expected: LoadLevel) -> None:
    reading = Resources(**{name: share})
    assert Story().resources(reading, reading, reading)[-1] == expected


def test_one_reading_unlike_the_others_changes_nothing() -> None:
    usual, spike = Resources(cpu=0.3), Resources(cpu=1.0)
    assert set(Story().resources(usual, usual, spike, usual, usual)) == {LoadLevel.HEALTHY}


def test_no_samples_and_no_resources_is_healthy() -> None:
    assert OverloadDetector().assess(5.0).load == LoadLevel.HEALTHY


def test_an_idle_node_recovers() -> None:
    story = Story()
    story.usual()
    story.feed([1.0] * 50)
    story.now += 20.0
    assert story.resources(*[Resources()] * 40)[-1] == LoadLevel.HEALTHY


def test_arithmetic() -> None:
    assert trimmed_mean([1.0, 1.0, 1.0, 1.0, 100.0], 0.2) == 1.0
    assert trimmed_mean([4.0], 0.2) == 4.0
    assert slope([(0.0, 0.0), (1.0, 0.5), (2.0, 1.0)]) == pytest.approx(0.5)
    assert slope([(1.0, 3.0), (1.0, 9.0)]) == 0.0


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="rising"):
        OverloadSettings(cpu_limits=(0.9, 0.8, 0.95))
    with pytest.raises(ValueError, match="samples_min"):
        OverloadSettings(samples_min=0)
