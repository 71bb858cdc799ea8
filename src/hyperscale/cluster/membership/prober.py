"""Probe rounds, and probes run on behalf of others.

Round: ping one member; if it is silent after the timeout ask proxies; if it is silent at the end
of the round, accuse it. A proxy answers either way, so that the requester can tell a silent
target from its own deafness.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.cluster.identity import Endpoint, NodeId
from hyperscale.cluster.membership.awareness import HealthEvent
from hyperscale.cluster.membership.effects import Via
from hyperscale.cluster.membership.messages import Ack, Nack, Ping, PingRequest, RelayedAck
from hyperscale.cluster.membership.probe import Probe
from hyperscale.cluster.membership.rumors import Rumors
from hyperscale.cluster.membership.station import Station, Timer


@dataclass(frozen=True, slots=True)
class Relay:
    requester: Endpoint
    sequence: int
    target: NodeId


class Prober:
    __slots__ = ("_relays", "_rumors", "_sequence", "_station", "probe")

    def __init__(self, station: Station, rumors: Rumors) -> None:
        self._station = station
        self._rumors = rumors
        self._sequence = 0
        self._relays: dict[int, Relay] = {}
        self.probe: Probe | None = None

    # --- our rounds ---------------------------------------------------------------------------

    def round(self) -> None:
        station = self._station
        self._conclude()
        station.awareness.decay(station.now)
        factor = station.awareness.factor
        interval_s = station.config.probe_interval_s * factor
        station.deadlines.set((Timer.PROBE_ROUND, ""), station.now + interval_s)
        target = station.ring.next(self._ready)
        member = None if target is None else station.view.get(target)
        if member is None:
            return
        sequence = self.ping(member.node_id, member.node.udp)
        self.probe = Probe(station.now, sequence, member.node_id, member.incarnation)
        timeout_s = station.config.probe_timeout_s * factor
        station.deadlines.set((Timer.PROBE_TIMEOUT, ""), station.now + timeout_s)

    def ping(self, node_id: NodeId, address: Endpoint) -> int:
        station = self._station
        self._sequence += 1
        station.send(
            address, Ping(station.sender(), self._sequence, node_id, station.buddy(node_id))
        )
        station.counts["pings"] += 1
        return self._sequence

    def timed_out(self) -> None:
        station, probe = self._station, self.probe
        if probe is None:
            return
        member = station.view.get(probe.target)
        exclude = (probe.target,)
        proxies = station.view.sample(station.rng, station.config.indirect_probes, exclude)
        asked = frozenset(proxy.node_id for proxy in proxies)
        if member is None or not probe.timeout(asked):
            return
        wait_s = max(0.001, station.deadlines.due((Timer.PROBE_ROUND, "")) - station.now)
        for proxy in proxies:
            station.send(
                proxy.node.udp,
                PingRequest(
                    station.sender(), probe.sequence, probe.target, member.node.udp, wait_s, []
                ),
            )
        station.counts["indirect_probes"] += len(proxies)

    def acked(self, message: Ack) -> None:
        """The target's own answer: also a measurement of distance."""
        station, probe = self._station, self.probe
        node_id = message.sender.node.node_id
        if probe is not None and probe.ack(message.sequence, node_id):
            rtt_s = station.now - probe.sent_at
            member = station.view.get(node_id)
            if member is not None:
                member.rtt_s = rtt_s
            if message.sender.coordinate is not None:
                station.vivaldi.observe(node_id, message.sender.coordinate, rtt_s)
            self._answered(probe)
        elif message.sequence in self._relays:
            self._relay_answered(message)

    def relayed(self, message: RelayedAck) -> None:
        probe = self.probe
        if probe is not None and probe.ack(message.sequence, message.target.node_id):
            self._rumors.alive(message.target, Via.GOSSIP)
            self._rumors.confirm(message.target.node_id)
            self._answered(probe)

    def nacked(self, message: Nack) -> None:
        if self.probe is not None:
            self.probe.nack(message.sequence, message.sender.node.node_id)

    def reconnect(self) -> None:
        """Ping one dead member: a partition may have healed, or we were wrong."""
        station = self._station
        pause_s = station.config.reconnect_interval_s * (0.75 + 0.5 * station.rng.random())
        station.deadlines.set((Timer.RECONNECT, ""), station.now + pause_s)
        member = station.view.sample_dead(station.rng)
        if member is not None:
            self.ping(member.node_id, member.node.udp)

    def abandon(self) -> None:
        """We slept through this round: it proves nothing about anybody."""
        self.probe = None
        self._station.deadlines.cancel((Timer.PROBE_TIMEOUT, ""))

    def _ready(self, node_id: NodeId) -> bool:
        return self._station.confirmation.may_probe(self._station.now, node_id)

    def _answered(self, probe: Probe) -> None:
        station = self._station
        station.awareness.note(station.now, probe.verdict)
        station.deadlines.cancel((Timer.PROBE_TIMEOUT, ""))
        self.probe = None

    def _conclude(self) -> None:
        station, probe = self._station, self.probe
        self.probe = None
        station.deadlines.cancel((Timer.PROBE_TIMEOUT, ""))
        if probe is None or not probe.end():
            return
        member = station.view.get(probe.target)
        if member is None or not member.live:
            return
        station.counts["probes_failed"] += 1
        if not member.confirmed:
            station.confirmation.probe_failed(station.now, probe.target)
            return
        verdict = probe.verdict
        station.awareness.note(station.now, verdict)
        self._rumors.suspect(probe.target, probe.incarnation, (station.me.node_id,), Via.PROBE)
        if member.suspicion is not None and verdict is HealthEvent.PROBE_FAILED_ALONE:
            member.suspicion.charged = True

    # --- rounds of others ---------------------------------------------------------------------

    def requested(self, message: PingRequest) -> None:
        station = self._station
        if len(self._relays) >= station.config.relays_max:
            station.counts["relays_refused"] += 1
            return
        sequence = self.ping(message.target, message.address)
        self._relays[sequence] = Relay(message.sender.node.udp, message.sequence, message.target)
        due = station.now + message.wait_s * station.config.nack_share
        station.deadlines.set((Timer.RELAY, str(sequence)), due)

    def relay_timed_out(self, sequence: int) -> None:
        relay = self._relays.pop(sequence, None)
        if relay is not None:
            station = self._station
            station.send(relay.requester, Nack(station.sender(), relay.sequence, relay.target, []))
            station.counts["nacks"] += 1

    def _relay_answered(self, message: Ack) -> None:
        relay = self._relays[message.sequence]
        if relay.target != message.sender.node.node_id:
            return
        del self._relays[message.sequence]
        station = self._station
        station.deadlines.cancel((Timer.RELAY, str(message.sequence)))
        station.send(
            relay.requester,
            RelayedAck(station.sender(), relay.sequence, message.sender.node, []),
        )
