"""A replica with its disk and its state.

Every call into the replica is followed by `turn`: writes go to the disk's queue, what became
committed is applied, and who waited is told. Whatever breaks in here ends the whole: a replica
whose state may not be what its log says must not answer anybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from hyperscale.errors import HyperscaleError, RunFailed
from hyperscale.ledger.records import snapshots
from hyperscale.ledger.records.api import AppendLatency, Deposed, Record
from hyperscale.ledger.records.entries import Entry
from hyperscale.ledger.records.job_table import Condense, JobTable
from hyperscale.ledger.records.pending import Pending
from hyperscale.ledger.records.replica import Replica
from hyperscale.ledger.records.settings import RecordsSettings
from hyperscale.ledger.records.snapshots import Captured, PackedState
from hyperscale.ledger.records.store import Store
from hyperscale.ledger.records.waiters import Waiters
from hyperscale.ledger.wal import LogClosed, LogFailed
from hyperscale.runtime.host import Host
from hyperscale.runtime.latency import Latency

T = TypeVar("T")


class DurableReplica:
    def __init__(
        self,
        host: Host,
        directory: str,
        name: str,
        voters: Iterable[str],
        settings: RecordsSettings,
        condense: Condense = tuple,
    ) -> None:
        self._host = host
        self._directory = directory
        self._settings = settings
        self._condense = condense
        self.store = Store(host, directory, settings)
        self.store.on_written = self._written
        self.store.on_failed = lambda: self.fail(self.store.failure)
        self._checkpointed_at = 0.0
        self._checkpointed_index = 0
        self._checkpointing = False
        self._replacing = asyncio.Lock()
        self._failure: HyperscaleError | None = None
        self._closed = False
        self.replica = Replica(name, voters, settings)
        self.job_table = JobTable(condense)
        self.waiters = Waiters()
        self.pending = Pending(settings)
        self.stages = AppendLatency(Latency())
        self.applied_index = 0
        self.led_term = 0
        """The term this replica leads and in which it has applied all that came before; or 0."""
        self.broken = asyncio.Event()
        self.on_applied: list[Callable[[Record], None]] = []
        self.on_forgotten: list[Callable[[str], None]] = []
        self.on_turn: Callable[[], None] = lambda: None

    # -- life ---------------------------------------------------------------------------------

    async def open(self) -> None:
        found = await self.store.open()
        self.stages = AppendLatency(self.store.stats.commits)
        blank = self.replica
        self.replica = Replica(
            blank.name,
            blank.peers,
            self._settings,
            found.log(),
            found.term,
            found.commit_index,
            found.newcomer,
        )
        self.job_table = await self._unpacked(found.jobs)
        self.applied_index = self._checkpointed_index = found.base_index
        self._checkpointed_at = self._host.clock.now()
        for entry in self._to_apply():
            self._add_to_table(entry)

    async def close(self) -> None:
        if self._closed:
            return
        self.replica.step_down()
        self.turn()
        self._closed = True
        await self.store.close()
        self.waiters.release()

    def check(self) -> None:
        """Raises when nothing can be answered any more."""
        if self._failure is not None:
            raise self.refusal()
        if self._closed:
            raise LogClosed(f"the records in {self._directory} are closed")

    def refusal(self) -> HyperscaleError:
        failure = self._failure
        assert failure is not None
        if isinstance(failure, LogFailed):
            return LogFailed(failure.directory, failure.cause)
        return RunFailed(failure.message, failure.hint)

    @property
    def failing(self) -> bool:
        return self._failure is not None

    # -- every turn ---------------------------------------------------------------------------

    def turn(self) -> None:
        replica = self.replica
        if self._failure is None and not self._closed:
            self._hand_over()
            for entry in self._to_apply():
                began = self._host.clock.now()
                self.stages.held(entry.index, began)
                self._apply(entry)
                self.stages.apply.add(self._host.clock.now() - began)
        if self.led_term and not replica.leads(self.led_term):
            self.led_term = 0
            self.pending = Pending(self._settings)
            self.stages.deposed()
            self.waiters.refuse(lambda: Deposed("leadership ended while the record was under way"))
        self.on_turn()
        self.waiters.tell_changed()

    def _hand_over(self) -> None:
        self.store.put(self.replica.take_writes(), self.replica.write)

    def _written(self, write: int) -> None:
        self.replica.written(write)
        self.waiters.tell_written(write)
        self.turn()

    def _to_apply(self) -> Iterator[Entry]:
        while self.applied_index < self.replica.applicable_index and self._failure is None:
            entry = self.replica.log.at(self.applied_index + 1)
            self.applied_index = entry.index
            yield entry

    def _apply(self, entry: Entry) -> None:
        forgotten = self._add_to_table(entry)
        if entry.record is not None:
            self._tell(self.on_applied, entry.record)
        if forgotten:
            self._tell(self.on_forgotten, entry.forgets)
        if self.led_term == entry.term:
            self.pending.applied(entry)
        elif self.replica.leads(entry.term):
            self.led_term = entry.term  # its barrier: everything before it is applied
            self.job_table.remind()
        self.waiters.tell_applied(
            entry.index, entry.term, lambda: Deposed("another leader wrote in the record's place")
        )

    def _add_to_table(self, entry: Entry) -> bool:
        """True when a job was forgotten by it."""
        if entry.record is not None:
            self.job_table.add(self._host.clock.now(), entry.record)
        return bool(entry.forgets) and self.job_table.forget(entry.forgets)

    def _tell(self, listeners: Iterable[Callable[[T], None]], what: T) -> None:
        for listener in listeners:
            try:
                listener(what)
            except Exception as error:  # noqa: BLE001 - whoever missed a record must start again
                self.fail(RunFailed(f"a listener of the job records failed: {error!r}"))

    def fail(self, failure: HyperscaleError | None) -> None:
        """For good: nothing is answered any more."""
        if self._failure is None and failure is not None:
            self._failure = failure
            self.replica.step_down()
            self.led_term = 0
            self.waiters.refuse(self.refusal)
            self.waiters.release()
            self.broken.set()

    # -- states -------------------------------------------------------------------------------

    def checkpoint_if_due(self) -> None:
        now, settings = self._host.clock.now(), self._settings
        heavy = self.replica.log.bytes >= settings.log_bytes_max
        due = settings.checkpoint.due(
            now, self._checkpointed_at, self._checkpointed_index, self.applied_index
        )
        if (due or (heavy and self.applied_index > self._checkpointed_index)) and (
            not self._checkpointing and self._failure is None and not self._closed
        ):
            self._checkpointing = True
            self._host.tasks.spawn("records checkpoint", self._checkpoint())

    async def _checkpoint(self) -> None:
        captured = self._capture()
        saved = await self.store.save(captured)
        self._checkpointing = False
        self._checkpointed_at = self._host.clock.now()
        if saved:
            self._checkpointed_index = captured.index
            log, settings = self.replica.log, self._settings
            log.drop(max(log.base_index, captured.index - settings.entries_kept))
            if log.bytes > settings.log_bytes_max // 2:
                log.drop(max(log.base_index, captured.index))

    def _capture(self) -> Captured:
        """Exactly what the writes put so far lead to."""
        self._hand_over()
        replica = self.replica
        term = replica.log.term_at(self.applied_index)
        assert term is not None
        return Captured(
            self.applied_index,
            term,
            self.job_table.capture(),
            replica.term,
            replica.commit_index,
            replica.log.after(self.applied_index),
            replica.newcomer,
        )

    async def pack(self) -> PackedState:
        """The state for another voter."""
        captured = self._capture()
        data = await Captured(captured.index, captured.index_term, captured.jobs).encode()
        return PackedState(captured.index, captured.index_term, data)

    async def replace(self, state: bytes | bytearray, wanted: Callable[[], bool]) -> None:
        """Take the state of another voter, if it is newer and still wanted when it is unpacked.
        Returns when it is on stable storage."""
        snapshot = snapshots.decode(state)
        async with self._replacing:
            job_table = await self._unpacked(snapshot.jobs)
            if not wanted() or not self.replica.install(snapshot.index, snapshot.index_term):
                return
            before, self.job_table = self.job_table, job_table
            news_after, self.applied_index = self.applied_index, snapshot.index
            saved = self.store.save(self._capture(), first=True)
            self._announce(before, news_after)
            self._checkpointed_index = snapshot.index
            await saved
            self.check()

    def _announce(self, before: JobTable, news_after: int) -> None:
        """What changed between two states, as if it had been applied one by one."""
        job_table = self.job_table
        for job_id in before.jobs():
            if job_id not in job_table or job_table.records(job_id)[0].index > news_after:
                self._tell(self.on_forgotten, job_id)  # if it is there, as another of that name
        news = [
            record
            for job_id in job_table.jobs()
            for record in job_table.records(job_id)
            if record.index > news_after
        ]
        for record in sorted(news, key=lambda record: record.index):
            self._tell(self.on_applied, record)

    async def _unpacked(self, jobs: list[msgspec.Raw]) -> JobTable:
        """Ended jobs stay for their whole time again: how long they had been waiting was another
        clock's knowledge."""
        job_table, now = JobTable(self._condense), self._host.clock.now()
        async for record in snapshots.records_of(jobs):
            job_table.add(now, record)
        return job_table
