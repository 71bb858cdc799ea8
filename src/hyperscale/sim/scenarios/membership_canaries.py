"""Bugs planted in the membership core, each of which one checker must catch."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache, partial

from hyperscale.cluster.identity import Node, NodeId
from hyperscale.cluster.membership import Change, Membership, MembershipConfig, State, Via
from hyperscale.cluster.membership.effects import Heartbeat
from hyperscale.cluster.membership.member import Member
from hyperscale.cluster.membership.messages import Left, Sender, decode_datagram
from hyperscale.cluster.membership.rumors import Rumors
from hyperscale.cluster.membership.station import Timer

MakeCore = Callable[[Node, MembershipConfig, random.Random, int], Membership]


# A round of gossip is one datagram to several nodes, and here they all live in one process.
decode_once = lru_cache(maxsize=256)(decode_datagram)


class NeverRefutes(Rumors):
    def about_me(self, state: State, incarnation: int, node: Node | None) -> None:
        """Says nothing when accused."""


class BuriesAtOnce(Rumors):
    def suspect(
        self, node_id: NodeId, incarnation: int, accusers: tuple[NodeId, ...], via: Via
    ) -> None:
        if via is Via.PROBE:
            self.dead(node_id, incarnation, self._station.me.node_id, Via.TIMEOUT)
        else:
            super().suspect(node_id, incarnation, accusers, via)


class KeepsDeathToItself(Rumors):
    """Neither tells of suspects and deaths nor listens to them."""

    def suspect(
        self, node_id: NodeId, incarnation: int, accusers: tuple[NodeId, ...], via: Via
    ) -> None:
        if self._station.me.node_id == "n1" and via is Via.PROBE:
            super().suspect(node_id, incarnation, accusers, via)

    def dead(self, node_id: NodeId, incarnation: int, declared_by: NodeId, via: Via) -> None:
        if via is Via.TIMEOUT:
            super().dead(node_id, incarnation, declared_by, via)


class RaisesOthers(Rumors):
    def suspect(
        self, node_id: NodeId, incarnation: int, accusers: tuple[NodeId, ...], via: Via
    ) -> None:
        raised = incarnation + 1 if via is Via.PROBE else incarnation
        super().suspect(node_id, raised, accusers, via)


class BelievesStaleViews(Rumors):
    def alive(self, node: Node, via: Via) -> Member | None:
        member = self._station.view.get(node.node_id)
        if via is Via.EXCHANGE and member is not None and member.state is State.LEFT:
            self.forget(member, 0.0, Change.REAPED)
            self._station.tombstones.remove(node.node_id)
        return super().alive(node, via)


class TakesAnyHeartbeat(Rumors):
    def _heartbeat(self, member: Member, sender: Sender) -> None:
        station = self._station
        station.out.append(Heartbeat(sender.node, sender.heartbeat_version, sender.heartbeat))


class HoardsNews(Rumors):
    def alive(self, node: Node, via: Via) -> Member | None:
        station = self._station
        subject = f"{node.node_id} {station.counts['pings']}"
        station.news.add(Left(subject, node.incarnation))
        return super().alive(node, via)


RUMORS: dict[str, type[Rumors]] = {
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


def plant(canary: str) -> MakeCore:
    """How to make the core: as it is, or with a bug in it."""
    if canary == "never-reconnects":
        return NeverReconnects
    if canary == "forgets-incarnation":
        return lambda me, config, rng, _durable: Membership(me, config, rng, 0)
    if canary not in RUMORS:
        return partial(Membership, decode=decode_once)

    def make(me: Node, config: MembershipConfig, rng: random.Random, durable: int) -> Membership:
        return Membership(me, config, rng, durable, RUMORS[canary])

    return make
