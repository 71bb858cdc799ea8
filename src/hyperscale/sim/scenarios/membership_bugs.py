"""Bugs planted in the membership core, each of which one checker must catch."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache, partial

from hyperscale.cluster.identity import Node, NodeId
from hyperscale.cluster.membership import Change, Membership, MembershipConfig, MemberState, Via
from hyperscale.cluster.membership.effects import Heartbeat
from hyperscale.cluster.membership.member import Member
from hyperscale.cluster.membership.messages import Left, Sender, decode_datagram
from hyperscale.cluster.membership.state import Timer
from hyperscale.cluster.membership.updates import Updates

MakeCore = Callable[[Node, MembershipConfig, random.Random, int], Membership]


# A round of gossip is one datagram to several nodes, and here they all live in one process.
decode_once = lru_cache(maxsize=256)(decode_datagram)


class NeverRefutes(Updates):
    def about_me(self, state: MemberState, incarnation: int, node: Node | None) -> None:
        """Says nothing when accused."""


class BuriesAtOnce(Updates):
    def suspect(
        self, node_id: NodeId, incarnation: int, accusers: tuple[NodeId, ...], via: Via
    ) -> None:
        if via is Via.PROBE:
            self.dead(node_id, incarnation, self._shared.me.node_id, Via.TIMEOUT)
        else:
            super().suspect(node_id, incarnation, accusers, via)


class KeepsDeathToItself(Updates):
    """Neither tells of suspects and deaths nor listens to them."""

    def suspect(
        self, node_id: NodeId, incarnation: int, accusers: tuple[NodeId, ...], via: Via
    ) -> None:
        if self._shared.me.node_id == "n1" and via is Via.PROBE:
            super().suspect(node_id, incarnation, accusers, via)

    def dead(self, node_id: NodeId, incarnation: int, declared_by: NodeId, via: Via) -> None:
        if via is Via.TIMEOUT:
            super().dead(node_id, incarnation, declared_by, via)


class RaisesOthers(Updates):
    def suspect(
        self, node_id: NodeId, incarnation: int, accusers: tuple[NodeId, ...], via: Via
    ) -> None:
        raised = incarnation + 1 if via is Via.PROBE else incarnation
        super().suspect(node_id, raised, accusers, via)


class BelievesStaleViews(Updates):
    def alive(self, node: Node, via: Via) -> Member | None:
        member = self._shared.view.get(node.node_id)
        if via is Via.EXCHANGE and member is not None and member.state is MemberState.LEFT:
            self.forget(member, 0.0, Change.REAPED)
            self._shared.tombstones.remove(node.node_id)
        return super().alive(node, via)


class TakesAnyHeartbeat(Updates):
    def _heartbeat(self, member: Member, sender: Sender) -> None:
        shared = self._shared
        shared.out.append(Heartbeat(sender.node, sender.heartbeat_version, sender.heartbeat))


class HoardsNews(Updates):
    def alive(self, node: Node, via: Via) -> Member | None:
        shared = self._shared
        subject = f"{node.node_id} {shared.counts['pings']}"
        shared.news.add(Left(subject, node.incarnation))
        return super().alive(node, via)


UPDATES: dict[str, type[Updates]] = {
    "never-refutes": NeverRefutes,
    "buries-at-once": BuriesAtOnce,
    "keeps-death-to-itself": KeepsDeathToItself,
    "raises-others": RaisesOthers,
    "believes-stale-views": BelievesStaleViews,
    "takes-any-heartbeat": TakesAnyHeartbeat,
    "hoards-news": HoardsNews,
}


class NeverReconnects(Membership):
    def _fire(self, due: tuple[Timer, str]) -> None:
        if due[0] not in (Timer.RECONNECT, Timer.EXCHANGE, Timer.SEED):
            super()._fire(due)


def plant(planted_bug: str) -> MakeCore:
    """How to make the core: as it is, or with a bug in it."""
    if planted_bug == "never-reconnects":
        return NeverReconnects
    if planted_bug == "forgets-incarnation":
        return lambda me, config, rng, _durable: Membership(me, config, rng, 0)
    if planted_bug not in UPDATES:
        return partial(Membership, decode=decode_once)

    def make(me: Node, config: MembershipConfig, rng: random.Random, durable: int) -> Membership:
        return Membership(me, config, rng, durable, UPDATES[planted_bug])

    return make
