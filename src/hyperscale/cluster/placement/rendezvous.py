"""Weighted rendezvous hashing: each key ranks all nodes, each node gets its share by weight.

A node's score for a key is -w / ln(u) with u uniform in (0, 1) from hash(node, key): the chance to
be highest is w over the sum of all weights, exactly, and changing one node's weight moves keys
only to or from that node. (Hash times weight, the tempting form, has neither property.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from hyperscale.cluster.placement.hashing import unit_interval

WEIGHT_MIN = 0.1
WEIGHT_STEP = 0.1
"""Health is rounded to tenths: small changes of it must not move anybody."""


def score(node: str, key: str, weight: float) -> float:
    return -weight / math.log(unit_interval(node, key))


def rank(weights: Mapping[str, float], key: str, keep: int | None = None) -> list[str]:
    """Nodes from best to worst for this key; those of weight zero or less are left out."""
    usable = {node: weight for node, weight in weights.items() if weight > 0}
    ordered = sorted(usable, key=lambda node: (-score(node, key, usable[node]), node))
    return ordered[:keep]


def latency_factor(latency_s: float, typical_s: float) -> float:
    """0 up to the typical latency of the peers, 1 from three times it (where a peer is slow)."""
    if typical_s <= 0:
        return 0.0
    return min(1.0, max(0.0, (latency_s / typical_s - 1) / 2))


def health_weight(error_rate: float, slowness: float) -> float:
    """max(0.1, 1 - 2 x error rate - 0.5 x latency factor), in tenths."""
    weight = 1 - 2 * error_rate - 0.5 * slowness
    return max(WEIGHT_MIN, round(round(weight / WEIGHT_STEP) * WEIGHT_STEP, 10))
