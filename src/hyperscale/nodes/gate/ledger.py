"""Jobs in the log: each has a replica group of gates, whose primary owns it.

A job's id follows from its idempotency key, and its group from its id and the list of all gates
alone: whichever gates are alive, a job that is submitted twice meets itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from hyperscale.cluster.placement.rendezvous import rank
from hyperscale.ledger.vsr import Entry, Groups, NotPrimary, Unknown, VsrSettings
from hyperscale.nodes.gate import events
from hyperscale.nodes.gate.events import AnyEvent, Completed, request_of
from hyperscale.nodes.gate.jobs import GateJobs, condensed
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.protocol import Fields
from hyperscale.nodes.protocol.sealing import Sealing
from hyperscale.runtime.host import Address, Host
from hyperscale.wire.errors import WireError
from hyperscale.wire.messages import Priority, Registry
from hyperscale.wire.peer import Peer
from hyperscale.wire.serving import Call

GROUP_GATES = 3
FORGOTTEN = "forgotten"
BUNDLE_BYTES_MAX = 48 << 20


class LedgerBundle(Fields, frozen=True, kw_only=True):
    """What the replicas of one gate have to say to those of another."""

    data: bytes


LEDGER = Registry()
LEDGER.add(
    LedgerBundle, kind="ledger.bundle", priority=Priority.CRITICAL, max_bytes=BUNDLE_BYTES_MAX
)


def _less(payload: bytes) -> bytes:
    return events.encode(condensed(events.decode(payload))) if payload else payload


def job_id_of(key: str) -> str:
    return hashlib.blake2b(key.encode(), digest_size=8).hexdigest()[:15]


class Ledger:
    def __init__(
        self,
        host: Host,
        node: Node,
        gates: tuple[str, ...],
        settings: VsrSettings,
        commit_s: float,
    ) -> None:
        self.sealing = Sealing(node.settings.secret, node.settings.previous_secret)
        self.jobs = GateJobs(self.sealing)
        self.me = node.settings.id
        self._host = host
        self._node = node
        self._gates = gates
        self._settings = settings
        self._commit_s = commit_s
        self.on_forgotten: list[Callable[[str], None]] = []
        self._peers: dict[str, Peer] = {}
        self._connecting: set[str] = set()
        self._groups: Groups
        node.answer({LedgerBundle: self._received})

    async def open(self) -> None:
        self._groups = await Groups.open(
            *(self._host, "ledger", self.me, self._send, self._applied, self._settings),
            closed=self._closed,
        )
        self._node.spawn_vital("ledger", self._groups.run())

    def resign(self) -> None:
        """The next owners need not wait until a lease has run out."""
        self._groups.resign()

    async def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        await self._groups.close()

    # -- who owns a job ------------------------------------------------------------------------

    def members(self, job_id: str) -> tuple[str, ...]:
        return tuple(rank(dict.fromkeys(self._gates, 1.0), job_id, GROUP_GATES))

    def is_unheard_of(self, job_id: str) -> bool:
        """It would be ours to know, and no gate that holds it has told us. Of a group of three,
        two that have not heard of a job prove that nobody was told of it."""
        return job_id not in self._groups.node.replicas and self.me in self.members(job_id)

    def is_nothing(self, job_id: str) -> bool:
        """Somebody wanted to submit it, and nothing came of it."""
        try:
            return not self._groups.read(job_id)
        except NotPrimary:
            return False

    def owns(self, job_id: str) -> bool:
        replica = self._groups.node.replicas.get(job_id)
        return replica is not None and replica.leads(self._host.clock.now())

    def owner(self, job_id: str) -> str:
        """As far as is known here; the first of its group where nothing is."""
        replica = self._groups.node.replicas.get(job_id)
        known = None if replica is None else replica.primary
        return known or self.members(job_id)[0]

    def hand_over(self, job_id: str) -> None:
        """To the next of its group, at once."""
        self._groups.resign([job_id])

    def begin(self, job_id: str) -> None:
        """Take part in the group of a job that somebody wants to submit. Nothing happens where it
        is known, or not for us."""
        members = self.members(job_id)
        if self.me in members:
            self._groups.create(job_id, members)

    async def append(self, job_id: str, event: AnyEvent) -> None:
        """Returns when it is committed. Raises NotPrimary; Unknown when it may be, or not."""
        payload = events.encode(event)
        await self._groups.append(job_id, request_of(event), payload, self._commit_s)

    async def append_surely(self, job_id: str, event: AnyEvent) -> None:
        """Until it is committed. Raises NotPrimary."""
        while True:
            try:
                return await self.append(job_id, event)
            except Unknown:
                await self._host.clock.sleep(self._settings.retry_s)

    def _applied(self, job_id: str, entry: Entry) -> None:
        if entry.payload:
            event = events.decode(entry.payload)
            self.jobs.apply(self._host.clock.now(), job_id, event)
            if isinstance(event, Completed):
                self._groups.condense(job_id, _less)

    # -- jobs that are over --------------------------------------------------------------------

    async def forget(self, job_id: str) -> None:
        """Returns when it is committed that the group is over. Raises NotPrimary, Unknown."""
        await self._groups.append(job_id, FORGOTTEN, b"", self._commit_s, closes=True)

    def is_being_forgotten(self, job_id: str) -> bool:
        return self._groups.node.graves.has(self._host.clock.now(), job_id)

    def owned_groups(self) -> list[str]:
        return [job_id for job_id in self._groups.node.replicas if self.owns(job_id)]

    def _closed(self, job_id: str) -> None:
        self.jobs.forget(job_id)
        for forgotten in self.on_forgotten:
            forgotten(job_id)

    # -- other gates ---------------------------------------------------------------------------

    def peer(self, gate: str) -> Peer | None:
        """None: nobody knows where it is."""
        member = self._node.membership.core.member(gate)
        if member is None:
            return None
        address = Address(*member.node.tcp)
        known = self._peers.get(gate)
        if known is None or known.address != address:
            if known is not None:
                known.close()
            known = Peer(self._node.endpoint, address, expect_role="gate", expect_node=gate)
            self._peers[gate] = known
        return known

    def _received(self, call: Call, message: LedgerBundle) -> None:
        if call.peer.node_id in self._gates:
            self._groups.receive(call.peer.node_id, message.data)

    def _send(self, gate: str, data: bytes) -> None:
        """At once, or not at all: replicas repeat what is not answered."""
        peer = self.peer(gate) if self._node.started else None
        if peer is None or peer.tell(LedgerBundle(data=data)) or gate in self._connecting:
            return
        self._connecting.add(gate)
        self._host.tasks.spawn(f"connect {gate}", self._connect(gate, peer, data))

    async def _connect(self, gate: str, peer: Peer, data: bytes) -> None:
        try:
            await peer.send(LedgerBundle(data=data))
        except (WireError, OSError):
            await self._host.clock.sleep(self._settings.retry_s)
        finally:
            self._connecting.discard(gate)
