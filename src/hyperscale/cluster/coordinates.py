"""Where a node sits on a map whose distances are round-trip times (Vivaldi, with height).

Every answered probe pulls or pushes our point a little so that the distance to the peer agrees
with the measured time. Height models the access link, which every path crosses. Only our own
measurements move us: a round trip reported by somebody else is never believed, and a coordinate
that is not finite or has the wrong number of dimensions changes nothing.

The constants are those published with Serf, in four dimensions.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass

import msgspec


class Coordinate(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """All in seconds, except `error`, which is relative (0.1 = predictions are off by 10 %).
    `error_s` is the smoothed absolute error, for people and for upper bounds."""

    position: tuple[float, ...]
    height: float
    error: float
    error_s: float
    samples: int


@dataclass(frozen=True, slots=True)
class VivaldiConfig:
    dimensions: int = 4
    error_max: float = 1.5  # also the start: we know nothing
    ce: float = 0.25  # how fast the error estimate follows
    cc: float = 0.25  # largest share of a step
    cc_first: float = 0.6  # bolder at first: below 20 % error within 20 probe rounds
    first_samples: int = 20
    height_min_s: float = 10e-6
    gravity_rho_s: float = 150.0  # pulls drifting clouds back; negligible below a second
    filter_samples: int = 3  # median per peer: one queueing spike is no distance
    rtt_max_s: float = 10.0
    error_smoothing: float = 0.1

    # Quality and upper bound.
    samples_for_routing: int = 10
    error_good_s: float = 0.020
    ttl_s: float = 300.0
    rtt_default_s: float = 0.100
    sigma_default_s: float = 0.050
    sigma_min_s: float = 0.001
    sigma_max_s: float = 0.200
    k_sigma: float = 2.0
    rtt_min_s: float = 0.001
    rtt_upper_s: float = 2.0


_ZERO_S = 1e-6  # below this two points coincide


def distance_s(one: Coordinate, other: Coordinate) -> float:
    """Predicted round trip."""
    return math.dist(one.position, other.position) + one.height + other.height


def quality(coordinate: Coordinate | None, age_s: float, config: VivaldiConfig) -> float:
    """0 (useless) to 1: enough samples, small error, fresh."""
    if coordinate is None:
        return 0.0
    samples = min(1.0, coordinate.samples / config.samples_for_routing)
    error = min(1.0, config.error_good_s / max(coordinate.error_s, 0.001))
    fresh = 1.0 if age_s <= config.ttl_s else config.ttl_s / age_s
    return min(1.0, max(0.0, samples * error * fresh))


def rtt_upper_bound_s(
    one: Coordinate | None, other: Coordinate | None, config: VivaldiConfig
) -> float:
    """A round trip that is rarely exceeded; a default when a coordinate is missing, so
    that ignorance never excludes a peer."""
    if one is None or other is None:
        estimate, sigma = config.rtt_default_s, config.sigma_default_s
    else:
        estimate = distance_s(one, other)
        sigma = _clamp(one.error_s + other.error_s, config.sigma_min_s, config.sigma_max_s)
    return _clamp(estimate + config.k_sigma * sigma, config.rtt_min_s, config.rtt_upper_s)


class Vivaldi:
    """Our own point and the filters in front of it."""

    __slots__ = ("_config", "_filters", "_rng", "coordinate", "refused", "updates")

    def __init__(self, config: VivaldiConfig, rng: random.Random) -> None:
        self._config = config
        self._rng = rng
        self._filters: dict[str, deque[float]] = {}
        self.updates = 0
        self.refused = 0
        self.coordinate = Coordinate(
            (0.0,) * config.dimensions, config.height_min_s, config.error_max, 0.0, 0
        )

    def observe(self, peer: str, theirs: Coordinate, rtt_s: float) -> bool:
        """Learn from one measured round trip; False when it was refused."""
        if not (0.0 < rtt_s <= self._config.rtt_max_s and self._sound(theirs)):
            self.refused += 1
            return False
        self.coordinate = self._moved(theirs, self._filtered(peer, rtt_s))
        self.updates += 1
        return True

    def samples_s(self, peer: str) -> tuple[float, ...]:
        """The last round trips measured to a peer, oldest first."""
        return tuple(self._filters.get(peer, ()))

    def forget(self, peer: str) -> None:
        self._filters.pop(peer, None)

    def _sound(self, theirs: Coordinate) -> bool:
        numbers = (*theirs.position, theirs.height, theirs.error, theirs.error_s)
        return (
            len(theirs.position) == self._config.dimensions
            and all(map(math.isfinite, numbers))
            and theirs.height >= 0.0
            and theirs.error >= 0.0
            and theirs.error_s >= 0.0
        )

    def _filtered(self, peer: str, rtt_s: float) -> float:
        samples = self._filters.get(peer)
        if samples is None:
            samples = self._filters[peer] = deque(maxlen=self._config.filter_samples)
        samples.append(rtt_s)
        return sorted(samples)[len(samples) // 2]

    def _moved(self, theirs: Coordinate, rtt_s: float) -> Coordinate:
        config, mine = self._config, self.coordinate
        predicted_s = distance_s(mine, theirs)
        total_error = max(mine.error + theirs.error, _ZERO_S)
        weight = mine.error / total_error
        relative = abs(predicted_s - rtt_s) / rtt_s
        share = config.ce * weight
        error = min(config.error_max, relative * share + mine.error * (1.0 - share))
        gain = config.cc_first if mine.samples < config.first_samples else config.cc
        position, height = self._pushed(theirs, gain * weight * (rtt_s - predicted_s))
        smoothing = max(config.error_smoothing, 1.0 / (mine.samples + 1))
        error_s = mine.error_s + smoothing * (abs(predicted_s - rtt_s) - mine.error_s)
        return Coordinate(self._pulled(position), height, error, error_s, mine.samples + 1)

    def _pushed(self, theirs: Coordinate, force_s: float) -> tuple[tuple[float, ...], float]:
        """Move along the line from the peer to us; our height takes its share of the force."""
        config, mine = self._config, self.coordinate
        direction, magnitude = self._direction(theirs)
        position = tuple(
            p + unit * force_s for p, unit in zip(mine.position, direction, strict=True)
        )
        if magnitude <= _ZERO_S:
            return position, mine.height
        height = mine.height + (mine.height + theirs.height) * force_s / magnitude
        return position, max(config.height_min_s, height)

    def _direction(self, theirs: Coordinate) -> tuple[tuple[float, ...], float]:
        mine = self.coordinate.position
        magnitude = math.dist(mine, theirs.position)
        if magnitude > _ZERO_S:
            return (
                tuple((a - b) / magnitude for a, b in zip(mine, theirs.position, strict=True)),
                magnitude,
            )
        while True:
            guess = [self._rng.random() - 0.5 for _ in mine]
            length = math.hypot(*guess)
            if length > _ZERO_S:
                return tuple(g / length for g in guess), 0.0

    def _pulled(self, position: tuple[float, ...]) -> tuple[float, ...]:
        """Gravity towards the origin, so that the whole cloud cannot drift away together."""
        away = math.hypot(*position)
        if away <= _ZERO_S:
            return position
        pull = (away / self._config.gravity_rho_s) ** 2 / away
        return tuple(p - p * pull for p in position)


def _clamp(value: float, low: float, high: float) -> float:
    return min(high, max(low, value))
