"""Job records on a majority of voters: what callers and peers see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import InvariantBroken
from hyperscale.errors import BadInput, HyperscaleError, RunFailed
from hyperscale.ledger.records.api import (
    NotLeader,
    PeerUnreachable,
    QuorumTimeout,
    QuorumUnavailable,
    Record,
    RecordTooLarge,
    Send,
    Status,
)
from hyperscale.ledger.records.courier import Courier, Line
from hyperscale.ledger.records.entries import Entry
from hyperscale.ledger.records.keeper import Keeper
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
from hyperscale.ledger.records.settings import RecordsSettings
from hyperscale.ledger.records.shelf import Condense
from hyperscale.ledger.records.snapshots import Assembly, Parcel
from hyperscale.ledger.records.stages import Stages
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
        self._keeper = Keeper(host, directory, name, voters, self._settings, condense)
        self._line = Line(host, send, self._settings)
        self._courier: Courier | None = None
        self._upkeep: Task | None = None
        self._incoming = Assembly(self._settings.state_bytes_max)
        self._outgoing: Parcel | None = None

    @property
    def on_applied(self) -> list[Callable[[Record], None]]:
        return self._keeper.on_applied

    @property
    def on_forgotten(self) -> list[Callable[[str], None]]:
        return self._keeper.on_forgotten

    # -- life ---------------------------------------------------------------------------------

    async def open(self) -> None:
        keeper = self._keeper
        await keeper.open()
        self._courier = Courier(
            self._host,
            keeper.replica,
            self._line,
            self._settings,
            turned=keeper.turn,
            parcel=keeper.pack,
        )
        keeper.on_turn = self._courier.stir
        self._courier.start()
        self._upkeep = self._host.tasks.spawn("records upkeep", self._keep_up())

    async def close(self) -> None:
        if self._courier is not None:
            self._courier.stop()
        if self._upkeep is not None:
            self._upkeep.cancel()
        await self._keeper.close()

    async def failed(self) -> HyperscaleError:
        await self._keeper.broken.wait()
        return self._keeper.refusal()

    # -- leading ------------------------------------------------------------------------------

    async def lead(self, term: int) -> None:
        keeper = self._keeper
        keeper.check()
        if not keeper.replica.lead(term):
            raise NotLeader(
                f"this node cannot lead term {term}: it has promised term {keeper.replica.term}",
                "wait for the next election; an election that has lost its terms cannot go on"
                " with these records",
            )
        keeper.turn()
        try:
            async with asyncio.timeout(self._settings.quorum_timeout_s):
                await self._take_over(term)
        except TimeoutError:
            raise self._unavailable() from None
        except NotLeader:
            keeper.check()
            raise

    def follow(self, term: int) -> None:
        replica = self._keeper.replica
        if replica.role is not Role.FOLLOWER and replica.term <= term:
            replica.relieve()
            self._keeper.turn()

    async def append(
        self, job_id: str, kind: int, payload: bytes, fence: Fence, keep_s: float | None = None
    ) -> int:
        if len(payload) > self._settings.record_bytes_max:
            raise RecordTooLarge(
                f"a record of {len(payload):,} bytes of job {job_id} is too large",
                f"the limit is {self._settings.record_bytes_max:,} bytes; split it",
            )
        self._may_write()
        self._keeper.under_way.admit(self._keeper.shelf, job_id, fence)
        record = Record(0, job_id, kind, payload, fence, keep_s)
        return await self._confirmed(self._keeper.replica.propose(record))

    async def forget(self, job_id: str) -> None:
        self._may_write()
        keeper = self._keeper
        keeper.under_way.check_room()
        if job_id in keeper.shelf or job_id in keeper.under_way:
            await self._confirmed(keeper.replica.propose(forgets=job_id))

    # -- reading ------------------------------------------------------------------------------

    def records(self, job_id: str) -> Sequence[Record]:
        return self._keeper.shelf.records(job_id)

    def jobs(self) -> list[str]:
        return self._keeper.shelf.jobs()

    def status(self) -> Status:
        keeper, replica = self._keeper, self._keeper.replica
        leading = replica.role is not Role.FOLLOWER
        return Status(
            role="failed" if keeper.failing else replica.role.value,
            term=replica.term,
            ready=self._ready,
            last_index=replica.log.last_index,
            durable_index=replica.log.stable_index,
            commit_index=replica.commit_index,
            applied_index=keeper.applied_index,
            jobs=len(keeper.shelf),
            bytes=keeper.shelf.bytes,
            disk_bytes=keeper.store.log_bytes,
            checkpoints_failed=keeper.store.checkpoints_failed,
            under_way=len(keeper.under_way),
            reachable=self._reachable() if leading else (),
            behind=tuple(sorted(replica.behind().items())),
            under_way_share=keeper.under_way.share,
            newcomer=replica.newcomer,
        )

    @property
    def stages(self) -> Stages:
        return self._keeper.stages

    @property
    def log_stats(self) -> Stats:
        return self._keeper.store.stats

    # -- following ----------------------------------------------------------------------------

    async def handle(self, peer: str, request: bytes) -> bytes:
        keeper = self._keeper
        keeper.check()
        if peer not in keeper.replica.peers:
            raise BadInput(f"{peer} is no voter of these records", "check the list of voters")
        try:
            message = decode_request(request)
        except msgspec.DecodeError as error:
            raise BadInput(f"{peer} sent something that is no request: {error}") from None
        try:
            reply = await self._answer(peer, message)
        except InvariantBroken as broken:
            keeper.fail(RunFailed(f"the job records contradict those of {peer}: {broken}"))
            raise
        write = keeper.replica.write
        keeper.turn()
        await keeper.desk.written(write)
        keeper.check()
        return encode(reply)

    async def _answer(self, peer: str, request: Request) -> Reply:
        replica = self._keeper.replica
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
        replica = self._keeper.replica
        if not replica.serves(peer, request.term):
            return State(replica.term)
        if request.offset == 0:
            self._outgoing = await self._keeper.pack()
        if self._outgoing is None:
            return State(replica.term)
        part = self._outgoing.part(request.term, request.offset, self._settings.part_bytes)
        if part.offset + len(part.data) >= part.total:
            self._outgoing = None
        return part

    async def _take_state(self, peer: str, request: Install) -> Installed:
        replica = self._keeper.replica
        if not replica.accepts(peer, request.term):
            return Installed(replica.term, False)
        self._keeper.turn()
        try:
            taken = self._incoming.take(peer, request.part)
        except ValueError:
            return Installed(replica.term, False)
        whole = self._incoming.whole()
        if whole is not None:
            await self._keeper.replace(whole, lambda: replica.accepts(peer, request.term))
        return Installed(replica.term, True, taken)

    # -- inside -------------------------------------------------------------------------------

    async def _take_over(self, term: int) -> None:
        keeper = self._keeper
        if keeper.replica.role is Role.RECOVERING:
            recovery = Recovery(
                self._host,
                keeper.replica,
                self._line,
                self._settings,
                turned=keeper.turn,
                changed=keeper.desk.changed,
                install=lambda whole: keeper.replace(whole, lambda: keeper.replica.leads(term)),
            )
            await recovery.run(term)
        while not self._ready:
            keeper.check()
            if not keeper.replica.leads(term):
                raise NotLeader(f"term {term} is over", "a newer leader takes records")
            await keeper.desk.changed()

    @property
    def _ready(self) -> bool:
        keeper = self._keeper
        return bool(keeper.led_term) and keeper.replica.leads(keeper.led_term)

    def _may_write(self) -> None:
        self._keeper.check()
        if not self._ready:
            raise NotLeader("this node does not lead", "ask the leader")
        if len(self._reachable()) < self._keeper.replica.quorum:
            raise self._unavailable()

    async def _confirmed(self, entry: Entry) -> int:
        keeper, clock = self._keeper, self._host.clock
        keeper.under_way.written(entry)
        began = clock.now()
        keeper.stages.proposed(entry.index, began)
        keeper.turn()
        try:
            async with asyncio.timeout(self._settings.quorum_timeout_s):
                index = await keeper.desk.applied(entry.index, entry.term)
            keeper.stages.append.add(clock.now() - began)
            return index
        except TimeoutError:
            raise QuorumTimeout(
                f"a majority did not confirm within {self._settings.quorum_timeout_s:g} s",
                "the record may still be confirmed: ask again with the same key",
            ) from None

    def _reachable(self) -> tuple[str, ...]:
        return tuple(sorted((self._keeper.replica.name, *self._line.reachable())))

    def _unavailable(self) -> QuorumUnavailable:
        reachable, replica = self._reachable(), self._keeper.replica
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
            self._keeper.checkpoint_if_due()

    def _forget_due(self) -> None:
        keeper = self._keeper
        if not self._ready or len(self._reachable()) < keeper.replica.quorum:
            return
        for job_id in keeper.shelf.due(self._host.clock.now(), self._settings.forget_max):
            keeper.under_way.written(keeper.replica.propose(forgets=job_id))
        keeper.turn()


class LocalRecords(QuorumRecords):
    """`Records` of a node that is alone: what is on its disk is on a majority."""

    def __init__(
        self, host: Host, directory: str, name: str, settings: RecordsSettings | None = None
    ) -> None:
        super().__init__(host, directory, name, (name,), _nobody, settings)


async def _nobody(peer: str, request: bytes) -> bytes:
    raise PeerUnreachable(f"there is no {peer}")
