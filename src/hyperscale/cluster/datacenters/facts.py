"""How a datacenter is, from what its leader tells of it and from whether it is reached.

The first row that fits counts:

    UNHEALTHY   nobody is reached there, no manager is alive, or no worker is well
    DEGRADED    it is suspected, tells nothing, nobody leads it, or most of its managers or
                workers are not well
    BUSY        no core is free, or its leader is overloaded: it passes, and is no illness
    HEALTHY     the rest
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

import msgspec

from hyperscale.cluster.datacenters.reach import Reach

Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]  # what no datacenter reaches is a lie
OVERLOADED = 3  # of `cluster.overload.LoadLevel`


class Health(IntEnum):
    """Ordered: the lower is the better place for a job."""

    HEALTHY = 0
    BUSY = 1
    DEGRADED = 2
    UNHEALTHY = 3

    @property
    def word(self) -> str:
        return self.name.lower()


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the leader of a datacenter tells. Only it knows workers and their cores."""

    managers: Count = 1
    managers_alive: Count = 1
    workers: Count = 0
    workers_healthy: Count = 0
    cores: Count = 0
    cores_free: Count = 0
    queued: Count = 0  # jobs that wait for cores
    running: Count = 0
    load: Count = 0  # of the leader's own process, 0 to 3


def judge(
    reach: Reach, heard: bool, facts: Facts | None, leader: str, tells: bool = True
) -> tuple[Health, str]:
    """With the reason, empty for a healthy one. `heard`: ever. `facts`: None when there are none,
    or none that are fresh. `tells`: its managers know what is asked."""
    if not heard:
        return Health.DEGRADED, "nothing was heard of it yet"
    if reach is Reach.UNREACHABLE:
        return Health.UNHEALTHY, "no manager answers"
    if facts is not None:
        if facts.managers_alive == 0:
            return Health.UNHEALTHY, "no manager is alive"
        if facts.workers == 0:
            return Health.UNHEALTHY, "there is no worker"
        if facts.workers_healthy == 0:
            return Health.UNHEALTHY, "none of its workers is well"
    if reach is Reach.SUSPECTED:
        return Health.DEGRADED, "it is silent, and suspected"
    if not tells:
        return Health.DEGRADED, "its managers know no probes, for they are of an older version"
    if not leader:
        return Health.DEGRADED, "nobody leads it"
    if facts is None:
        return Health.DEGRADED, "its leader tells nothing of it"
    if facts.managers_alive < facts.managers // 2 + 1:
        return Health.DEGRADED, _some("managers are alive", facts.managers_alive, facts.managers)
    if facts.workers_healthy < facts.workers // 2 + 1:
        return Health.DEGRADED, _some("workers are well", facts.workers_healthy, facts.workers)
    if facts.load >= OVERLOADED:
        return Health.BUSY, "its leader is overloaded"
    if facts.cores_free == 0:
        return Health.BUSY, "no core is free"
    return Health.HEALTHY, ""


def _some(what: str, some: int, of: int) -> str:
    return f"{some} of {of} {what}"
