"""Who leads, and how a question finds its way there.

A client may ask any manager. One that does not lead asks the leader in its stead, once: a
question that was passed on and finds no leader is refused, and the client asks again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from hyperscale.cluster.membership import MemberState
from hyperscale.nodes.manager.retrying_sender import RetryingSender
from hyperscale.nodes.member.access import asker
from hyperscale.nodes.member.electorate import listed
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.member.passing_on import (
    ASK_AGAIN_S,
    PASS_ON_TIMEOUT_S,
    passed_on,
    passing_on,
)
from hyperscale.runtime.host import Address, Host
from hyperscale.wire.errors import Reason, Refused
from hyperscale.wire.peer import Peer
from hyperscale.wire.serving import Call

A = TypeVar("A")


class Leadership:
    def __init__(self, host: Host, node: Node) -> None:
        self._node = node
        self.peers = RetryingSender(host, lambda: node.endpoint, "manager")
        self.term = 0
        """Of our own leadership; 0 while we do not lead or are not ready to."""

    def leads(self) -> bool:
        """Ask right before every act of leadership."""
        election = self._node.election
        return self.term > 0 and election is not None and election.may_lead()

    def is_elected(self) -> bool:
        """We hold the lease, whether or not we are ready to lead."""
        election = self._node.election
        return election is not None and election.may_lead()

    def leaderless_s(self) -> float:
        election = self._node.election
        return 0.0 if election is None else election.leaderless_s()

    @property
    def leader(self) -> str:
        election = self._node.election
        return (election.leader if election is not None else None) or ""

    @property
    def newest_term(self) -> int:
        election = self._node.election
        return 0 if election is None else election.term

    def waits_for(self) -> str:
        """Why nobody leads, as far as this manager can tell."""
        node = self._node
        if node.barred:
            return f"no leader: {node.barred}"
        voters = sorted(node.settings.voters)
        if self.leader:
            return f"no leader yet: {self.leader} was elected and collects the records of jobs"
        answering = [
            m.node_id for m in node.membership.core.members() if m.state is MemberState.ALIVE
        ]
        alive = {node.settings.id, *answering}
        silent = [voter for voter in voters if voter not in alive]
        if not silent:
            return f"no leader: {listed(voters)} elect one"
        do = "does" if len(silent) == 1 else "do"
        return (
            f"no leader: waiting for a majority of {', '.join(voters)}; "
            f"{listed(silent)} {do} not answer"
        )

    def leader_address(self) -> tuple[str, int] | None:
        return self._address_of(self.leader)

    def _address_of(self, node_id: str) -> tuple[str, int] | None:
        if node_id == self._node.settings.id:
            return self._node.membership.me.tcp
        member = self._node.membership.core.member(node_id) if node_id else None
        return None if member is None else member.node.tcp

    def peer(self, node_id: str) -> Peer | None:
        """Another manager, wherever it is now."""
        address = self._address_of(node_id)
        if address is None:
            return None
        self.peers.at(node_id, Address(*address))
        return self.peers.peer(node_id)

    def elsewhere(self, call: Call, message: Any) -> Peer:
        """The leader, for a message that is not for us. Raises Refused."""
        self._node.check_started(call)
        if not message.passed_on:
            leader = self.leader
            peer = self.peer(leader) if leader and leader != self._node.settings.id else None
            if peer is not None:
                return peer
        raise Refused(call.kind.name, self.waits_for(), ASK_AGAIN_S, Reason.OVERLOADED)

    def on_leader(
        self, answer: type[A], handler: Callable[[Call, Any], Awaitable[A]]
    ) -> Callable[[Call, Any], Awaitable[A]]:
        """A handler that only the leader carries out."""

        async def handle(call: Call, message: Any) -> A:
            if self.leads():
                self.count(call, message)
                return await handler(call, message)
            peer = self.elsewhere(call, message)
            with passing_on(call):
                return await peer.request(passed_on(call, message), answer, PASS_ON_TIMEOUT_S)

        return handle

    def count(self, call: Call, message: Any) -> None:
        """A question that another manager passed on is one of whoever asked that manager. Raises
        Refused when it is one too many of theirs. A gate has counted what it brings, and may bring
        all the jobs of another one at once."""
        if call.peer.role == "manager":
            denial = self._node.admission.counts_for(call.kind, asker(call, message).name)
            if denial is not None:
                raise Refused(call.kind.name, *denial)
