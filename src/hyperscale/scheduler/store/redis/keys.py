"""Names of keys and members.

All keys of a store share one hash tag, so a cluster keeps them in one slot and a script may touch
them together; scripts get every key they use by name and build none. Sorted sets whose scores are
all 0 are ordered by their members' bytes: such members are built here.
"""

from __future__ import annotations

from typing import Any, Final

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.placement import lane_of
from hyperscale.scheduler.store.tables import Kind

COUNTERS: Final = "counters"
HEADS: Final = "heads"
RUNS: Final = "runs"
READY: Final = "ready"
DELAYED: Final = "delayed"
AGEING: Final = "ageing"
HELD: Final = "held"
HOLDERS: Final = "holders"
DONE: Final = "done"
LIVE: Final = "live"
NEWEST: Final = "newest"
STATES: Final = "states"
BY_SCHEDULE: Final = "by_schedule"

TOKENS: Final = "tokens"
NEWS: Final = "news"
"""Fields of COUNTERS; the scripts know them too."""

NUL: Final = "\x00"
BEHIND_NUL: Final = "\x01"
LAST: Final = "\U0010ffff"
"""Sorts behind every character of a key."""


def table(kind: Kind[Any]) -> str:
    return f"table:{kind.name}"


def index(kind: Kind[Any]) -> str:
    return f"at:{kind.name}"


def listing(kind: Kind[Any]) -> str:
    return f"keys:{kind.name}"


def queue_member(job: Job) -> str:
    """Of READY, DELAYED and AGEING; within a lane in the order of claims."""
    due, created = max(0, job.due_at), max(0, job.created_at)
    return f"{lane_of(job)}{NUL}{job.rank:04d}{due:017d}{created:017d}{job.id}"


def queue_member_id(member: bytes) -> str:
    return member.decode().partition(NUL)[2][38:]


def time_member(created_at: Instant, job_id: str) -> str:
    return f"{max(0, created_at):017d}{job_id}"


def time_member_id(member: str) -> str:
    return member[17:]


def under(prefix: str, member: str) -> str:
    return f"{prefix}{NUL}{member}"


def under_all(prefix: str) -> tuple[str, str]:
    """The range of everything under a prefix."""
    return f"[{prefix}{NUL}", f"({prefix}{BEHIND_NUL}"


def under_id(member: bytes) -> str:
    """The job id of a time member under a prefix."""
    return time_member_id(member.decode().partition(NUL)[2])
