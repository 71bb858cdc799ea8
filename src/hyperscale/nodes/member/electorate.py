"""Do the voters of a role count over the same list? What each says of its own is compared.

`--voters` is written by hand on every node, so one of them may differ. Majorities of different
lists need not share a voter: each could elect a leader. Voters with another list are not listened
to, and whoever has no more voters on its side than against it takes no part at all: at most one
list has more. What was heard of the dead still counts, so neither side of a partition takes itself
for the larger.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from hyperscale.cluster.election import Eligibility, list_digest
from hyperscale.cluster.membership import Member
from hyperscale.cluster.membership import MemberState as MemberState
from hyperscale.nodes.member.queries import Vitals

# A voter that starts waits this long for the lists of those it finds: two rounds of probes.
COMPARE_S = 2.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Of one voter's list with those of the others."""

    differing: tuple[str, ...] = ()
    agreeing: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    """Alive, and nothing was heard of their lists yet."""
    other_term: int = 0
    """The highest term of those that differ."""

    @property
    def outvoted(self) -> bool:
        return bool(self.differing) and len(self.differing) > len(self.agreeing)


def compare(
    role: str, voters: Collection[str], others: Iterable[tuple[Member, Vitals | None]]
) -> Comparison:
    """`others` are all members this node knows, with what it last heard of each."""
    mine = list_digest(voters)
    differing, agreeing, untold, terms = [], [], [], [0]
    for member, vitals in others:
        if member.node.role != role or member.state is MemberState.LEFT:
            continue
        if vitals is None:
            if member.live and member.confirmed:
                untold.append(member.node_id)
        elif vitals.voters == mine:
            agreeing.append(member.node_id)
        elif vitals.voters:
            differing.append(member.node_id)
            terms.append(vitals.term)
    return Comparison(
        tuple(sorted(differing)), tuple(sorted(agreeing)), tuple(sorted(untold)), max(terms)
    )


@dataclass(slots=True)
class Electorate:
    """This node's list beside those of the others, and what follows from it."""

    node_id: str
    voters: tuple[str, ...]
    patience_s: float = COMPARE_S
    known: Comparison = field(default_factory=Comparison)
    settled: bool = False
    """It has compared once: from then on only a difference keeps it out."""

    def learn(self, known: Comparison, looked: bool, uptime_s: float) -> None:
        """`looked`: the search for others is over, or there is none."""
        self.known = known
        if looked and (not known.untold or uptime_s >= self.patience_s):
            self.settled = True

    @property
    def barred(self) -> bool:
        return not self.settled or self.known.outvoted

    def eligibility(self, health_score: int, syncing: bool) -> Eligibility:
        return Eligibility(float(health_score), self.barred, syncing, self.known.other_term)

    @property
    def why_barred(self) -> str:
        """Empty when it is not."""
        if not self.barred:
            return ""
        return self.sentence or f"{self.node_id} compares its list of voters with those of others"

    @property
    def sentence(self) -> str:
        """What is wrong, for a person; empty when nothing is."""
        if not self.known.differing:
            return ""
        them, mine = listed(self.known.differing), ",".join(sorted(self.voters))
        have = "has" if len(self.known.differing) == 1 else "have"
        what = f"{them} {have} another list of voters than {self.node_id}, which has {mine}"
        if self.known.outvoted:
            return f"{what}: {self.node_id} takes no part until all have the same --voters"
        be = "is" if len(self.known.differing) == 1 else "are"
        return f"{what}: {them} {be} not listened to until all have the same --voters"


def listed(names: Collection[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
