"""What an election asks of the world, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.cluster.election.messages import Message


@dataclass(frozen=True, slots=True)
class Durable:
    """What a voter must never forget."""

    term: int = 0
    voted_for: str | None = None


@dataclass(frozen=True, slots=True)
class Send:
    to: str
    message: Message


@dataclass(frozen=True, slots=True)
class Persist:
    """Write `durable` to stable storage, then call `persisted(token)`. A later token covers all
    earlier ones, so only the newest of several waiting writes need be done."""

    token: int
    durable: Durable


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Call `tick` at this time; replaces the timer set before. Early and late calls are harmless
    to safety. None: nothing to wait for."""

    at: float | None


@dataclass(frozen=True, slots=True)
class BecameLeader:
    term: int


@dataclass(frozen=True, slots=True)
class LostLeadership:
    term: int
    reason: str


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """The leader this voter follows (itself included); None while it knows of none."""

    term: int
    leader: str | None


@dataclass(frozen=True, slots=True)
class HandoverRefused:
    reason: str


Effect = Send | Persist | SetTimer | BecameLeader | LostLeadership | LeaderChanged | HandoverRefused
