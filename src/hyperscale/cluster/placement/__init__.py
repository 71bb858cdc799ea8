"""Who serves whom: rings, rendezvous ranking, random choices and sticky pools of peers."""

from hyperscale.cluster.placement.choice import Ewma, LocalityRule, Place, nearby, power_of_two
from hyperscale.cluster.placement.hashing import stable_hash, unit_interval
from hyperscale.cluster.placement.rendezvous import health_weight, latency_factor, rank
from hyperscale.cluster.placement.ring import HashRing, RingEmpty
from hyperscale.cluster.placement.sticky import StickyPool, StickySettings

__all__ = [
    "Ewma",
    "HashRing",
    "LocalityRule",
    "Place",
    "RingEmpty",
    "StickyPool",
    "StickySettings",
    "health_weight",
    "latency_factor",
    "nearby",
    "power_of_two",
    "rank",
    "stable_hash",
    "unit_interval",
]
