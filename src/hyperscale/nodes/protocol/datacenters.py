"""Gates and datacenters: probes of managers, and what a gate tells people of what it knows.

A probe is a request like any other, over the connections that jobs go over: a datacenter that
answers probes and no commands would be of no use.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import field

from hyperscale.cluster.datacenters.facts import Facts
from hyperscale.cluster.routing import Decision, Policy
from hyperscale.nodes.protocol import Fields
from hyperscale.nodes.protocol.jobs import Asked
from hyperscale.wire.messages import Priority, Registry

Place = tuple[
    Annotated[str, msgspec.Meta(max_length=255)], Annotated[int, msgspec.Meta(ge=1, le=65_535)]
]


class ProbeDatacenter(Fields, frozen=True, kw_only=True):
    pass


class DatacenterReport(Fields, frozen=True, kw_only=True):
    """Of any manager. `facts` come from the leader only: nobody else knows workers."""

    leader: str = ""
    leader_at: Place | None = None
    managers: tuple[Place, ...] = ()  # that are alive, for when this one is not
    facts: Facts | None = None


class GatePulse(msgspec.Struct, frozen=True, array_like=True):
    """With the probes that gates exchange anyway: whom each of them reaches. One bit for each
    datacenter, in the order of their names, so that hundreds of them fit into a datagram."""

    names: int  # a hash of all names: gates that know others do not understand each other
    reached: bytes


class AskDatacenters(Asked, frozen=True, kw_only=True):
    pass


class DatacenterState(Fields, frozen=True, kw_only=True):
    """One datacenter as the asked gate sees it. None: not known."""

    name: str
    state: str  # healthy busy degraded unhealthy
    reach: str  # reachable suspected unreachable
    since_s: float = 0.0  # it is reached, suspected, or not reached
    why: str = ""
    rtt_s: float | None = None
    rtt_error_s: float = 0.0
    samples: int = 0
    leader: str = ""
    version: str = ""
    facts: Facts | None = None
    facts_age_s: float | None = None
    heard_s: float | None = None  # since its last answer
    missed: int = 0  # probes in a row
    circuits_open: int = 0  # of the managers that are known here
    managers_known: int = 0
    other_gates: tuple[str, ...] = ()  # that reach it


class DatacenterStates(Fields, frozen=True, kw_only=True):
    gate: str
    datacenters: tuple[DatacenterState, ...] = ()
    line_in_doubt: bool = False  # most fell silent at once: it may be this gate that is cut off


class AskRoute(Asked, frozen=True, kw_only=True):
    """Where would it run? Nothing is remembered of the question."""

    count: int = 0
    named: tuple[str, ...] = ()
    policy: Policy = "any"
    excluded: tuple[str, ...] = ()
    cores: int = 0
    job_id: str = ""


class RouteView(Fields, frozen=True, kw_only=True):
    gate: str
    decision: Decision
    snapshot: bytes = field(default=b"")  # all that it depends on, as JSON


DATACENTERS = Registry()
for _kind, _struct, _priority, _limit in (
    ("probe.datacenter", ProbeDatacenter, Priority.CRITICAL, 1 << 10),
    ("datacenter.report", DatacenterReport, Priority.CRITICAL, 64 << 10),
    ("ask.datacenters", AskDatacenters, Priority.NORMAL, 4 << 10),
    ("datacenter.states", DatacenterStates, Priority.NORMAL, 4 << 20),
    ("ask.route", AskRoute, Priority.NORMAL, 64 << 10),
    ("route.view", RouteView, Priority.NORMAL, 4 << 20),
):
    DATACENTERS.add(_struct, kind=_kind, priority=_priority, max_bytes=_limit)
