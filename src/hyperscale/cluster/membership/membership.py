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
from hyperscale.cluster.membership.introductions import Introductions
from hyperscale.cluster.membership.member import Member, State
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
from hyperscale.cluster.membership.rumors import Rumors
from hyperscale.cluster.membership.station import Due, Station, Timer

_NAME = attrgetter("node.node_id")


class Membership:
    def __init__(
        self,
        me: Node,
        config: MembershipConfig,
        rng: random.Random,
        durable_incarnation: int = 0,
        rumors: type[Rumors] = Rumors,
        decode: Callable[[bytes, bytes], Datagram] = decode_datagram,
    ) -> None:
        """`durable_incarnation` is the limit last persisted, 0 on a first start: this life begins
        above it, so `me.incarnation` is only a lower bound. `decode` takes our header and a
        datagram."""
        if not all(map(str.isascii, (me.node_id, me.role, me.datacenter))):
            raise ValueError("node id, role and datacenter are ASCII: they travel in datagrams")
        self.config = config
        self._station = Station(me, config, rng, durable_incarnation)
        self._rumors = rumors(self._station)
        self._prober = Prober(self._station, self._rumors)
        self._exchanges = Exchanges(self._station, self._rumors)
        self._gossip = GossipRounds(self._station)
        self._introductions = Introductions(
            self._station, self._rumors, self._prober, self._exchanges
        )
        self._decode = decode
        self._lagging = False
        self._started = False

    # --- reading ------------------------------------------------------------------------------

    @property
    def me(self) -> Node:
        return self._station.me

    @property
    def deadline(self) -> float:
        """When `tick` is wanted next."""
        return self._station.deadlines.next

    @property
    def health_score(self) -> int:
        return self._station.awareness.score

    @property
    def health_factor(self) -> float:
        return self._station.awareness.factor

    @property
    def coordinate(self) -> Coordinate:
        return self._station.vivaldi.coordinate

    @property
    def counts(self) -> dict[str, int]:
        return self._station.counts

    @property
    def queued_news(self) -> int:
        return len(self._station.news)

    @property
    def news_dropped(self) -> int:
        """What the queue had no room for."""
        return self._station.news.overflowed

    @property
    def coordinate_updates(self) -> int:
        return self._station.vivaldi.updates

    @property
    def coordinate_refused(self) -> int:
        """Round trips or coordinates that made no sense."""
        return self._station.vivaldi.refused

    @property
    def unconfirmed(self) -> int:
        return len(self._station.confirmation)

    @property
    def population(self) -> int:
        return self._station.population

    @property
    def rows(self) -> int:
        """Members in the view in any state, not counting ourselves."""
        return len(self._station.view)

    @property
    def suspects(self) -> int:
        return len(self._station.view.suspects)

    @property
    def pending_deadlines(self) -> int:
        return len(self._station.deadlines)

    @property
    def digests(self) -> tuple[int, ...]:
        """Equal on two nodes when they believe in the same live members and incarnations."""
        return self._station.view.digests

    @property
    def started(self) -> bool:
        return self._started

    def member(self, node_id: NodeId) -> Member | None:
        return self._station.view.get(node_id)

    def members(self) -> list[Member]:
        """Every row but our own, by name."""
        return sorted(self._station.view, key=_NAME)

    def active(self) -> list[Node]:
        """Confirmed members that are alive or only suspected, by name."""
        return [m.node for m in self.members() if m.live and m.confirmed]

    def awaited(self, node_id: NodeId) -> tuple[Unconfirmed, float] | None:
        """What we wait for from a member heard of but not from, and when we act next."""
        peer = self._station.confirmation.get(node_id)
        due = self._station.deadlines.due((Timer.UNCONFIRMED, node_id))
        return None if peer is None else (peer, due)

    def rtt_estimate_s(self, node_id: NodeId) -> float | None:
        member = self.member(node_id)
        if member is None or member.coordinate is None:
            return None
        return distance_s(self.coordinate, member.coordinate)

    def rtt_samples_s(self, node_id: NodeId) -> tuple[float, ...]:
        return self._station.vivaldi.samples_s(node_id)

    def rtt_upper_s(self, node_id: NodeId) -> float:
        member = self.member(node_id)
        theirs = None if member is None else member.coordinate
        return rtt_upper_bound_s(self.coordinate, theirs, self.config.coordinates)

    # --- life ---------------------------------------------------------------------------------

    def start(self, now: float) -> list[Effect]:
        """Reserve an incarnation; nothing is said before `persisted` confirms it."""
        station = self._station
        station.now = now
        station.wanted_incarnation = max(station.me.incarnation, station.durable_incarnation + 1)
        station.reserve()
        return station.drain()

    def persisted(self, now: float, incarnation: int) -> list[Effect]:
        """Incarnations up to this one are ours to speak."""
        station = self._station
        station.now = now
        station.durable_incarnation = max(station.durable_incarnation, incarnation)
        adopted = station.adopt()
        if not self._started:
            assert adopted or station.me.incarnation == station.wanted_incarnation
            self._started = True
            self._arm()
        return station.drain()

    def join(
        self, now: float, seeds: Iterable[Endpoint], *, configured: bool = True
    ) -> list[Effect]:
        """Ask each seed now, and again until it answers; one that was only found, not for ever."""
        assert self._started
        station = self._station
        station.now = now
        for address in seeds:
            self._introductions.seed(address, configured)
        return station.drain()

    def leave(self, now: float) -> list[Effect]:
        """Tell the cluster that we go; `Departed` follows when it has been told."""
        station = self._station
        station.now = now
        if station.leaving:
            return []
        station.leaving = True
        station.tell(Left(station.me.node_id, station.me.incarnation))
        station.deadlines.set((Timer.LEAVING, ""), now + station.config.leave_s)
        self._gossip.round()
        return station.drain()

    def set_heartbeat(self, version: int, payload: bytes) -> None:
        """What our role wants everybody we talk to to know; replaces the one before."""
        station = self._station
        if len(payload) > self.config.heartbeat_bytes_max:
            limit = self.config.heartbeat_bytes_max
            raise ValueError(f"heartbeat of {len(payload)} bytes exceeds {limit}")
        assert version > station.heartbeat_version, "heartbeat versions only grow"
        station.heartbeat_version = version
        station.heartbeat = payload

    def confirm(self, now: float, node_id: NodeId) -> list[Effect]:
        """The node proved itself by another channel (a registration, an authenticated stream)."""
        self._station.now = now
        self._rumors.confirm(node_id)
        return self._station.drain()

    # --- datagrams ----------------------------------------------------------------------------

    def receive(self, now: float, data: bytes, speaker: NodeId | None = None) -> list[Effect]:
        """One datagram. Raises Refused for what is not ours or not well formed, and then nothing
        has changed. `speaker` is who sealed it, when that is known."""
        station = self._station
        message = self._decode(station.header, data)
        sender = message.sender
        check_speaker(sender, speaker)
        station.now = now
        if not self._started or sender.node.node_id == station.me.node_id:
            self._doppelganger(sender)
            return station.drain()
        if message.updates:
            station.seen.judge(message.updates, self._rumors.hear)
        revived = self._rumors.greet(sender)
        if not isinstance(message, Gossip):
            self._dispatch(message)
        if revived:
            self._exchanges.begin(sender.node.tcp)
        return station.drain()

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
        station = self._station
        if message.target != station.me.node_id:
            station.counts["pings_for_others"] += 1
            return
        node = message.sender.node
        updates = station.buddy(node.node_id, node.incarnation)
        station.send(node.udp, Ack(station.sender(), message.sequence, updates))

    def _doppelganger(self, sender: Sender) -> None:
        """Our own name on somebody else's message: an old life of ours, or a second node."""
        node = sender.node
        if self._started and (node.udp, node.tcp) != (self.me.udp, self.me.tcp):
            self._rumors.about_me(State.ALIVE, node.incarnation, node)

    # --- exchanges ----------------------------------------------------------------------------

    def summary(self, now: float) -> bytes:
        """First message of an exchange that an `Exchange` effect asked for."""
        self._station.now = now
        return encode(self._station.header, self._exchanges.summary())

    def exchanged(
        self, now: float, data: bytes, speaker: NodeId | None = None
    ) -> tuple[bytes | None, list[Effect]]:
        """One message of an exchange; returns what to answer on the same stream, if anything.
        The callee passes the summary, and later the caller's rows; the caller the callee's."""
        message = decode_exchange(self._station.header, data)
        check_speaker(message.sender, speaker)
        self._station.now = now
        if not self._started:
            raise Refused("not started")
        if isinstance(message, Summary):
            answer = self._exchanges.answer(message)
            return encode(self._station.header, answer), self._station.drain()
        self._exchanges.merge(message)
        return None, self._station.drain()

    def reply(
        self, now: float, to: Endpoint, data: bytes, speaker: NodeId | None = None
    ) -> tuple[bytes, list[Effect]]:
        """The caller has the callee's rows: merge them and give ours."""
        message = decode_exchange(self._station.header, data)
        check_speaker(message.sender, speaker)
        if not isinstance(message, Difference):
            raise Refused("malformed")
        self._station.now = now
        mine = self._exchanges.reply(message)
        self._introductions.answered(to, message.sender.node.node_id)
        return encode(self._station.header, mine), self._station.drain()

    def exchange_failed(self, now: float, to: Endpoint) -> list[Effect]:
        station = self._station
        station.now = now
        station.counts["exchanges_failed"] += 1
        self._introductions.asked_in_vain(to)
        return station.drain()

    # --- time ---------------------------------------------------------------------------------

    def tick(self, now: float) -> list[Effect]:
        """Do everything that is due."""
        station = self._station
        station.now = now
        self._notice_lag(now - station.deadlines.next)
        while (due := station.deadlines.pop(now)) is not None:
            self._fire(due)
        return station.drain()

    def _notice_lag(self, late_s: float) -> None:
        station, config = self._station, self.config
        if late_s < config.lag_s:
            if self._lagging and late_s >= 0.0:
                self._lagging = False
                station.awareness.note(station.now, HealthEvent.LAG_OVER)
            return
        self._lagging = True
        station.counts["lags"] += 1
        event = HealthEvent.LONG_LAG if late_s >= config.long_lag_s else HealthEvent.LAG
        station.awareness.note(station.now, event)
        self._prober.abandon()
        self._rumors.postpone_suspicions(late_s)

    def _fire(self, due: Due) -> None:
        timer, subject = due
        if timer is Timer.PROBE_ROUND:
            self._introductions.new_round()
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
            self._rumors.suspicion_ran_out(subject)
        elif timer is Timer.REAP:
            self._rumors.reap(subject)
        elif timer is Timer.UNCONFIRMED:
            self._introductions.step(subject)
        elif timer is Timer.SEED:
            self._introductions.seed_due(subject)
        else:
            self._station.out.append(Departed())

    def _arm(self) -> None:
        """First deadlines, at random phases so that nodes started together do not march in step."""
        station, config = self._station, self.config
        spread = station.rng.random
        station.deadlines.set(
            (Timer.PROBE_ROUND, ""), station.now + spread() * config.probe_interval_s
        )
        station.deadlines.set(
            (Timer.RECONNECT, ""), station.now + spread() * config.reconnect_interval_s
        )
        self._exchanges.schedule()
        station.tell(Alive(station.me), join=True)
