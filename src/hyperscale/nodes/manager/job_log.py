"""The replicated records, joined to the wire: what this manager writes, and what others ask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs import records as job_records
from hyperscale.cluster.jobs.records import Finished, JobRecord, Submitted
from hyperscale.errors import HyperscaleError, RunFailed
from hyperscale.ledger.records import PeerUnreachable, Records, RecordsError
from hyperscale.ledger.records.quorum import QuorumRecords
from hyperscale.nodes.manager.condensing import condensed
from hyperscale.nodes.protocol.records import RecordsReply, RecordsRequest
from hyperscale.wire.errors import Refused, WireError
from hyperscale.wire.serving import Call

if TYPE_CHECKING:
    from hyperscale.nodes.manager.manager import Manager

RECORD_KIND = 1  # all records of jobs; which one is in the payload
RECORDS_TIMEOUT_S = 5.0
FRAME_BYTES = 256  # numbers, tokens and tags of any record, with room to spare


class JobLog:
    def __init__(self, manager: Manager) -> None:
        settings = manager.settings
        self._manager = manager
        self._outcomes: dict[int, asyncio.Future[HyperscaleError | None]] = {}
        self.records: Records = QuorumRecords(
            manager.host,
            "records",
            manager.id,
            settings.node.voters,
            self._ask_voter,
            settings.records,
            condensed,
        )

    async def _ask_voter(self, voter: str, request: bytes) -> bytes:
        peer = self._manager.leadership.peer(voter)
        if peer is None:
            raise PeerUnreachable(f"{voter} is not a member yet")
        try:
            reply = await peer.request(
                RecordsRequest(data=request), RecordsReply, RECORDS_TIMEOUT_S
            )
        except WireError as error:
            raise PeerUnreachable(str(error)) from error
        return reply.data

    async def asked(self, call: Call, request: RecordsRequest) -> RecordsReply:
        try:
            return RecordsReply(data=await self.records.handle(call.peer.node_id, request.data))
        except HyperscaleError as error:
            raise Refused(call.kind.name, error.message) from None

    def room_bytes(self, *names: str) -> int:
        """For what a record carries, beside names and words that stand in it."""
        most = self._manager.settings.records.record_bytes_max
        return most - FRAME_BYTES - sum(len(name.encode()) for name in names)

    def outcome(self, record: JobRecord) -> Awaitable[HyperscaleError | None]:
        """Of a record that is about to be appended: None once a quorum holds it."""
        future: asyncio.Future[HyperscaleError | None] = asyncio.get_running_loop().create_future()
        self._outcomes[id(record)] = future
        return future

    def _tell(self, record: JobRecord, error: HyperscaleError | None) -> None:
        future = self._outcomes.pop(id(record), None)
        if future is not None and not future.done():
            future.set_result(error)

    async def append(self, record: JobRecord) -> None:
        """Whatever comes of it, the core hears of it: a matter that stays under way for ever is
        never decided again, and its job never ends."""
        keep_s = self._manager.jobs.keep_s(record.status) if isinstance(record, Finished) else None
        fence = Fence(self._manager.leadership.term)
        try:
            await self.records.append(
                record.job_id, RECORD_KIND, job_records.encode(record), fence, keep_s
            )
        except HyperscaleError as error:
            self._not_held(record, error, isinstance(error, RecordsError) and error.maybe_written)
        except Exception as error:  # noqa: BLE001 - a fault of ours: it may be written or not
            self._manager.faults.add(f"holding {type(record).__name__} of {record.job_id}", error)
            self._not_held(record, RunFailed(f"it could not be written: {error!r}"), True)
        else:
            self._tell(record, None)

    def _not_held(self, record: JobRecord, error: HyperscaleError, maybe_written: bool) -> None:
        manager = self._manager
        manager.log.warning(
            "record not held",
            job=record.job_id,
            record=type(record).__name__,
            reason=error.message,
            maybe_written=maybe_written,
        )
        manager.carry_out(manager.jobs.append_failed(manager.now(), record, maybe_written))
        if isinstance(record, Submitted):
            manager.accept(record.job_id, error)
        self._tell(record, error)
