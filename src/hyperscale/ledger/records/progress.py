"""What a leader knows of another voter's log, and what to send it next.

Probing: where the logs part is not known, one request at a time. Streaming: the last request was
confirmed, so the next ones are sent without waiting. Installing: it is being sent the state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from hyperscale.ledger.records.messages import Append, Appended


class Pace(Enum):
    PROBING = "probing"
    STREAMING = "streaming"
    INSTALLING = "installing"


@dataclass(slots=True)
class VoterProgress:
    next_index: int
    """What to send next; while streaming, ahead of what is confirmed."""
    match_index: int = 0
    """Equal to the leader's log up to here, on the voter's stable storage."""
    pace: Pace = Pace.PROBING
    in_flight: int = 0
    told_commit: int = -1
    """The last commit index sent."""
    newcomer: bool = False
    """It began with an empty disk and nobody has vouched for it yet."""
    founder: bool = False
    """It counts all the same: it is one of those that began the cluster together."""
    since_round: int = 0
    """Answers to requests of an earlier round are those of a life that is over."""
    witnesses: set[str] = field(default_factory=set)
    """Voters that obeyed this leader since it knew of the newcomer."""
    vouched: bool = False
    """It was told that it may count; whether it heard shows its answer."""

    @property
    def counts(self) -> bool:
        return self.founder or not self.newcomer

    def may_send(self, pipeline_max: int) -> bool:
        if self.pace is Pace.INSTALLING:
            return False
        return self.in_flight < (pipeline_max if self.pace is Pace.STREAMING else 1)

    def sent(self, request: Append) -> None:
        self.in_flight += 1
        self.told_commit = request.commit_index
        self.vouched = request.vouches
        if self.pace is Pace.STREAMING:
            self.next_index += len(request.entries)

    @property
    def is_fresh(self) -> bool:
        """Nothing was heard of it in this term."""
        return self.match_index == 0 and self.since_round == 0

    def is_news(self, reply: Appended) -> bool:
        """The voter lost what it had confirmed."""
        return reply.newcomer and (
            not self.newcomer or (not reply.done and reply.index < self.match_index)
        )

    def began_anew(self, round: int, reply: Appended, *, founder: bool) -> None:
        self.match_index, self.next_index = 0, reply.index + 1
        self.told_commit = -1
        self.vouched = False
        self.pace = Pace.PROBING
        self.newcomer, self.founder, self.since_round = True, founder, round
        self.witnesses.clear()

    def confirmed(self, reply: Appended) -> None:
        self.newcomer = reply.newcomer
        self.match_index = max(self.match_index, reply.index)
        self.next_index = max(self.next_index, self.match_index + 1)
        if self.pace is Pace.PROBING:
            self.pace = Pace.STREAMING

    def parted(self, request: Append, reply: Appended) -> None:
        """The voter's log is not the leader's at the place the request began."""
        if request.previous_index <= self.match_index:
            return  # overtaken by a confirmation
        self._back_to(min(request.previous_index, reply.index + 1))

    def lost(self, request: Append) -> None:
        """No answer: whether it arrived is unknown, so it is sent again."""
        self.in_flight -= 1
        self.told_commit, self.vouched = -1, False
        self._back_to(min(self.next_index, request.previous_index + 1))

    def installed(self, index: int) -> None:
        """`index` 0: the state did not get through."""
        self.match_index = max(self.match_index, index)
        self.next_index = self.match_index + 1
        self.pace = Pace.PROBING

    def _back_to(self, index: int) -> None:
        self.next_index = max(self.match_index + 1, index)
        if self.pace is Pace.STREAMING:
            self.pace = Pace.PROBING
