"""What all parts of the protocol share on one node: who we are, what we believe, what is to be
told, what is due, and the effects collected for the shell."""

from __future__ import annotations

import random
from collections import Counter
from enum import IntEnum, auto

from msgspec.structs import replace

from hyperscale.cluster.coordinates import Vivaldi
from hyperscale.cluster.identity import Endpoint, Node, NodeId
from hyperscale.cluster.membership.awareness import Awareness
from hyperscale.cluster.membership.config import MembershipConfig
from hyperscale.cluster.membership.confirmation import Confirmation
from hyperscale.cluster.membership.deadlines import Deadlines
from hyperscale.cluster.membership.dissemination import Dissemination, SeenUpdates
from hyperscale.cluster.membership.effects import Change, Changed, Effect, Persist, Send, Via
from hyperscale.cluster.membership.member import Member, MemberState
from hyperscale.cluster.membership.messages import (
    Alive,
    Datagram,
    Dead,
    Left,
    Sender,
    Suspect,
    Update,
    encode,
    header,
)
from hyperscale.cluster.membership.ring import Ring
from hyperscale.cluster.membership.roles import may_exchange
from hyperscale.cluster.membership.tombstones import Tombstones
from hyperscale.cluster.membership.view import View


class Timer(IntEnum):
    PROBE_ROUND = auto()
    PROBE_TIMEOUT = auto()
    RELAY = auto()  # a probe run for somebody else is late
    GOSSIP = auto()
    EXCHANGE = auto()
    RECONNECT = auto()  # ping somebody dead
    SUSPICION = auto()
    REAP = auto()
    UNCONFIRMED = auto()
    SEED = auto()
    LEAVING = auto()


Due = tuple[Timer, str]

# Members among which a worker looks for one that is no worker.
WORKER_DRAWS = 8


class SharedState:
    __slots__ = (
        "awareness",
        "config",
        "confirmation",
        "counts",
        "deadlines",
        "durable_incarnation",
        "header",
        "heartbeat",
        "heartbeat_version",
        "leaving",
        "me",
        "news",
        "now",
        "out",
        "ring",
        "rng",
        "seen",
        "tombstones",
        "view",
        "vivaldi",
        "wanted_incarnation",
    )

    def __init__(
        self, me: Node, config: MembershipConfig, rng: random.Random, durable_incarnation: int
    ) -> None:
        self.config = config
        self.me = me
        self.rng = rng
        self.now = 0.0
        self.out: list[Effect] = []
        self.counts: Counter[str] = Counter()
        self.header = header(config.cluster)
        self.heartbeat_version = 0
        self.heartbeat = b""
        self.leaving = False
        self.durable_incarnation = durable_incarnation
        self.wanted_incarnation = me.incarnation
        self.view = View()
        self.view.stamp_self(None, me)
        self.ring = Ring(rng)
        self.news = Dissemination(config.news_max)
        self.deadlines: Deadlines[Due] = Deadlines()
        self.tombstones = Tombstones(config.tombstones_max)
        self.seen = SeenUpdates(config.news_max)
        self.awareness = Awareness(
            config.health_score_max, config.health_step, config.health_decay_s
        )
        self.vivaldi = Vivaldi(config.coordinates, rng)
        self.confirmation = Confirmation(
            config.unconfirmed_warning_s,
            config.confirmation_interval_s,
            config.unconfirmed_backoff_max_s,
        )

    # --- effects ------------------------------------------------------------------------------

    def drain(self) -> list[Effect]:
        out, self.out = self.out, []
        return out

    def changed(self, change: Change, member: Member, via: Via) -> None:
        self.counts[change.value] += 1
        self.out.append(
            Changed(change, member.node, member.state, member.incarnation, via, member.confirmed)
        )

    def partners(self, exclude: tuple[NodeId, ...] = ()) -> list[Member]:
        """One live member to compare views with, or none. A worker draws several and takes the
        first that it may call; managers ask workers as well, so it may miss."""
        role = self.me.role
        drawn = self.view.sample(self.rng, WORKER_DRAWS if role == "worker" else 1, exclude)
        return [one for one in drawn if may_exchange(role, one.node.role)][:1]

    def sender(self) -> Sender:
        return Sender(self.me, self.vivaldi.coordinate, self.heartbeat_version, self.heartbeat)

    def send(self, to: Endpoint, message: Datagram) -> None:
        """Send a datagram, filling what room is left with news. Names of the greatest length may
        leave no room for the heartbeat: then it waits for a shorter message."""
        budget = self.config.datagram_bytes_max - self.config.seal_bytes_max
        data = encode(self.header, message)
        if len(data) > budget:
            message = replace(message, sender=Sender(self.me, self.vivaldi.coordinate))
            data = encode(self.header, message)
        if len(data) > budget:
            self.counts["oversize_dropped"] += 1
            return
        if len(self.news):
            # Two bytes: the length of the update list may grow its own encoding.
            room = budget - len(data) - 2
            updates = self.news.take(room, self.config.retransmits(self.population))
            if updates:
                data = encode(self.header, replace(message, updates=message.updates + updates))
                assert len(data) <= budget
        self.out.append(Send(to, data))

    # --- knowledge ----------------------------------------------------------------------------

    @property
    def population(self) -> int:
        """Live nodes, counting ourselves."""
        return self.view.live + 1

    def tell(self, update: Update, *, join: bool = False) -> None:
        """Queue news and make sure that somebody will carry it soon."""
        self.news.add(update, join=join)
        self.hasten_gossip()

    def hasten_gossip(self) -> None:
        if (Timer.GOSSIP, "") not in self.deadlines and len(self.news):
            interval_s = self.config.gossip_interval_s
            self.deadlines.set((Timer.GOSSIP, ""), self.now + interval_s * self.rng.random())

    def belief(self, node_id: NodeId) -> Update | None:
        """What we would tell `node_id` that we believe of itself, if it is not plain alive."""
        member = self.view.get(node_id)
        if member is None:
            ended = self.tombstones.incarnation(node_id, self.now)
            return None if ended is None else Dead(node_id, ended, self.me.node_id)
        if member.state is MemberState.SUSPECT:
            return Suspect(node_id, member.incarnation, self.accusers(member))
        if member.state is MemberState.DEAD:
            return Dead(node_id, member.incarnation, self.me.node_id)
        if member.state is MemberState.LEFT:
            return Left(node_id, member.incarnation)
        return None

    def accusers(self, member: Member) -> tuple[NodeId, ...]:
        if member.suspicion is None:
            return (self.me.node_id,)
        return tuple(sorted(member.suspicion.accusers))

    def buddy(self, node_id: NodeId, speaker_incarnation: int | None = None) -> list[Update]:
        """Lifeguard's buddy: tell a node first what is believed about it, so that it can refute
        in its answer. Also corrects a node that restarted below its old incarnation."""
        if not self.config.buddy:
            return []
        belief = self.belief(node_id)
        if belief is None and speaker_incarnation is not None:
            member = self.view.get(node_id)
            if member is not None and member.incarnation > speaker_incarnation:
                belief = Alive(replace(member.node, incarnation=member.incarnation))
        return [] if belief is None else [belief]

    # --- our own incarnation ------------------------------------------------------------------

    def exceed(self, incarnation: int) -> None:
        """Become fresher than `incarnation`. Only numbers reserved on disk are ever spoken, so a
        restart is always fresher than everything said before it."""
        assert incarnation >= self.me.incarnation or self.wanted_incarnation > incarnation
        self.wanted_incarnation = max(self.wanted_incarnation, incarnation + 1)
        self.reserve()
        self.adopt()

    def reserve(self) -> None:
        block = self.config.incarnation_block
        if self.wanted_incarnation + block // 2 > self.durable_incarnation:
            self.out.append(Persist(self.wanted_incarnation + block))

    def adopt(self) -> bool:
        """Speak as the wanted incarnation if the disk allows it."""
        if not self.me.incarnation < self.wanted_incarnation <= self.durable_incarnation:
            return False
        before, self.me = self.me, replace(self.me, incarnation=self.wanted_incarnation)
        self.view.stamp_self(before, self.me)
        self.tell(Alive(self.me))
        return True
