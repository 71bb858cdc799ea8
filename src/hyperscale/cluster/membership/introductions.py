"""Getting to know peers: seeds to ask, and members heard of but not from."""

from __future__ import annotations

from hyperscale.cluster.identity import Endpoint, NodeId
from hyperscale.cluster.membership.confirmation import Step
from hyperscale.cluster.membership.effects import Change, SeedSilent, Via
from hyperscale.cluster.membership.exchange import Exchanges
from hyperscale.cluster.membership.prober import Prober
from hyperscale.cluster.membership.rumors import Rumors
from hyperscale.cluster.membership.seeds import Seeds
from hyperscale.cluster.membership.station import Station, Timer


class Introductions:
    __slots__ = ("_exchanges", "_pings", "_prober", "_rumors", "_seeds", "_station")

    def __init__(
        self, station: Station, rumors: Rumors, prober: Prober, exchanges: Exchanges
    ) -> None:
        config = station.config
        self._station = station
        self._rumors = rumors
        self._prober = prober
        self._exchanges = exchanges
        self._seeds = Seeds(
            config.seed_retry_s, config.seed_retry_max_s, config.unconfirmed_warning_s
        )
        self._pings = 0  # on purpose, in the current probe round

    # --- unconfirmed members ------------------------------------------------------------------

    def new_round(self) -> None:
        self._pings = 0

    def step(self, node_id: NodeId) -> None:
        station, config = self._station, self._station.config
        member = station.view.get(node_id)
        if member is None:
            return
        key = (Timer.UNCONFIRMED, node_id)
        if self._pings >= config.confirmation_pings_per_interval:
            station.deadlines.set(key, station.now + config.probe_interval_s)
            return
        lap_s = len(station.view) * config.probe_interval_s
        step = station.confirmation.step(station.now, node_id, station.awareness.factor, lap_s)
        if step is None:
            return
        action, again = step
        if action is Step.GIVE_UP:
            station.counts[f"unconfirmed_peers_removed_{member.node.role}"] += 1
            self._rumors.forget(member, config.unconfirmed_tombstone_s, Change.GIVEN_UP)
            return
        station.deadlines.set(key, again)
        if action is Step.WARN:
            station.changed(Change.UNCONFIRMED, member, Via.CLEANUP)
        else:
            self._pings += 1
            station.counts["confirmation_attempts_total"] += 1
            self._prober.ping(node_id, member.node.udp)

    # --- seeds --------------------------------------------------------------------------------

    def seed(self, address: Endpoint, configured: bool) -> None:
        own = address in (self._station.me.tcp, self._station.me.udp)
        if not own and self._seeds.add(self._station.now, address, configured):
            self._ask(address)

    def answered(self, address: Endpoint, node_id: NodeId) -> None:
        self._seeds.answered(address, node_id)

    def asked_in_vain(self, address: Endpoint) -> None:
        station = self._station
        again = self._seeds.asked_in_vain(station.now, address)
        if again is None:
            return
        station.deadlines.set((Timer.SEED, _text(address)), again)
        silent_s = self._seeds.overdue(station.now, address)
        if silent_s is not None:
            station.out.append(SeedSilent(address, silent_s))

    def seed_due(self, subject: str) -> None:
        """Ask again unless the node behind the seed is in the view and live."""
        host, _, port = subject.rpartition(" ")
        address = (host, int(port))
        seed = self._seeds.get(address)
        if seed is None:
            return
        member = None if seed.node_id is None else self._station.view.get(seed.node_id)
        if seed.node_id == self._station.me.node_id or (member is not None and member.live):
            due = self._station.now + self._seeds.retry_s
            self._station.deadlines.set((Timer.SEED, subject), due)
        elif seed.configured or seed.node_id is None:
            self._ask(address)
        else:
            self._seeds.drop(address)

    def _ask(self, address: Endpoint) -> None:
        self._exchanges.begin(address)
        due = self._station.now + self._seeds.retry_s
        self._station.deadlines.set((Timer.SEED, _text(address)), due)


def _text(address: Endpoint) -> str:
    return f"{address[0]} {address[1]}"
