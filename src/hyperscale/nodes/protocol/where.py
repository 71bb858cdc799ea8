"""Where a job may run: what makes no sense, whichever datacenters there are."""

from __future__ import annotations

from collections.abc import Mapping

from hyperscale.nodes.protocol.jobs import Policy


def check_where(wanted: Mapping[str, int], count: int, policy: Policy) -> None:
    """Raises ValueError."""
    if len({share > 0 for share in wanted.values()}) > 1 or min(wanted.values(), default=0) < 0:
        raise ValueError("either each datacenter has a share of the load, or none has")
    if count < 0:
        raise ValueError(f"{count} datacenters cannot be chosen")
    if policy == "prefer" and not wanted:
        raise ValueError("it prefers no datacenter: name those that it prefers")
    if policy == "any" and wanted:
        raise ValueError("it runs in any datacenter, and names some: prefer those, or name none")
    if policy == "any" and not count:
        raise ValueError("it runs in any datacenter, but does not say in how many")
    if policy == "strict" and count and len(wanted) not in (0, count):
        raise ValueError(f"it names {len(wanted)} datacenters and wants {count}")
    if any(wanted.values()) and count not in (0, len(wanted)):
        raise ValueError(f"{len(wanted)} shares cannot be given to {count} datacenters")
