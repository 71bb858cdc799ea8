"""Vivaldi on synthetic topologies with fixed seeds, as Serf tests it."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest

from hyperscale.cluster.coordinates import (
    Coordinate,
    Vivaldi,
    VivaldiConfig,
    distance_s,
    quality,
    rtt_upper_bound_s,
)

Rtt = Callable[[int, int], float]


def line(i: int, j: int) -> float:
    return abs(i - j) * 0.010


def grid(i: int, j: int) -> float:
    return math.dist(divmod(i, 5), divmod(j, 5)) * 0.010 + 1e-9


def split(i: int, j: int) -> float:
    same_side = (i < 12) == (j < 12)
    return 0.001 if same_side else 0.011


def height(i: int, j: int) -> float:
    """A circle around node 0, which has a slow access link."""
    radius, nodes = 0.100, 25
    if 0 in (i, j):
        return 2 * radius
    angle = 2 * math.pi * abs(i - j) / nodes
    return max(1e-6, 2 * radius * math.sin(angle / 2))


def continents(i: int, j: int) -> float:
    places = (0.0, 0.05, 0.15, 0.3)
    return 0.005 + abs(places[i % 4] - places[j % 4])


def simulate(
    rtt: Rtt, nodes: int = 25, cycles: int = 1000, noise: float = 0.0, seed: int = 1
) -> list[Vivaldi]:
    rng = random.Random(seed)
    members = [Vivaldi(VivaldiConfig(), random.Random(n)) for n in range(nodes)]
    for _ in range(cycles):
        for i, member in enumerate(members):
            j = rng.randrange(nodes)
            if i != j:
                measured = rtt(i, j) * (1 + noise * rng.random())
                member.observe(str(j), members[j].coordinate, measured)
    return members


def mean_error(members: list[Vivaldi], rtt: Rtt) -> float:
    errors = [
        abs(distance_s(members[i].coordinate, members[j].coordinate) - rtt(i, j)) / rtt(i, j)
        for i, j in itertools.combinations(range(len(members)), 2)
    ]
    return sum(errors) / len(errors)


@pytest.mark.parametrize(
    ("rtt", "bound"),
    [(line, 0.01), (grid, 0.01), (split, 0.08), (height, 0.01), (continents, 0.04)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_topologies_are_learnt(rtt: Rtt, bound: float) -> None:
    assert mean_error(simulate(rtt), rtt) < bound


def test_noise_is_survived() -> None:
    assert mean_error(simulate(grid, noise=0.1), grid) < 0.15


def test_a_cloud_does_not_drift_away() -> None:
    members = simulate(split, nodes=20, cycles=4000, noise=0.2)
    middle = [
        sum(axis) / 20 for axis in zip(*(m.coordinate.position for m in members), strict=True)
    ]
    assert math.hypot(*middle) < 0.010


def test_convergence_in_twenty_rounds() -> None:
    """30 nodes at 5 to 300 ms, error below 20 % of the round trips."""
    members = simulate(continents, nodes=30, cycles=20)
    pairs = list(itertools.combinations(range(30), 2))
    wrong_s = sum(
        abs(distance_s(members[i].coordinate, members[j].coordinate) - continents(i, j))
        for i, j in pairs
    )
    assert wrong_s < 0.20 * sum(continents(i, j) for i, j in pairs)


def good(**changes: object) -> Coordinate:
    base = {"position": (0.1, 0.0, 0.0, 0.0), "height": 0.001, "error": 0.1, "error_s": 0.01}
    return Coordinate(**{**base, "samples": 20, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("theirs", "rtt_s"),
    [
        (good(position=(math.nan, 0.0, 0.0, 0.0)), 0.1),
        (good(position=(math.inf, 0.0, 0.0, 0.0)), 0.1),
        (good(position=(0.1, 0.0)), 0.1),
        (good(height=-1.0), 0.1),
        (good(height=math.nan), 0.1),
        (good(error=-0.1), 0.1),
        (good(error_s=math.inf), 0.1),
        (good(), 0.0),
        (good(), -1.0),
        (good(), 10.1),
        (good(), math.nan),
    ],
)
def test_nonsense_changes_nothing(theirs: Coordinate, rtt_s: float) -> None:
    member = Vivaldi(VivaldiConfig(), random.Random(1))
    before = member.coordinate
    assert not member.observe("x", theirs, rtt_s)
    assert member.coordinate == before
    assert member.refused == 1


def test_one_spike_is_no_distance() -> None:
    calm, spiked = (Vivaldi(VivaldiConfig(), random.Random(1)) for _ in range(2))
    for _ in range(20):
        calm.observe("x", good(), 0.05)
        spiked.observe("x", good(), 0.05)
    calm.observe("x", good(), 0.05)
    spiked.observe("x", good(), 5.0)
    assert spiked.coordinate == calm.coordinate


@pytest.mark.parametrize(
    ("coordinate", "age_s", "expected"),
    [
        (None, 0.0, 0.0),
        (good(), 0.0, 1.0),
        (good(samples=5), 0.0, 0.5),
        (good(error_s=0.04), 0.0, 0.5),
        (good(), 600.0, 0.5),
        (good(samples=0), 0.0, 0.0),
        (good(samples=5, error_s=0.04), 600.0, 0.125),
    ],
)
def test_quality(coordinate: Coordinate | None, age_s: float, expected: float) -> None:
    assert quality(coordinate, age_s, VivaldiConfig()) == pytest.approx(expected)


def test_upper_bound_stays_within_its_limits() -> None:
    config = VivaldiConfig()
    here = good(position=(0.0, 0.0, 0.0, 0.0))
    assert rtt_upper_bound_s(None, here, config) == pytest.approx(0.200)
    assert rtt_upper_bound_s(here, here, config) == pytest.approx(0.002 + 2 * 0.02)
    far = good(position=(9.0, 0.0, 0.0, 0.0))
    assert rtt_upper_bound_s(here, far, config) == config.rtt_upper_s
    exact = good(position=(0.0,) * 4, height=0.0, error_s=0.0)
    assert rtt_upper_bound_s(exact, exact, config) == pytest.approx(0.002)
