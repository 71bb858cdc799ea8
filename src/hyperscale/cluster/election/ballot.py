"""One campaign: whom it asked, who answered what, and whether it is decided."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b


class BallotOutcome(Enum):
    OPEN = "open"
    WON = "won"
    LOST = "lost"


@dataclass(slots=True)
class Ballot:
    term: int
    """The term campaigned for."""
    round: int
    """Tells this campaign's answers from those of an earlier one for the same term."""
    others: tuple[str, ...]
    quorum: int
    released_term: int = 0
    own_vote: bool = False
    """True once our own vote counts and others are asked: when it is on disk, in a real vote."""
    asked_at: float = math.inf
    """When the first request was sent: grants are counted from here, also those of a resend."""
    give_up_at: float = math.inf
    resend_at: float = math.inf
    granted: dict[str, float] = field(default_factory=dict)
    """Voter to the length of the promise that came with the vote."""
    denied: set[str] = field(default_factory=set)

    def silent(self) -> list[str]:
        return [v for v in self.others if v not in self.granted and v not in self.denied]

    def grant(self, voter: str, promise_s: float) -> None:
        self.denied.discard(voter)
        self.granted.setdefault(voter, promise_s)

    def deny(self, voter: str) -> None:
        if voter not in self.granted:
            self.denied.add(voter)

    @property
    def outcome(self) -> BallotOutcome:
        if self.own_vote and len(self.granted) + 1 >= self.quorum:
            return BallotOutcome.WON
        if len(self.others) - len(self.denied) + 1 < self.quorum:
            return BallotOutcome.LOST
        return BallotOutcome.OPEN


def quorum_of(voters: Collection[str]) -> int:
    """More than half of the configured voters, self counted."""
    return len(voters) // 2 + 1


def list_digest(voters: Collection[str]) -> bytes:
    """Equal for equal lists, in whatever order they were written."""
    return blake2b("\n".join(sorted(voters)).encode(), digest_size=8).digest()
