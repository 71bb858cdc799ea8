"""The datacenters of a gate: their managers probed, their state told, their circuits kept.

Probes go over TCP connections of their own, so that a large submission is no silence. Circuits
count what became of jobs' own requests: a datacenter that answers probes and fails commands is
chosen for nothing new, and what it holds already goes on being told and followed.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from hyperscale.cluster.datacenters import Change, Datacenter, Probe, Reach, Verdict, Watch
from hyperscale.cluster.membership import MemberState
from hyperscale.cluster.overload import Circuits
from hyperscale.cluster.placement.hashing import stable_hash
from hyperscale.nodes.client.managers import LIMITS
from hyperscale.nodes.gate.settings import GateSettings
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.protocol.datacenters import (
    DatacenterReport,
    DatacenterState,
    DatacenterStates,
    GatePulse,
    ProbeDatacenter,
)
from hyperscale.runtime.host import Address, Host
from hyperscale.wire.errors import NobodyListens, Reason, Refused, WireError
from hyperscale.wire.peer import Peer

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

UNKNOWN = (Reason.UNKNOWN_KIND, Reason.NOT_ANSWERED)
TICK_S = 0.25
LOOK_S = 0.02
REFRESH_S = 1.0  # round trips between continents are a third of it

_pulses = msgspec.msgpack.Decoder(GatePulse)


class Datacenters:
    watch_class = Watch

    def __init__(
        self, host: Host, node: Node, settings: GateSettings, log: FilteringBoundLogger
    ) -> None:
        self._host = host
        self._node = node
        self._log = log
        places = {
            name: [(one.host, one.port) for one in addresses]
            for name, addresses in settings.datacenters.items()
        }
        self.watch = self.watch_class(settings.probes, places, host.clock.now())
        self.circuits = Circuits()
        self._sorted = sorted(places)
        self._names_hash = stable_hash(*self._sorted) >> 32
        self._peers: dict[tuple[str, tuple[str, int]], Peer] = {}
        self._failed_at: dict[str, float] = {}
        self._was_in_doubt = False

    @property
    def names(self) -> list[str]:
        return list(self.watch.datacenters)

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()

    # -- probes --------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            now = self._host.clock.now()
            for probe in self.watch.due(now):
                self._send(probe)
            self._changed(self.watch.tick(now))
            self._exchange_reach(now)
            await self._host.clock.sleep(TICK_S)

    async def refresh(self, names: Collection[str], within_s: float = REFRESH_S) -> None:
        """Ask them now, before something is decided on what they told a moment ago."""
        clock = self._host.clock
        probes = [self.watch.probe_now(clock.now(), name) for name in names]
        for probe in probes:
            self._send(probe)
        deadline = clock.now() + within_s
        waiting = list(probes)
        while waiting and clock.now() < deadline:
            await clock.sleep(LOOK_S)
            of = self.watch.datacenters
            waiting = [one for one in waiting if one.number in of[one.datacenter].outstanding]

    def _send(self, probe: Probe) -> None:
        self._host.tasks.spawn(f"probe {probe.datacenter}", self._probe(probe))

    async def _probe(self, probe: Probe) -> None:
        clock, timeout_s = self._host.clock, self.watch.settings.timeout_s
        peer = self._peer(probe.datacenter, probe.to)
        refused, tells = False, True
        try:
            async with asyncio.timeout(timeout_s):
                connection = await peer.connection()
                asked_at = clock.now()
                try:
                    report = await connection.request(
                        ProbeDatacenter(), DatacenterReport, timeout_s
                    )
                except Refused as refusal:  # of an older version, or one that just starts
                    report, tells = DatacenterReport(), refusal.code not in UNKNOWN
        except TimeoutError:
            why = f"no answer within {timeout_s:g} s"
        except (WireError, OSError) as error:
            why, refused = str(error), isinstance(error, NobodyListens | Refused)
        else:
            now = clock.now()
            changes = self.watch.answered(
                now,
                probe,
                now - asked_at,
                leader=report.leader,
                leader_at=report.leader_at,
                others=report.managers,
                facts=report.facts,
                version=connection.session.node_version,
                tells=tells,
            )
            self._changed(changes)
            return
        self._changed(self.watch.missed(clock.now(), probe, why, refused=refused))

    def _peer(self, datacenter: str, place: tuple[str, int]) -> Peer:
        known = self._peers.get((datacenter, place))
        if known is None:
            self._drop_unused()
            endpoint = copy.copy(self._node.endpoint)
            endpoint.limits = LIMITS
            known = Peer(
                endpoint, Address(*place), expect_role="manager", expect_datacenter=datacenter
            )
            self._peers[datacenter, place] = known
        return known

    def _drop_unused(self) -> None:
        known = self.watch.datacenters.items()
        used = {(name, place) for name, one in known for place in one.managers}
        for key in [key for key in self._peers if key not in used]:
            self._peers.pop(key).close()

    def _changed(self, changes: Collection[Change]) -> None:
        for change in changes:
            say = self._log.info if change.after is Reach.REACHABLE else self._log.warning
            say(
                f"datacenter {change.after.value}",
                datacenter=change.datacenter,
                before=change.before.value,
                why=change.why,
            )

    # -- what gates tell each other ------------------------------------------------------------

    def _exchange_reach(self, now: float) -> None:
        """Who is reached travels with the probes that gates exchange anyway."""
        self._node.pulse = msgspec.msgpack.encode(self._pulse(self.watch.reached()))
        for gate, vitals in self._node.vitals.items():
            member = self._node.membership.core.member(gate)
            if member is not None and member.state is MemberState.ALIVE:
                self._heard(now, gate, vitals.pulse)
        in_doubt = self.watch.line_in_doubt(now)
        if in_doubt != self._was_in_doubt:
            self._was_in_doubt = in_doubt
            silent = self.watch.silent()
            if in_doubt:
                self._log.warning("own line in doubt", silent=silent)
            else:
                self._log.info("own line in doubt no more", silent=silent)

    def _pulse(self, reached: Collection[str]) -> GatePulse:
        bits = sum(1 << number for number, name in enumerate(self._sorted) if name in reached)
        return GatePulse(self._names_hash, bits.to_bytes(len(self._sorted) // 8 + 1, "big"))

    def _heard(self, now: float, gate: str, pulse: bytes) -> None:
        try:
            told = _pulses.decode(pulse)
        except msgspec.MsgspecError:  # of a gate that has just started, or of another version
            return
        if told.names == self._names_hash:
            bits = int.from_bytes(told.reached, "big")
            names = [name for number, name in enumerate(self._sorted) if bits >> number & 1]
            self.watch.told_by(now, gate, names)

    # -- circuits ------------------------------------------------------------------------------

    def outcome(self, name: str, address: Address, answered: bool) -> None:
        """Of a request of a job. Nothing is kept back because of it: see the head of this file."""
        now = self._host.clock.now()
        circuit = self.circuits.of(now, _line(name, address.host, address.port))
        ticket = circuit.allow(now)
        if ticket is None:
            return
        if answered:
            circuit.succeeded(now, ticket)
        else:
            circuit.failed(now, ticket)

    def circuits_open(self, one: Datacenter) -> int:
        now = self._host.clock.now()
        return sum(self.circuits.is_open(now, _line(one.name, *place)) for place in one.managers)

    def failed(self, name: str) -> None:
        """A job that was sent there is lost, or was not taken."""
        self._failed_at[name] = self._host.clock.now()

    def failed_s(self, name: str) -> float | None:
        """Since then; None: never."""
        at = self._failed_at.get(name)
        return None if at is None else self._host.clock.now() - at

    # -- what it is all for --------------------------------------------------------------------

    def is_cut_off(self) -> bool:
        """It is more likely our own line than all of theirs, or we stood still."""
        now = self._host.clock.now()
        return self.watch.line_in_doubt(now) or self.watch.was_away(now)

    def is_led(self, name: str) -> bool:
        """Its leader answers our probes."""
        one = self.watch.datacenters[name]
        fresh = self.watch.fresh_facts(self._host.clock.now(), one)
        return one.reach is Reach.REACHABLE and not one.failures and fresh is not None

    def verdict(self, name: str, others: Collection[str], gates: Collection[str]) -> Verdict:
        return self.watch.verdict(self._host.clock.now(), name, others, gates)

    def states(self) -> DatacenterStates:
        return DatacenterStates(
            gate=self._node.settings.id,
            datacenters=tuple(self._state(one) for one in self.watch.datacenters.values()),
            line_in_doubt=self.watch.line_in_doubt(self._host.clock.now()),
        )

    def _state(self, one: Datacenter) -> DatacenterState:
        now = self._host.clock.now()
        health, why = self.watch.health(now, one.name)
        return DatacenterState(
            name=one.name,
            state=health.word,
            reach=one.reach.value,
            since_s=now - one.since,
            why=why,
            rtt_s=one.rtt_s,
            rtt_error_s=one.rtt_error_s,
            samples=one.samples,
            leader=one.leader,
            version=one.version,
            facts=one.facts,
            facts_age_s=None if one.facts is None else now - one.facts_at,
            heard_s=None if one.heard_at is None else now - one.heard_at,
            missed=one.failures,
            circuits_open=self.circuits_open(one),
            managers_known=len(one.managers),
            other_gates=tuple(self.watch.reached_by(now, one.name)),
        )


def _line(name: str, host: str, port: int) -> str:
    return f"{name} {host}:{port}"
