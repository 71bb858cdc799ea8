"""Datagrams that carry nothing but news, sent only while there is some."""

from __future__ import annotations

from hyperscale.cluster.membership.effects import Send
from hyperscale.cluster.membership.messages import Gossip, encode
from hyperscale.cluster.membership.state import SharedState, Timer


class GossipRounds:
    __slots__ = ("_shared",)

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared

    def round(self) -> None:
        """The same datagram to a few members: packed and encoded once."""
        shared, config = self._shared, self._shared.config
        targets = shared.view.sample(shared.rng, config.gossip_fanout)
        if targets and len(shared.news):
            empty = encode(shared.header, Gossip(shared.sender(), []))
            room = config.datagram_bytes_max - config.seal_bytes_max - len(empty) - 2
            limit = config.retransmits(shared.population)
            updates = shared.news.take(room, limit, len(targets))
            data = encode(shared.header, Gossip(shared.sender(), updates))
            for member in targets:
                shared.out.append(Send(member.node.udp, data))
        shared.deadlines.cancel((Timer.GOSSIP, ""))
        if len(shared.news) and targets:
            shared.deadlines.set((Timer.GOSSIP, ""), shared.now + config.gossip_interval_s)
        if shared.leaving and (shared.me.node_id not in shared.news or not targets):
            shared.deadlines.set((Timer.LEAVING, ""), shared.now)
