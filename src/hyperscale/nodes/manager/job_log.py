"""The replicated log of job records, joined to the wire: what this manager appends, and what other
managers ask.

`append` is the one way into the log and the one way to wait for a quorum.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import invariant
from hyperscale.cluster.jobs import records as job_records
from hyperscale.cluster.jobs.effects import Append
from hyperscale.cluster.jobs.events import AppendFailed
from hyperscale.cluster.jobs.leader_state import Matter, matter
from hyperscale.cluster.jobs.records import Finished, JobRecord
from hyperscale.cluster.jobs.settings import JobSettings, keep_s
from hyperscale.errors import HyperscaleError, RunFailed
from hyperscale.ledger.records import PeerUnreachable, Records, RecordsError
from hyperscale.ledger.records.quorum import QuorumRecords
from hyperscale.ledger.records.settings import RecordsSettings
from hyperscale.nodes.manager.condensing import condensed
from hyperscale.nodes.manager.effect_runner import EffectRunner
from hyperscale.nodes.manager.faults import Faults
from hyperscale.nodes.manager.leadership import Leadership
from hyperscale.nodes.manager.waiters import Waiters
from hyperscale.nodes.protocol.records import RecordsReply, RecordsRequest
from hyperscale.runtime.host import Host
from hyperscale.wire.errors import Refused, WireError
from hyperscale.wire.serving import Call

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

RECORD_KIND = 1  # all records of jobs; which one is in the payload
RECORDS_TIMEOUT_S = 5.0
FRAME_BYTES = 256  # numbers, tokens and tags of any record, with room to spare


class JobLog:
    def __init__(
        self,
        host: Host,
        node_id: str,
        voters: Sequence[str],
        settings: RecordsSettings,
        kept: JobSettings,
        leadership: Leadership,
        effects: EffectRunner,
        faults: Faults,
        log: FilteringBoundLogger,
    ) -> None:
        """`kept` says for how long ended jobs are remembered."""
        self._host = host
        self._settings = settings
        self._kept = kept
        self._leadership = leadership
        self._effects = effects
        self._faults = faults
        self._log = log
        self._waiters: Waiters[Matter, None] = Waiters()
        self.records: Records = QuorumRecords(
            host, "records", node_id, voters, self._ask_voter, settings, condensed
        )
        effects.on(Append, lambda effect: self.append(effect.record))

    async def _ask_voter(self, voter: str, request: bytes) -> bytes:
        peer = self._leadership.peer(voter)
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
        most = self._settings.record_bytes_max
        return most - FRAME_BYTES - sum(len(name.encode()) for name in names)

    def append(self, record: JobRecord) -> asyncio.Future[None]:
        """Resolves when a quorum holds the record and it is applied here; raises why it is not."""
        invariant(self._leadership.term > 0, "only a leader appends")
        held = self.held(record)
        self._host.tasks.spawn(f"hold {type(record).__name__}", self._append(record))
        return held

    def held(self, record: JobRecord) -> asyncio.Future[None]:
        """The same, of a record that is under way. Of each matter there is at most one."""
        return self._waiters.add(matter(record))

    def abandon(self) -> None:
        """This manager does not lead any more: whoever waits is told so."""
        self._waiters.fail_all(RunFailed("leadership ended before it was held"))

    async def _append(self, record: JobRecord) -> None:
        """Whatever comes of it, the core hears of it: a matter that stays under way for ever is
        never decided again, and its job never ends."""
        kept_s = keep_s(self._kept, record.status) if isinstance(record, Finished) else None
        fence = Fence(self._leadership.term)
        try:
            await self.records.append(
                record.job_id, RECORD_KIND, job_records.encode(record), fence, kept_s
            )
        except HyperscaleError as error:
            self._not_held(record, error, isinstance(error, RecordsError) and error.maybe_written)
        except Exception as error:  # noqa: BLE001 - a fault of ours: it may be written or not
            self._faults.add(f"holding {type(record).__name__} of {record.job_id}", error)
            self._not_held(record, RunFailed(f"it could not be written: {error!r}"), True)
        else:
            self._waiters.resolve(matter(record), None)

    def _not_held(self, record: JobRecord, error: HyperscaleError, maybe_written: bool) -> None:
        self._log.warning(
            "record not held",
            job=record.job_id,
            record=type(record).__name__,
            reason=error.message,
            maybe_written=maybe_written,
        )
        self._effects.receive(AppendFailed(record, maybe_written))
        self._waiters.fail(matter(record), error)
