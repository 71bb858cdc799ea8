"""Getting to know peers: seeds to ask, and members heard of but not from."""

from __future__ import annotations

from hyperscale.cluster.identity import Endpoint, NodeId
from hyperscale.cluster.membership.confirmation import Step
from hyperscale.cluster.membership.effects import Change, SeedSilent, Via
from hyperscale.cluster.membership.exchange import Exchanges
from hyperscale.cluster.membership.prober import Prober
from hyperscale.cluster.membership.seeds import Seeds
from hyperscale.cluster.membership.state import SharedState, Timer
from hyperscale.cluster.membership.updates import Updates


class Joining:
    __slots__ = ("_exchanges", "_pings", "_prober", "_seeds", "_shared", "_updates")

    def __init__(
        self, shared: SharedState, updates: Updates, prober: Prober, exchanges: Exchanges
    ) -> None:
        config = shared.config
        self._shared = shared
        self._updates = updates
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
        shared, config = self._shared, self._shared.config
        member = shared.view.get(node_id)
        if member is None:
            return
        key = (Timer.UNCONFIRMED, node_id)
        if self._pings >= config.confirmation_pings_per_interval:
            shared.deadlines.set(key, shared.now + config.probe_interval_s)
            return
        lap_s = len(shared.view) * config.probe_interval_s
        step = shared.confirmation.step(shared.now, node_id, shared.awareness.factor, lap_s)
        if step is None:
            return
        action, again = step
        if action is Step.GIVE_UP:
            shared.counts[f"unconfirmed_peers_removed_{member.node.role}"] += 1
            self._updates.forget(member, config.unconfirmed_tombstone_s, Change.GIVEN_UP)
            return
        shared.deadlines.set(key, again)
        if action is Step.WARN:
            shared.changed(Change.UNCONFIRMED, member, Via.CLEANUP)
        else:
            self._pings += 1
            shared.counts["confirmation_attempts_total"] += 1
            self._prober.ping(node_id, member.node.udp)

    # --- seeds --------------------------------------------------------------------------------

    def seed(self, address: Endpoint, configured: bool) -> None:
        own = address in (self._shared.me.tcp, self._shared.me.udp)
        if not own and self._seeds.add(self._shared.now, address, configured):
            self._ask(address)

    def answered(self, address: Endpoint, node_id: NodeId) -> None:
        self._seeds.answered(address, node_id)

    def asked_in_vain(self, address: Endpoint) -> None:
        shared = self._shared
        again = self._seeds.asked_in_vain(shared.now, address)
        if again is None:
            return
        shared.deadlines.set((Timer.SEED, _text(address)), again)
        silent_s = self._seeds.overdue(shared.now, address)
        if silent_s is not None:
            shared.out.append(SeedSilent(address, silent_s))

    def seed_due(self, subject: str) -> None:
        """Ask again unless the node behind the seed is in the view and live."""
        host, _, port = subject.rpartition(" ")
        address = (host, int(port))
        seed = self._seeds.get(address)
        if seed is None:
            return
        member = None if seed.node_id is None else self._shared.view.get(seed.node_id)
        if seed.node_id == self._shared.me.node_id or (member is not None and member.live):
            due = self._shared.now + self._seeds.retry_s
            self._shared.deadlines.set((Timer.SEED, subject), due)
        elif seed.configured or seed.node_id is None:
            self._ask(address)
        else:
            self._seeds.drop(address)

    def _ask(self, address: Endpoint) -> None:
        self._exchanges.begin(address)
        due = self._shared.now + self._seeds.retry_s
        self._shared.deadlines.set((Timer.SEED, _text(address)), due)


def _text(address: Endpoint) -> str:
    return f"{address[0]} {address[1]}"
