"""What a replica that is recovering or leading knows of the other voters, for one term.

Who counts is decided here. A newcomer, whose disk was empty when it began, counts when a majority
of newcomers founds a cluster, or when all voters are there, so that nothing can be missing; and
later when a leader vouches for it, because it has everything and a majority that remembers has
obeyed that leader since it knew of the newcomer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hyperscale.ledger.records.messages import Append, Appended, Recovered
from hyperscale.ledger.records.progress import Progress


@dataclass(slots=True)
class Leadership:
    term: int
    name: str
    voters: int
    quorum: int
    answers: dict[str, Recovered] = field(default_factory=dict)
    progress: dict[str, Progress] = field(default_factory=dict)
    barrier: int = 0
    """The index of the first entry of the term; 0 while recovering."""
    founders: frozenset[str] = frozenset()
    """Newcomers who count in this term, as does one that comes late to it."""
    round: int = 0
    """How often a voter was found to have begun anew."""

    def newcomers(self, me: bool) -> list[str]:
        """Voters that are there and do not remember; `me`: this one does not."""
        found = [self.name] if me else []
        found += [peer for peer, answer in self.answers.items() if answer.newcomer]
        return found + [peer for peer, one in self.progress.items() if one.newcomer]

    def has_majority(self, me: bool) -> bool:
        """Of voters that have promised and remember, or of founders."""
        remember = len(self.answers) + 1 - len(self.newcomers(me))
        return remember >= self.quorum or self._may_found(me)

    def _may_found(self, me: bool) -> bool:
        everybody = len(self.answers) + 1 == self.voters
        return everybody or len(self.newcomers(me)) >= self.quorum

    def begin(self, peers: tuple[str, ...], last_index: int, me: bool) -> None:
        newcomers = frozenset(self.newcomers(me))
        if self._may_found(me):
            self.founders = newcomers
        for peer in peers:
            answer = self.answers.get(peer)
            seen = last_index if answer is None else min(answer.last_index, last_index)
            self.progress[peer] = Progress(
                seen + 1, newcomer=peer in newcomers, founder=peer in self.founders
            )
        self.answers.clear()

    def note(self, peer: str, request: Append, reply: Appended) -> None:
        """A voter's answer in this term."""
        progress = self.progress[peer]
        progress.in_flight -= 1
        if progress.is_news(reply):
            self.round += 1
            late = bool(self.founders) and progress.is_fresh
            progress.began_anew(self.round, reply, founder=late)
        elif request.round < progress.since_round:
            return  # its life before
        elif not reply.done:
            progress.parted(request, reply)
        else:
            progress.confirmed(reply)
            if not progress.newcomer:
                for other in self.progress.values():
                    if other.newcomer and request.round >= other.since_round:
                        other.witnesses.add(peer)

    def vouches(self, progress: Progress, me: bool) -> bool:
        """With so many witnesses no newer term has begun that the newcomer may have promised."""
        witnesses = len(progress.witnesses) + (not me)
        return progress.newcomer and (progress.founder or witnesses >= self.quorum)

    def is_wanted(self, peer: str, me: bool) -> bool:
        """An answer of this voter would help a newcomer to count."""
        progress = self.progress[peer]
        if progress.newcomer:
            return not progress.vouched and self.vouches(progress, me)
        return progress.in_flight == 0 and any(
            other.newcomer and peer not in other.witnesses for other in self.progress.values()
        )

    def held_by_majority(self, own_index: int, me: bool) -> int:
        """Up to where a majority of those that count has the log; 0 when there is none."""
        held = [one.match_index for one in self.progress.values() if one.counts]
        if not me or self.name in self.founders:
            held.append(own_index)
        return sorted(held, reverse=True)[self.quorum - 1] if len(held) >= self.quorum else 0
