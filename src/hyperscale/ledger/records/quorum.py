"""Job records on a majority of voters: what callers and peers see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import InvariantBroken
from hyperscale.errors import BadInput, HyperscaleError, RunFailed
from hyperscale.ledger.records.api import (
    AppendLatency,
    NotLeader,
    PeerUnreachable,
    QuorumTimeout,
    QuorumUnavailable,
    Record,
    RecordTooLarge,
    Send,
    Status,
)
from hyperscale.ledger.records.durable_replica import DurableReplica
from hyperscale.ledger.records.entries import Entry
from hyperscale.ledger.records.job_table import Condense
from hyperscale.ledger.records.messages import (
    Append,
    Fetch,
    FetchState,
    Install,
    Installed,
    Recover,
    Reply,
    Request,
    State,
    decode_request,
    encode,
)
from hyperscale.ledger.records.recovery import Recovery
from hyperscale.ledger.records.replicator import PeerClient, Replicator
from hyperscale.ledger.records.settings import RecordsSettings
from hyperscale.ledger.records.snapshots import PackedState, PartialState
from hyperscale.ledger.records.states import Role
from hyperscale.ledger.wal.writer import Stats
from hyperscale.runtime.host import Host, Task


class QuorumRecords:
    """`Records` among the voters of one cluster. Its directory belongs to it alone."""

    def __init__(
        self,
        host: Host,
        directory: str,
        name: str,
        voters: Iterable[str],
        send: Send,
        settings: RecordsSettings | None = None,
        condense: Condense = tuple,
    ) -> None:
        """`condense` says what is kept of a job that has ended."""
        self._host = host
        self._settings = settings or RecordsSettings()
        self._durable = DurableReplica(host, directory, name, voters, self._settings, condense)
        self._client = PeerClient(host, send, self._settings)
        self._replicator: Replicator | None = None
        self._upkeep: Task | None = None
        self._incoming = PartialState(self._settings.state_bytes_max)
        self._outgoing: PackedState | None = None

    @property
    def on_applied(self) -> list[Callable[[Record], None]]:
        return self._durable.on_applied

    @property
    def on_forgotten(self) -> list[Callable[[str], None]]:
        return self._durable.on_forgotten

    # -- life ---------------------------------------------------------------------------------

    async def open(self) -> None:
        durable = self._durable
        await durable.open()
        self._replicator = Replicator(
            self._host,
            durable.replica,
            self._client,
            self._settings,
            turned=durable.turn,
            packed=durable.pack,
        )
        durable.on_turn = self._replicator.wake
        self._replicator.start()
        self._upkeep = self._host.tasks.spawn("records upkeep", self._keep_up())

    async def close(self) -> None:
        if self._replicator is not None:
            self._replicator.stop()
        if self._upkeep is not None:
            self._upkeep.cancel()
        await self._durable.close()

    async def failed(self) -> HyperscaleError:
        await self._durable.broken.wait()
        return self._durable.refusal()

    # -- leading ------------------------------------------------------------------------------

    async def lead(self, term: int) -> None:
        durable = self._durable
        durable.check()
        if not durable.replica.lead(term):
            raise NotLeader(
                f"this node cannot lead term {term}: it has promised term {durable.replica.term}",
                "wait for the next election; an election that has lost its terms cannot go on"
                " with these records",
            )
        durable.turn()
        try:
            async with asyncio.timeout(self._settings.quorum_timeout_s):
                await self._take_over(term)
        except TimeoutError:
            raise self._unavailable() from None
        except NotLeader:
            durable.check()
            raise

    def follow(self, term: int) -> None:
        replica = self._durable.replica
        if replica.role is not Role.FOLLOWER and replica.term <= term:
            replica.step_down()
            self._durable.turn()

    async def append(
        self, job_id: str, kind: int, payload: bytes, fence: Fence, keep_s: float | None = None
    ) -> int:
        if len(payload) > self._settings.record_bytes_max:
            raise RecordTooLarge(
                f"a record of {len(payload):,} bytes of job {job_id} is too large",
                f"the limit is {self._settings.record_bytes_max:,} bytes; split it",
            )
        self._may_write()
        self._durable.pending.admit(self._durable.job_table, job_id, fence)
        record = Record(0, job_id, kind, payload, fence, keep_s)
        return await self._confirmed(self._durable.replica.propose(record))

    async def forget(self, job_id: str) -> None:
        self._may_write()
        durable = self._durable
        durable.pending.check_room()
        if job_id in durable.job_table or job_id in durable.pending:
            await self._confirmed(durable.replica.propose(forgets=job_id))

    # -- reading ------------------------------------------------------------------------------

    def records(self, job_id: str) -> Sequence[Record]:
        return self._durable.job_table.records(job_id)

    def jobs(self) -> list[str]:
        return self._durable.job_table.jobs()

    def status(self) -> Status:
        durable, replica = self._durable, self._durable.replica
        leading = replica.role is not Role.FOLLOWER
        return Status(
            role="failed" if durable.failing else replica.role.value,
            term=replica.term,
            ready=self._ready,
            last_index=replica.log.last_index,
            durable_index=replica.log.stable_index,
            commit_index=replica.commit_index,
            applied_index=durable.applied_index,
            jobs=len(durable.job_table),
            bytes=durable.job_table.bytes,
            disk_bytes=durable.store.log_bytes,
            checkpoints_failed=durable.store.checkpoints_failed,
            pending=len(durable.pending),
            reachable=self._reachable() if leading else (),
            behind=tuple(sorted(replica.behind().items())),
            pending_share=durable.pending.share,
            newcomer=replica.newcomer,
        )

    @property
    def stages(self) -> AppendLatency:
        return self._durable.stages

    @property
    def log_stats(self) -> Stats:
        return self._durable.store.stats

    # -- following ----------------------------------------------------------------------------

    async def handle(self, peer: str, request: bytes) -> bytes:
        durable = self._durable
        durable.check()
        if peer not in durable.replica.peers:
            raise BadInput(f"{peer} is no voter of these records", "check the list of voters")
        try:
            message = decode_request(request)
        except msgspec.DecodeError as error:
            raise BadInput(f"{peer} sent something that is no request: {error}") from None
        try:
            reply = await self._answer(peer, message)
        except InvariantBroken as broken:
            durable.fail(RunFailed(f"the job records contradict those of {peer}: {broken}"))
            raise
        write = durable.replica.write
        durable.turn()
        await durable.waiters.written(write)
        durable.check()
        return encode(reply)

    async def _answer(self, peer: str, request: Request) -> Reply:
        replica = self._durable.replica
        match request:
            case Recover():
                return replica.recover(peer, request)
            case Append():
                return replica.append(peer, request)
            case Fetch():
                return replica.fetch(peer, request)
            case FetchState():
                return await self._give_state(peer, request)
            case Install():
                return await self._take_state(peer, request)

    async def _give_state(self, peer: str, request: FetchState) -> State:
        replica = self._durable.replica
        if not replica.serves(peer, request.term):
            return State(replica.term)
        if request.offset == 0:
            self._outgoing = await self._durable.pack()
        if self._outgoing is None:
            return State(replica.term)
        part = self._outgoing.part(request.term, request.offset, self._settings.part_bytes)
        if part.offset + len(part.data) >= part.total:
            self._outgoing = None
        return part

    async def _take_state(self, peer: str, request: Install) -> Installed:
        replica = self._durable.replica
        if not replica.accepts(peer, request.term):
            return Installed(replica.term, False)
        self._durable.turn()
        try:
            taken = self._incoming.take(peer, request.part)
        except ValueError:
            return Installed(replica.term, False)
        whole = self._incoming.whole()
        if whole is not None:
            await self._durable.replace(whole, lambda: replica.accepts(peer, request.term))
        return Installed(replica.term, True, taken)

    # -- inside -------------------------------------------------------------------------------

    async def _take_over(self, term: int) -> None:
        durable = self._durable
        if durable.replica.role is Role.RECOVERING:
            recovery = Recovery(
                self._host,
                durable.replica,
                self._client,
                self._settings,
                turned=durable.turn,
                changed=durable.waiters.changed,
                install=lambda whole: durable.replace(whole, lambda: durable.replica.leads(term)),
            )
            await recovery.run(term)
        while not self._ready:
            durable.check()
            if not durable.replica.leads(term):
                raise NotLeader(f"term {term} is over", "a newer leader takes records")
            await durable.waiters.changed()

    @property
    def _ready(self) -> bool:
        durable = self._durable
        return bool(durable.led_term) and durable.replica.leads(durable.led_term)

    def _may_write(self) -> None:
        self._durable.check()
        if not self._ready:
            raise NotLeader("this node does not lead", "ask the leader")
        if len(self._reachable()) < self._durable.replica.quorum:
            raise self._unavailable()

    async def _confirmed(self, entry: Entry) -> int:
        durable, clock = self._durable, self._host.clock
        durable.pending.written(entry)
        began = clock.now()
        durable.stages.proposed(entry.index, began)
        durable.turn()
        try:
            async with asyncio.timeout(self._settings.quorum_timeout_s):
                index = await durable.waiters.applied(entry.index, entry.term)
            durable.stages.append.add(clock.now() - began)
            return index
        except TimeoutError:
            raise QuorumTimeout(
                f"a majority did not confirm within {self._settings.quorum_timeout_s:g} s",
                "the record may still be confirmed: ask again with the same key",
            ) from None

    def _reachable(self) -> tuple[str, ...]:
        return tuple(sorted((self._durable.replica.name, *self._client.reachable())))

    def _unavailable(self) -> QuorumUnavailable:
        reachable, replica = self._reachable(), self._durable.replica
        new = [name for name in replica.newcomers() if name in reachable]
        return QuorumUnavailable(
            f"{len(reachable)} of {len(replica.peers) + 1} voters can be reached"
            f" ({', '.join(reachable)}) and {replica.quorum} are needed"
            + (f"; {', '.join(new)} began with an empty disk and cannot count yet" if new else ""),
            "start the others, or see to the network between them",
        )

    async def _keep_up(self) -> None:
        """Forget jobs whose time is up, and make checkpoints."""
        while True:
            await self._host.clock.sleep(self._settings.tidy_s)
            self._forget_due()
            self._durable.checkpoint_if_due()

    def _forget_due(self) -> None:
        durable = self._durable
        if not self._ready or len(self._reachable()) < durable.replica.quorum:
            return
        for job_id in durable.job_table.due(self._host.clock.now(), self._settings.forget_max):
            durable.pending.written(durable.replica.propose(forgets=job_id))
        durable.turn()


class LocalRecords(QuorumRecords):
    """`Records` of a node that is alone: what is on its disk is on a majority."""

    def __init__(
        self, host: Host, directory: str, name: str, settings: RecordsSettings | None = None
    ) -> None:
        super().__init__(host, directory, name, (name,), _nobody, settings)


async def _nobody(peer: str, request: bytes) -> bytes:
    raise PeerUnreachable(f"there is no {peer}")
