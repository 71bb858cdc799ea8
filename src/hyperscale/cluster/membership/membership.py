"""SWIM with Lifeguard: who is in the cluster, and who of them is alive.

Theory of operation. Each round a node pings one other; a silent one is asked through proxies, and
if still silent it is *suspected*, not buried. A suspect that hears of it raises its incarnation
and is alive again; one that does not is dead when the suspicion runs out, sooner the more nodes
accuse it. All of this spreads as news on the same datagrams, with extra ones only while there is
news. Once in a while two nodes compare whole views over a stream, and dead ones are pinged, so
that partitions heal.

    unknown --gossip--> unconfirmed --heard first-hand--> ALIVE <--> SUSPECT --> DEAD --> reaped
                             |                              ^                     |
                             +--> given up (never dead)     +-- higher incarnation+

This class composes the parts. It does no I/O: the shell passes the time, datagrams and exchange
messages in, carries the returned effects out, and calls `tick` at `deadline`. Calling `tick` too
early or too late is harmless; too late is noticed, and the time we slept is held against nobody.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from operator import attrgetter

from hyperscale.cluster.coordinates import Coordinate, distance_s, rtt_upper_bound_s
from hyperscale.cluster.identity import Endpoint, Node, NodeId
from hyperscale.cluster.membership.awareness import HealthEvent
from hyperscale.cluster.membership.config import MembershipConfig
from hyperscale.cluster.membership.confirmation import Unconfirmed
from hyperscale.cluster.membership.effects import Departed, Effect
from hyperscale.cluster.membership.exchange import Exchanges
from hyperscale.cluster.membership.gossip import GossipRounds
from hyperscale.cluster.membership.joining import Joining
from hyperscale.cluster.membership.member import Member, MemberState
from hyperscale.cluster.membership.messages import (
    Ack,
    Alive,
    Datagram,
    Difference,
    Gossip,
    Left,
    Nack,
    Ping,
    PingRequest,
    Refused,
    RelayedAck,
    Sender,
    Summary,
    check_speaker,
    decode_datagram,
    decode_exchange,
    encode,
)
from hyperscale.cluster.membership.prober import Prober
from hyperscale.cluster.membership.state import Due, SharedState, Timer
from hyperscale.cluster.membership.updates import Updates

_NAME = attrgetter("node.node_id")


class Membership:
    def __init__(
        self,
        me: Node,
        config: MembershipConfig,
        rng: random.Random,
        durable_incarnation: int = 0,
        updates: type[Updates] = Updates,
        decode: Callable[[bytes, bytes], Datagram] = decode_datagram,
    ) -> None:
        """`durable_incarnation` is the limit last persisted, 0 on a first start: this life begins
        above it, so `me.incarnation` is only a lower bound. `decode` takes our header and a
        datagram."""
        if not all(map(str.isascii, (me.node_id, me.role, me.datacenter))):
            raise ValueError("node id, role and datacenter are ASCII: they travel in datagrams")
        self.config = config
        self._shared = SharedState(me, config, rng, durable_incarnation)
        self._updates = updates(self._shared)
        self._prober = Prober(self._shared, self._updates)
        self._exchanges = Exchanges(self._shared, self._updates)
        self._gossip = GossipRounds(self._shared)
        self._joining = Joining(self._shared, self._updates, self._prober, self._exchanges)
        self._decode = decode
        self._lagging = False
        self._started = False

    # --- reading ------------------------------------------------------------------------------

    @property
    def me(self) -> Node:
        return self._shared.me

    @property
    def deadline(self) -> float:
        """When `tick` is wanted next."""
        return self._shared.deadlines.next

    @property
    def health_score(self) -> int:
        return self._shared.awareness.score

    @property
    def health_factor(self) -> float:
        return self._shared.awareness.factor

    @property
    def coordinate(self) -> Coordinate:
        return self._shared.vivaldi.coordinate

    @property
    def counts(self) -> dict[str, int]:
        return self._shared.counts

    @property
    def queued_news(self) -> int:
        return len(self._shared.news)

    @property
    def news_dropped(self) -> int:
        """What the queue had no room for."""
        return self._shared.news.overflowed

    @property
    def coordinate_updates(self) -> int:
        return self._shared.vivaldi.updates

    @property
    def coordinate_refused(self) -> int:
        """Round trips or coordinates that made no sense."""
        return self._shared.vivaldi.refused

    @property
    def unconfirmed(self) -> int:
        return len(self._shared.confirmation)

    @property
    def population(self) -> int:
        return self._shared.population

    @property
    def rows(self) -> int:
        """Members in the view in any state, not counting ourselves."""
        return len(self._shared.view)

    @property
    def suspects(self) -> int:
        return len(self._shared.view.suspects)

    @property
    def pending_deadlines(self) -> int:
        return len(self._shared.deadlines)

    @property
    def digests(self) -> tuple[int, ...]:
        """Equal on two nodes when they believe in the same live members and incarnations."""
        return self._shared.view.digests

    @property
    def started(self) -> bool:
        return self._started

    def member(self, node_id: NodeId) -> Member | None:
        return self._shared.view.get(node_id)

    def members(self) -> list[Member]:
        """Every row but our own, by name."""
        return sorted(self._shared.view, key=_NAME)

    def active(self) -> list[Node]:
        """Confirmed members that are alive or only suspected, by name."""
        return [m.node for m in self.members() if m.live and m.confirmed]

    def awaited(self, node_id: NodeId) -> tuple[Unconfirmed, float] | None:
        """What we wait for from a member heard of but not from, and when we act next."""
        peer = self._shared.confirmation.get(node_id)
        due = self._shared.deadlines.due((Timer.UNCONFIRMED, node_id))
        return None if peer is None else (peer, due)

    def rtt_estimate_s(self, node_id: NodeId) -> float | None:
        member = self.member(node_id)
        if member is None or member.coordinate is None:
            return None
        return distance_s(self.coordinate, member.coordinate)

    def rtt_samples_s(self, node_id: NodeId) -> tuple[float, ...]:
        return self._shared.vivaldi.samples_s(node_id)

    def rtt_upper_s(self, node_id: NodeId) -> float:
        member = self.member(node_id)
        theirs = None if member is None else member.coordinate
        return rtt_upper_bound_s(self.coordinate, theirs, self.config.coordinates)

    # --- life ---------------------------------------------------------------------------------

    def start(self, now: float) -> list[Effect]:
        """Reserve an incarnation; nothing is said before `persisted` confirms it."""
        shared = self._shared
        shared.now = now
        shared.wanted_incarnation = max(shared.me.incarnation, shared.durable_incarnation + 1)
        shared.reserve()
        return shared.drain()

    def persisted(self, now: float, incarnation: int) -> list[Effect]:
        """Incarnations up to this one are ours to speak."""
        shared = self._shared
        shared.now = now
        shared.durable_incarnation = max(shared.durable_incarnation, incarnation)
        adopted = shared.adopt()
        if not self._started:
            assert adopted or shared.me.incarnation == shared.wanted_incarnation
            self._started = True
            self._arm()
        return shared.drain()

    def join(
        self, now: float, seeds: Iterable[Endpoint], *, configured: bool = True
    ) -> list[Effect]:
        """Ask each seed now, and again until it answers; one that was only found, not for ever."""
        assert self._started
        shared = self._shared
        shared.now = now
        for address in seeds:
            self._joining.seed(address, configured)
        return shared.drain()

    def leave(self, now: float) -> list[Effect]:
        """Tell the cluster that we go; `Departed` follows when it has been told."""
        shared = self._shared
        shared.now = now
        if shared.leaving:
            return []
        shared.leaving = True
        shared.tell(Left(shared.me.node_id, shared.me.incarnation))
        shared.deadlines.set((Timer.LEAVING, ""), now + shared.config.leave_s)
        self._gossip.round()
        return shared.drain()

    def set_heartbeat(self, version: int, payload: bytes) -> None:
        """What our role wants everybody we talk to to know; replaces the one before."""
        shared = self._shared
        if len(payload) > self.config.heartbeat_bytes_max:
            limit = self.config.heartbeat_bytes_max
            raise ValueError(f"heartbeat of {len(payload)} bytes exceeds {limit}")
        assert version > shared.heartbeat_version, "heartbeat versions only grow"
        shared.heartbeat_version = version
        shared.heartbeat = payload

    def confirm(self, now: float, node_id: NodeId) -> list[Effect]:
        """The node proved itself by another channel (a registration, an authenticated stream)."""
        self._shared.now = now
        self._updates.confirm(node_id)
        return self._shared.drain()

    # --- datagrams ----------------------------------------------------------------------------

    def receive(self, now: float, data: bytes, speaker: NodeId | None = None) -> list[Effect]:
        """One datagram. Raises Refused for what is not ours or not well formed, and then nothing
        has changed. `speaker` is who sealed it, when that is known."""
        shared = self._shared
        message = self._decode(shared.header, data)
        sender = message.sender
        check_speaker(sender, speaker)
        shared.now = now
        if not self._started or sender.node.node_id == shared.me.node_id:
            self._doppelganger(sender)
            return shared.drain()
        if message.updates:
            shared.seen.judge(message.updates, self._updates.hear)
        revived = self._updates.greet(sender)
        if not isinstance(message, Gossip):
            self._dispatch(message)
        if revived:
            self._exchanges.begin(sender.node.tcp)
        return shared.drain()

    def _dispatch(self, message: Ping | Ack | PingRequest | RelayedAck | Nack) -> None:
        if isinstance(message, Ping):
            self._pinged(message)
        elif isinstance(message, Ack):
            self._prober.acked(message)
        elif isinstance(message, PingRequest):
            self._prober.requested(message)
        elif isinstance(message, RelayedAck):
            self._prober.relayed(message)
        else:
            self._prober.nacked(message)

    def _pinged(self, message: Ping) -> None:
        shared = self._shared
        if message.target != shared.me.node_id:
            shared.counts["pings_for_others"] += 1
            return
        node = message.sender.node
        updates = shared.buddy(node.node_id, node.incarnation)
        shared.send(node.udp, Ack(shared.sender(), message.sequence, updates))

    def _doppelganger(self, sender: Sender) -> None:
        """Our own name on somebody else's message: an old life of ours, or a second node."""
        node = sender.node
        if self._started and (node.udp, node.tcp) != (self.me.udp, self.me.tcp):
            self._updates.about_me(MemberState.ALIVE, node.incarnation, node)

    # --- exchanges ----------------------------------------------------------------------------

    def summary(self, now: float) -> bytes:
        """First message of an exchange that an `Exchange` effect asked for."""
        self._shared.now = now
        return encode(self._shared.header, self._exchanges.summary())

    def exchanged(
        self, now: float, data: bytes, speaker: NodeId | None = None
    ) -> tuple[bytes | None, list[Effect]]:
        """One message of an exchange; returns what to answer on the same stream, if anything.
        The callee passes the summary, and later the caller's rows; the caller the callee's."""
        message = decode_exchange(self._shared.header, data)
        check_speaker(message.sender, speaker)
        self._shared.now = now
        if not self._started:
            raise Refused("not started")
        if isinstance(message, Summary):
            answer = self._exchanges.answer(message)
            return encode(self._shared.header, answer), self._shared.drain()
        self._exchanges.merge(message)
        return None, self._shared.drain()

    def reply(
        self, now: float, to: Endpoint, data: bytes, speaker: NodeId | None = None
    ) -> tuple[bytes, list[Effect]]:
        """The caller has the callee's rows: merge them and give ours."""
        message = decode_exchange(self._shared.header, data)
        check_speaker(message.sender, speaker)
        if not isinstance(message, Difference):
            raise Refused("malformed")
        self._shared.now = now
        mine = self._exchanges.reply(message)
        self._joining.answered(to, message.sender.node.node_id)
        return encode(self._shared.header, mine), self._shared.drain()

    def exchange_failed(self, now: float, to: Endpoint) -> list[Effect]:
        shared = self._shared
        shared.now = now
        shared.counts["exchanges_failed"] += 1
        self._joining.asked_in_vain(to)
        return shared.drain()

    # --- time ---------------------------------------------------------------------------------

    def tick(self, now: float) -> list[Effect]:
        """Do everything that is due."""
        shared = self._shared
        shared.now = now
        self._notice_lag(now - shared.deadlines.next)
        while (due := shared.deadlines.pop(now)) is not None:
            self._fire(due)
        return shared.drain()

    def _notice_lag(self, late_s: float) -> None:
        shared, config = self._shared, self.config
        if late_s < config.lag_s:
            if self._lagging and late_s >= 0.0:
                self._lagging = False
                shared.awareness.note(shared.now, HealthEvent.LAG_OVER)
            return
        self._lagging = True
        shared.counts["lags"] += 1
        event = HealthEvent.LONG_LAG if late_s >= config.long_lag_s else HealthEvent.LAG
        shared.awareness.note(shared.now, event)
        self._prober.abandon()
        self._updates.postpone_suspicions(late_s)

    def _fire(self, due: Due) -> None:
        timer, subject = due
        if timer is Timer.PROBE_ROUND:
            self._joining.new_round()
            self._prober.round()
        elif timer is Timer.PROBE_TIMEOUT:
            self._prober.timed_out()
        elif timer is Timer.RELAY:
            self._prober.relay_timed_out(int(subject))
        elif timer is Timer.GOSSIP:
            self._gossip.round()
        elif timer is Timer.EXCHANGE:
            self._exchanges.periodic()
        elif timer is Timer.RECONNECT:
            self._prober.reconnect()
        elif timer is Timer.SUSPICION:
            self._updates.suspicion_ran_out(subject)
        elif timer is Timer.REAP:
            self._updates.reap(subject)
        elif timer is Timer.UNCONFIRMED:
            self._joining.step(subject)
        elif timer is Timer.SEED:
            self._joining.seed_due(subject)
        else:
            self._shared.out.append(Departed())

    def _arm(self) -> None:
        """First deadlines, at random phases so that nodes started together do not march in step."""
        shared, config = self._shared, self.config
        spread = shared.rng.random
        shared.deadlines.set(
            (Timer.PROBE_ROUND, ""), shared.now + spread() * config.probe_interval_s
        )
        shared.deadlines.set(
            (Timer.RECONNECT, ""), shared.now + spread() * config.reconnect_interval_s
        )
        self._exchanges.schedule()
        shared.tell(Alive(shared.me), join=True)
