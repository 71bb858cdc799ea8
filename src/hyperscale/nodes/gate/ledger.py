"""Jobs in the log: each has a replica group of gates, whose primary owns it.

A job's id follows from its idempotency key, and its group from its id and the list of all gates
alone: whichever gates are alive, a job that is submitted twice meets itself.
"""

from __future__ import annotations

from hyperscale.cluster.placement.rendezvous import rank
from hyperscale.ledger.vsr import Entry, Groups, NotPrimary, VsrSettings
from hyperscale.nodes.gate import events
from hyperscale.nodes.gate.events import AnyEvent, Completed, request_of
from hyperscale.nodes.gate.job_ledger import JobLedger, less
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.protocol import Fields
from hyperscale.runtime.host import Host
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


class Ledger(JobLedger):
    def __init__(
        self,
        host: Host,
        node: Node,
        gates: tuple[str, ...],
        settings: VsrSettings,
        commit_s: float,
    ) -> None:
        super().__init__(host, node, gates, settings)
        self._commit_s = commit_s
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
        self._groups.resign()

    async def close(self) -> None:
        await super().close()
        await self._groups.close()

    # -- who owns a job ------------------------------------------------------------------------

    def members(self, job_id: str) -> tuple[str, ...]:
        return tuple(rank(dict.fromkeys(self._gates, 1.0), job_id, GROUP_GATES))

    def is_unheard_of(self, job_id: str) -> bool:
        """Two of three that have not heard of a job prove that nobody was told of it."""
        return job_id not in self._groups.node.replicas and self.me in self.members(job_id)

    def is_nothing(self, job_id: str) -> bool:
        try:
            return not self._groups.read(job_id)
        except NotPrimary:
            return False

    def owns(self, job_id: str) -> bool:
        replica = self._groups.node.replicas.get(job_id)
        return replica is not None and replica.leads(self._host.clock.now())

    def owner(self, job_id: str) -> str:
        replica = self._groups.node.replicas.get(job_id)
        known = None if replica is None else replica.primary
        return known or self.members(job_id)[0]

    def hand_over(self, job_id: str) -> None:
        self._groups.resign([job_id])

    async def begin(self, job_id: str) -> None:
        members = self.members(job_id)
        if self.me in members:
            self._groups.create(job_id, members)

    async def append(self, job_id: str, event: AnyEvent) -> None:
        payload = events.encode(event)
        await self._groups.append(job_id, request_of(event), payload, self._commit_s)

    def _applied(self, job_id: str, entry: Entry) -> None:
        if entry.payload:
            event = events.decode(entry.payload)
            self.jobs.apply(self._host.clock.now(), job_id, event)
            if isinstance(event, Completed):
                self._groups.condense(job_id, less)

    # -- jobs that are over --------------------------------------------------------------------

    async def forget(self, job_id: str) -> None:
        await self._groups.append(job_id, FORGOTTEN, b"", self._commit_s, closes=True)

    def is_being_forgotten(self, job_id: str) -> bool:
        return self._groups.node.graves.has(self._host.clock.now(), job_id)

    def owned_groups(self) -> list[str]:
        return [job_id for job_id in self._groups.node.replicas if self.owns(job_id)]

    def _closed(self, job_id: str) -> None:
        self._forgotten(job_id)

    # -- other gates ---------------------------------------------------------------------------

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
