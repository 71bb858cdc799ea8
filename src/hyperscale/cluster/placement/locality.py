"""Which peers are near: those of the same datacenter, then of the same region, then all others."""

from __future__ import annotations

from dataclasses import dataclass


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
