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
from hyperscale.cluster.membership.state import SharedState, Timer
from hyperscale.cluster.membership.updates import Updates


@dataclass(frozen=True, slots=True)
class Relay:
    requester: Endpoint
    sequence: int
    target: NodeId


class Prober:
    __slots__ = ("_relays", "_sequence", "_shared", "_updates", "probe")

    def __init__(self, shared: SharedState, updates: Updates) -> None:
        self._shared = shared
        self._updates = updates
        self._sequence = 0
        self._relays: dict[int, Relay] = {}
        self.probe: Probe | None = None

    # --- our rounds ---------------------------------------------------------------------------

    def round(self) -> None:
        shared = self._shared
        self._timed_out()
        shared.awareness.decay(shared.now)
        factor = shared.awareness.factor
        interval_s = shared.config.probe_interval_s * factor
        shared.deadlines.set((Timer.PROBE_ROUND, ""), shared.now + interval_s)
        target = shared.ring.next(self._ready)
        member = None if target is None else shared.view.get(target)
        if member is None:
            return
        sequence = self.ping(member.node_id, member.node.udp)
        self.probe = Probe(shared.now, sequence, member.node_id, member.incarnation)
        timeout_s = shared.config.probe_timeout_s * factor
        shared.deadlines.set((Timer.PROBE_TIMEOUT, ""), shared.now + timeout_s)

    def ping(self, node_id: NodeId, address: Endpoint) -> int:
        shared = self._shared
        self._sequence += 1
        shared.send(address, Ping(shared.sender(), self._sequence, node_id, shared.buddy(node_id)))
        shared.counts["pings"] += 1
        return self._sequence

    def timed_out(self) -> None:
        shared, probe = self._shared, self.probe
        if probe is None:
            return
        member = shared.view.get(probe.target)
        exclude = (probe.target,)
        proxies = shared.view.sample(shared.rng, shared.config.indirect_probes, exclude)
        asked = frozenset(proxy.node_id for proxy in proxies)
        if member is None or not probe.timeout(asked):
            return
        wait_s = max(0.001, shared.deadlines.due((Timer.PROBE_ROUND, "")) - shared.now)
        for proxy in proxies:
            shared.send(
                proxy.node.udp,
                PingRequest(
                    shared.sender(), probe.sequence, probe.target, member.node.udp, wait_s, []
                ),
            )
        shared.counts["indirect_probes"] += len(proxies)

    def acked(self, message: Ack) -> None:
        """The target's own answer: also a measurement of distance."""
        shared, probe = self._shared, self.probe
        node_id = message.sender.node.node_id
        if probe is not None and probe.ack(message.sequence, node_id):
            rtt_s = shared.now - probe.sent_at
            member = shared.view.get(node_id)
            if member is not None:
                member.rtt_s = rtt_s
            if message.sender.coordinate is not None:
                shared.vivaldi.observe(node_id, message.sender.coordinate, rtt_s)
            self._answered(probe)
        elif message.sequence in self._relays:
            self._relay_answered(message)

    def relayed(self, message: RelayedAck) -> None:
        probe = self.probe
        if probe is not None and probe.ack(message.sequence, message.target.node_id):
            self._updates.alive(message.target, Via.GOSSIP)
            self._updates.confirm(message.target.node_id)
            self._answered(probe)

    def nacked(self, message: Nack) -> None:
        if self.probe is not None:
            self.probe.nack(message.sequence, message.sender.node.node_id)

    def reconnect(self) -> None:
        """Ping one dead member: a partition may have healed, or we were wrong."""
        shared = self._shared
        pause_s = shared.config.reconnect_interval_s * (0.75 + 0.5 * shared.rng.random())
        shared.deadlines.set((Timer.RECONNECT, ""), shared.now + pause_s)
        member = shared.view.sample_dead(shared.rng)
        if member is not None:
            self.ping(member.node_id, member.node.udp)

    def abandon(self) -> None:
        """We slept through this round: it proves nothing about anybody."""
        self.probe = None
        self._shared.deadlines.cancel((Timer.PROBE_TIMEOUT, ""))

    def _ready(self, node_id: NodeId) -> bool:
        return self._shared.confirmation.may_probe(self._shared.now, node_id)

    def _answered(self, probe: Probe) -> None:
        shared = self._shared
        shared.awareness.note(shared.now, probe.verdict)
        shared.deadlines.cancel((Timer.PROBE_TIMEOUT, ""))
        self.probe = None

    def _timed_out(self) -> None:
        shared, probe = self._shared, self.probe
        self.probe = None
        shared.deadlines.cancel((Timer.PROBE_TIMEOUT, ""))
        if probe is None or not probe.end():
            return
        member = shared.view.get(probe.target)
        if member is None or not member.live:
            return
        shared.counts["probes_failed"] += 1
        if not member.confirmed:
            shared.confirmation.probe_failed(shared.now, probe.target)
            return
        verdict = probe.verdict
        shared.awareness.note(shared.now, verdict)
        self._updates.suspect(probe.target, probe.incarnation, (shared.me.node_id,), Via.PROBE)
        if member.suspicion is not None and verdict is HealthEvent.PROBE_FAILED_ALONE:
            member.suspicion.charged = True

    # --- rounds of others ---------------------------------------------------------------------

    def requested(self, message: PingRequest) -> None:
        shared = self._shared
        if len(self._relays) >= shared.config.relays_max:
            shared.counts["relays_refused"] += 1
            return
        sequence = self.ping(message.target, message.address)
        self._relays[sequence] = Relay(message.sender.node.udp, message.sequence, message.target)
        due = shared.now + message.wait_s * shared.config.nack_share
        shared.deadlines.set((Timer.RELAY, str(sequence)), due)

    def relay_timed_out(self, sequence: int) -> None:
        relay = self._relays.pop(sequence, None)
        if relay is not None:
            shared = self._shared
            shared.send(relay.requester, Nack(shared.sender(), relay.sequence, relay.target, []))
            shared.counts["nacks"] += 1

    def _relay_answered(self, message: Ack) -> None:
        relay = self._relays[message.sequence]
        if relay.target != message.sender.node.node_id:
            return
        del self._relays[message.sequence]
        shared = self._shared
        shared.deadlines.cancel((Timer.RELAY, str(message.sequence)))
        shared.send(
            relay.requester,
            RelayedAck(shared.sender(), relay.sequence, message.sender.node, []),
        )
