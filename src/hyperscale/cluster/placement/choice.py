"""Choosing among peers: power of two choices, and how close they are.

Two candidates at random and the less loaded of them is nearly as even as knowing all loads, and
unlike "the least loaded" it does not send everybody to the same peer when reports are late. The
dice are the host's, not those of a cipher: nobody gains by guessing them, and the simulator replays
them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass


def power_of_two(
    candidates: Sequence[str], load: Callable[[str], float], dice: random.Random
) -> str | None:
    """None without candidates. Equal loads: the first one drawn, which is random."""
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    first, second = dice.sample(candidates, 2)
    return second if load(second) < load(first) else first


class Ewma:
    """Exponentially weighted mean; the first sample stands for itself."""

    __slots__ = ("_alpha", "samples", "value")

    def __init__(self, alpha: float = 0.2) -> None:
        if not 0 < alpha <= 1:
            raise ValueError("alpha must be in (0, 1]")
        self._alpha = alpha
        self.value = 0.0
        self.samples = 0

    def add(self, sample: float) -> float:
        self.samples += 1
        alpha = self._alpha if self.samples > 1 else 1.0
        self.value += alpha * (sample - self.value)
        return self.value


@dataclass(frozen=True, slots=True)
class Place:
    datacenter: str = ""
    region: str = ""


@dataclass(frozen=True, slots=True)
class LocalityRule:
    prefer_same_dc: bool = True
    prefer_same_region: bool = True
    min_peers_per_tier: int = 3


def tier(here: Place, there: Place, rule: LocalityRule) -> int:
    """0 same datacenter, 1 same region, 2 anywhere. An unnamed place is near to nothing."""
    if rule.prefer_same_dc and here.datacenter and here.datacenter == there.datacenter:
        return 0
    if rule.prefer_same_region and here.region and here.region == there.region:
        return 1
    return 2


def nearby(here: Place, peers: dict[str, Place], rule: LocalityRule | None = None) -> list[str]:
    """Peers of the nearest tier; further tiers join while there are too few."""
    rule = rule or LocalityRule()
    tiers: list[list[str]] = [[], [], []]
    for name in sorted(peers):
        tiers[tier(here, peers[name], rule)].append(name)
    chosen: list[str] = []
    for members in tiers:
        if len(chosen) >= rule.min_peers_per_tier:
            break
        chosen += members
    return chosen
