"""A node as a voter: its election, what it says of its standing, and what it tells people.

Every voter logs who leads, whether enough voters are alive to elect anybody, and that their lists
differ; not the leader alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperscale.nodes.member.channels import ChannelHost, ElectionNetwork, named
from hyperscale.nodes.member.election_shell import ElectionPlan, ElectionShell
from hyperscale.nodes.member.electorate import Electorate, compare
from hyperscale.nodes.member.queries import Vitals
from hyperscale.runtime.host import Address, Host

if TYPE_CHECKING:
    from hyperscale.nodes.member.node import Node
    from hyperscale.nodes.member.shared_port import SharedPort


class Voting:
    def __init__(self, host: Host, node: Node, port: SharedPort) -> None:
        settings = node.settings
        plan = ElectionPlan(
            group=settings.group,
            node_id=settings.id,
            bind=settings.bind,
            voters={voter: Address(voter, 0) for voter in settings.voters},
            settings=settings.election,
        )
        network = ElectionNetwork(port, self._place_of)
        self.election = ElectionShell(ChannelHost(host, network), plan, named=named)
        self.electorate = Electorate(settings.id, settings.voters)
        self.list_digest = plan.list_digest
        self.quorum_changes = 0
        self._host = host
        self._node = node
        self._log = node.log
        self.quorum: bool | None = None
        self._said = ""

    async def start(self) -> None:
        election = self.election
        election.on_leader_change.append(self._leader_changed)
        election.on_lose_leadership.append(self._leadership_lost)
        if len(self._node.settings.voters) == 2:
            self._log.warning(
                "two voters survive no failure: without either of them nobody leads; name three"
            )
        await election.start(self.electorate.standing(0, syncing=False))
        self._host.tasks.spawn("watch the voter", self._watch())

    def refresh(self) -> None:
        """Look again at what others say, and at ourselves."""
        node, core = self._node, self._node.membership.core
        known = [(member, node.vitals.get(member.node_id)) for member in core.members()]
        found = compare(node.settings.role, node.settings.voters, known)
        self.electorate.learn(found, node.has_looked, node.uptime_s)
        self.election.set_standing(self.electorate.standing(core.health_score, self._syncing()))
        self._tell_difference()
        self._tell_quorum()

    def vitals(self, health_score: int, pulse: bytes) -> Vitals:
        election = self.election
        syncing = self._node.syncing()
        return Vitals(
            health_score, election.term, election.leader, pulse, self.list_digest, syncing
        )

    def _syncing(self) -> bool:
        """Where all begin with nothing, as in a new cluster, nobody waits for anybody."""
        told = [self._node.vitals.get(voter) for voter in self._node.settings.voters]
        return self._node.syncing() and any(one and not one.syncing for one in told)

    # -- what is told ------------------------------------------------------------------------

    def _tell_difference(self) -> None:
        sentence = self.electorate.sentence
        if sentence and sentence != self._said:
            self._log.error("voters differ", reason=sentence)
        elif self._said and not sentence:
            self._log.info("all voters have the same list again")
        self._said = sentence

    def _tell_quorum(self) -> None:
        alive = [node.node_id for node in self._node.membership.core.active()]
        quorum = self.election.quorum_alive(alive)
        if quorum == self.quorum:
            return
        missing = sorted({*self._node.settings.voters} - {*alive, self._node.settings.id})
        if quorum:
            self._log.info("a majority of voters is alive", missing=missing)
        else:
            self._log.warning("no majority of voters is alive: nobody can lead", missing=missing)
        self.quorum_changes += self.quorum is not None
        self.quorum = quorum

    def _leader_changed(self, term: int, leader: str | None) -> None:
        self._log.info("leader changed", leader=leader, term=term, correlation_id=f"term-{term}")
        self._node.tell_vitals()

    def _leadership_lost(self, term: int, reason: str) -> None:
        self._log.warning(
            "leadership lost", term=term, reason=reason, correlation_id=f"term-{term}"
        )

    # -- helpers -----------------------------------------------------------------------------

    def _place_of(self, node_id: str) -> Address | None:
        member = self._node.membership.core.member(node_id)
        return None if member is None else Address(*member.node.udp)

    async def _watch(self) -> None:
        try:
            await self.election.failed()
        except OSError as error:
            self._log.critical("a voter that cannot remember must not vote", error=str(error))
            self._node.failure = error
            self._node.over.set()
