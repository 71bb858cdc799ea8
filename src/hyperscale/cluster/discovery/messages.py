"""What two nodes say before they know each other: which cluster, who, where.

The cluster and environment are compared before anything else is looked at, and a mismatch names
both sides. The answer carries the whole identity with its UDP address, which nobody could guess
from the address that was probed.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from hyperscale.cluster.identity import Node

PROBE_BYTES_MAX: Final = 1_024

Cluster = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class Probe(msgspec.Struct, frozen=True, tag="discovery.probe"):
    cluster_id: Cluster
    environment_id: Cluster
    node: Node


class ProbeAnswer(msgspec.Struct, frozen=True, tag="discovery.answer"):
    cluster_id: Cluster
    environment_id: Cluster
    node: Node


def mismatch(mine: Probe, theirs: Probe | ProbeAnswer) -> str | None:
    """Why these two must not meet; None when they may."""
    if theirs.cluster_id != mine.cluster_id:
        return f"expected cluster '{mine.cluster_id}', received '{theirs.cluster_id}'"
    if theirs.environment_id != mine.environment_id:
        return f"expected environment '{mine.environment_id}', received '{theirs.environment_id}'"
    if are_apart(mine.node.role, theirs.node.role):
        return f"a {theirs.node.role} is no member beside a {mine.node.role}: gates have gates"
    return None


def are_apart(one: str, other: str) -> bool:
    """Gates are members among themselves: a datacenter has members of its own, and is probed."""
    return (one == "gate") != (other == "gate")
