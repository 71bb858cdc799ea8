"""What anybody allowed to look may ask a member: who is there, and how are you."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from hyperscale.wire.messages import Priority, Registry

# Ten thousand rows of some 200 bytes, compressed on the way.
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024

Correlation = Annotated[str, msgspec.Meta(max_length=64)]


class AskMembers(msgspec.Struct, frozen=True, tag="member.ask_members"):
    correlation_id: Correlation = ""


class MemberRow(msgspec.Struct, frozen=True, kw_only=True):
    """One member as the asked node sees it. None: the asked node does not know."""

    node_id: str
    role: str
    datacenter: str
    state: str  # alive, suspect, dead, left
    confirmed: bool  # False: others speak of it, this node has not heard it
    incarnation: int
    address: str
    since_s: float  # in this state
    syncing: bool = False  # a manager whose copy of the records does not count yet
    health_score: int | None = None  # 0 is well, 8 is worst
    rtt_s: float | None = None  # estimated from coordinates
    rtt_measured_s: float | None = None  # of the last probe
    coordinate_error: float | None = None  # relative: 0.1 is 10 % off


class Members(msgspec.Struct, frozen=True, kw_only=True, tag="member.members"):
    node_id: str
    cluster: str
    env: str
    rows: list[MemberRow]
    voters: list[str] = []
    leader: str | None = None
    term: int = 0
    difference: str = ""  # what is wrong when voters were given different lists


class AskStatus(msgspec.Struct, frozen=True, tag="member.ask_status"):
    correlation_id: Correlation = ""


class Status(msgspec.Struct, frozen=True, kw_only=True, tag="member.status"):
    node_id: str
    incarnation: int
    version: str
    uptime_s: float
    load: str
    discovery: str
    election: str  # state of this voter; "" when it is none
    tasks: list[str]
    counts: dict[str, float]


class Vitals(msgspec.Struct, frozen=True, array_like=True):
    """What a member says with each of its probes."""

    health_score: int
    term: int
    leader: str | None
    pulse: bytes = b""  # of its role, see `nodes.protocol`
    voters: bytes = b""  # digest of its list; empty when it does not vote
    syncing: bool = False  # its copy of the records does not count yet


QUERIES: Final = Registry()
QUERIES.add(AskMembers, priority=Priority.NORMAL, max_bytes=1_024)
QUERIES.add(Members, priority=Priority.NORMAL, max_bytes=ANSWER_BYTES_MAX)
QUERIES.add(AskStatus, priority=Priority.NORMAL, max_bytes=1_024)
QUERIES.add(Status, priority=Priority.NORMAL, max_bytes=ANSWER_BYTES_MAX)
