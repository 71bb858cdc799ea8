"""The authority on keys: the table, made durable by a journal.

A reservation stands in memory before it is written, so a second submission arriving meanwhile finds
it; it counts only when it is durable. An answer is durable before anybody sees it. After a restart
the journal gives back every answer still worth keeping; reservations without an answer are settled
by whether their job exists (`settle_pending`), before the node serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from hyperscale.ledger.idempotency.key import IdempotencyKey, fingerprint
from hyperscale.ledger.idempotency.records import (
    Committed,
    KeyRecord,
    Rejected,
    Released,
    Renewed,
    Reserved,
    decode,
    encode,
)
from hyperscale.ledger.idempotency.settings import IdempotencySettings
from hyperscale.ledger.idempotency.table import (
    Entry,
    IdempotencyTable,
    Overdue,
    Ruling,
    State,
    Verdict,
)
from hyperscale.ledger.idempotency.time import LedgerTime
from hyperscale.ledger.journal import Family, Journal
from hyperscale.ledger.waiting import Waiters, promise_of
from hyperscale.runtime.host import Clock, Tasks
from hyperscale.runtime.logs import logger

AnswerOf: TypeAlias = Callable[[str], Awaitable[bytes | None]]
"""The answer to give for a job that exists; None: there is no such job."""

# Reservations settled at once after a restart: enough for a full group commit of the log.
SETTLED_AT_ONCE = 1_000
# Per record while rebuilding: forgets faster than records can add.
SWEPT_PER_RECORD = 2


@dataclass(frozen=True, slots=True)
class LedgerStats:
    entries: int
    pending: int
    committed: int
    rejected: int
    entries_max: int
    waiters: int
    lookups: int
    duplicates: int
    conflicts: int
    full: int
    overdue: int
    """Reservations found past their time, each time they were."""


class IdempotencyLedger:
    family = Family.IDEMPOTENCY

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        tasks: Tasks,
        settings: IdempotencySettings | None = None,
        scope: str = "",
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._tasks = tasks
        self._settings = settings or IdempotencySettings()
        self._scope = scope
        self._time = LedgerTime(clock)
        self._table = IdempotencyTable(self._settings)
        self._waiters: Waiters[Entry] = Waiters()
        self._held: set[bytes] = set()
        self._closing: set[bytes] = set()
        self._lsn_last = 0
        self._lookups = self._overdue = 0
        self._verdicts = dict.fromkeys(Verdict, 0)

    @property
    def settings(self) -> IdempotencySettings:
        return self._settings

    def look(self, key: IdempotencyKey) -> Entry | None:
        return self._table.look(self._now(), self._fingerprint(key))

    def stats(self) -> LedgerStats:
        return LedgerStats(
            *self._table.counts(),
            self._settings.entries_max,
            len(self._waiters),
            self._lookups,
            self._verdicts[Verdict.PENDING] + self._verdicts[Verdict.ANSWERED],
            self._verdicts[Verdict.CONFLICT],
            self._verdicts[Verdict.FULL],
            self._overdue,
        )

    def needed_from(self) -> int:
        """First record of the journal that is still needed; everything before may be compacted."""
        lsn_min = self._table.lsn_min()
        return self._lsn_last + 1 if lsn_min is None else min(lsn_min, self._lsn_last + 1)

    async def reserve(
        self, key: IdempotencyKey, job_id: str, content: bytes, source: str = ""
    ) -> Ruling:
        """NEW means: durably reserved for this caller, who must commit, reject or release."""
        mark, now_ms = fingerprint(key, self._scope), self._time.now_ms()
        ruling = self._table.reserve(now_ms / 1000, mark, key, job_id, content, self._lsn_last + 1)
        self._lookups += 1
        self._verdicts[ruling.verdict] += 1
        if ruling.verdict is not Verdict.NEW:
            return ruling
        self._held.add(mark)
        try:
            await self._write(Reserved(key, self._scope, now_ms, job_id, content, source))
        except BaseException:
            self._held.discard(mark)
            self._table.release(mark)
            self._waiters.settle(mark, None)
            raise
        return ruling

    async def answer_within(self, key: IdempotencyKey, timeout_s: float) -> Entry | None:
        """The answer of a pending key; None: none came in time, or the key was released."""
        mark = self._fingerprint(key)
        entry = self._table.look(self._now(), mark)
        if entry is None or entry.state is not State.PENDING:
            return entry
        return await self._waiters.wait(mark, timeout_s)

    async def commit(self, key: IdempotencyKey, answer: bytes) -> bool:
        """Accepted: the answer is durable, then visible. False: there was nothing to answer."""
        return await self._finish(key, Committed, answer)

    async def reject(self, key: IdempotencyKey, answer: bytes) -> bool:
        """Refused for good; a refusal that may change is a release."""
        return await self._finish(key, Rejected, answer)

    async def release(self, key: IdempotencyKey) -> bool:
        """Nothing was decided: the next submission under this key is new."""
        return await self._finish(key, None, b"")

    def let_go(self, key: IdempotencyKey) -> None:
        """Its caller is through with it. If it is still reserved, because what became of it could
        not be found out or written, the next sweep settles it by whether its job exists."""
        self._held.discard(self._fingerprint(key))

    def apply(self, lsn: int, payload: bytes) -> None:
        """A record of an earlier life."""
        record = decode(payload, lsn)
        if lsn <= self._lsn_last:
            return
        self._lsn_last = lsn
        self._time.resume(record.at_ms)
        if record.scope != self._scope:
            return
        at, mark = record.at_ms / 1000, fingerprint(record.key, record.scope)
        match record:
            case Reserved(key=key, job_id=job_id, content=content):
                self._table.restore_reserved(at, mark, key, job_id, content, lsn)
            case Renewed(key=key, job_id=job_id, content=content):
                self._table.restore_renewed(at, mark, key, job_id, content, lsn)
            case Committed(job_id=job_id, content=content, answer=answer):
                self._table.restore_answer(at, mark, State.COMMITTED, job_id, content, answer, lsn)
            case Rejected(job_id=job_id, content=content, answer=answer):
                self._table.restore_answer(at, mark, State.REJECTED, job_id, content, answer, lsn)
            case Released():
                self._table.release(mark)
        self._table.sweep(at, SWEPT_PER_RECORD)

    async def settle_pending(self, answer_of: AnswerOf) -> tuple[int, int]:
        """After a restart, before serving: commit the reservations whose job exists, release the
        others. Returns how many of each."""
        pending = [item for item in self._table.pending() if item.fingerprint not in self._held]
        committed = 0
        for start in range(0, len(pending), SETTLED_AT_ONCE):
            some = pending[start : start + SETTLED_AT_ONCE]
            committed += sum(await asyncio.gather(*(self._settle(i, answer_of) for i in some)))
        return committed, len(pending) - committed

    async def maintain(self, answer_of: AnswerOf) -> None:
        """Forget what is due, for ever; run it as a task of the host. A pass that failed is told
        and tried again: what was left is still due."""
        while True:
            await self._clock.sleep(self._settings.sweep_interval_s)
            try:
                await self.sweep(answer_of)
            except Exception as error:  # noqa: BLE001 - a sweeper that dies forgets nothing any more
                logger("ledger.idempotency").warning("sweep failed", error=str(error))

    async def sweep(self, answer_of: AnswerOf) -> None:
        """Forget everything due, with a turn for others after each slice."""
        slice_size = looked = self._settings.sweep_slice
        while looked == slice_size:
            looked, overdue = self._table.sweep(self._now(), slice_size)
            for item in overdue:
                await self._review(item, answer_of)
            await asyncio.sleep(0)

    def close(self) -> None:
        """Nobody waits any longer; what is durable stays."""
        self._waiters.settle_all(None)

    async def _review(self, item: Overdue, answer_of: AnswerOf) -> None:
        """A reservation that is being worked on goes on and is written again, so that an old
        record does not keep the whole log; one that nobody works on is settled by its job."""
        self._overdue += 1
        if item.fingerprint in self._closing:
            return
        if item.fingerprint not in self._held:
            await self._settle(item, answer_of)
            return
        now_ms = self._time.now_ms()
        record = Renewed(item.key, self._scope, now_ms, item.job_id, item.content)
        lsn = await self._write(record)
        self._table.renew(now_ms / 1000, item, lsn)

    async def _settle(self, item: Overdue, answer_of: AnswerOf) -> bool:
        answer = await answer_of(item.job_id)
        key = IdempotencyKey.parse(item.key)
        if answer is None:
            await self.release(key)
            return False
        return await self.commit(key, answer)

    async def _finish(
        self,
        key: IdempotencyKey,
        kind: type[Committed] | type[Rejected] | None,
        answer: bytes,
    ) -> bool:
        if len(answer) > self._settings.answer_bytes_max:
            raise ValueError(f"an answer of {len(answer)} bytes is too long to be kept")
        mark = self._fingerprint(key)
        entry = self._table.look(self._now(), mark)
        if entry is None or entry.state is not State.PENDING or mark in self._closing:
            return False
        self._closing.add(mark)
        now_ms = self._time.now_ms()
        record: KeyRecord = (
            Released(key, self._scope, now_ms)
            if kind is None
            else kind(key, self._scope, now_ms, entry.job_id, entry.content, answer)
        )
        name = f"{record.code.name.lower()} {key}"
        return await promise_of(self._tasks, name, lambda: self._close_key(mark, record))

    async def _close_key(self, mark: bytes, record: KeyRecord) -> bool:
        try:
            lsn = await self._write(record)
            at = record.at_ms / 1000
            match record:
                case Committed(answer=answer):
                    self._table.commit(at, mark, answer, lsn)
                case Rejected(answer=answer):
                    self._table.reject(at, mark, answer, lsn)
                case _:
                    self._table.release(mark)
            self._waiters.settle(mark, self._table.look(at, mark))
            return True
        finally:
            # After a failed write nobody knows what is on disk: the key stays pending, a duplicate
            # is told to come back, and the next start settles it.
            self._closing.discard(mark)
            self._held.discard(mark)

    async def _write(self, record: KeyRecord) -> int:
        lsn = await self._journal.append(encode(record))
        self._lsn_last = max(self._lsn_last, lsn)
        return lsn

    def _fingerprint(self, key: IdempotencyKey) -> bytes:
        return fingerprint(key, self._scope)

    def _now(self) -> float:
        return self._time.now_ms() / 1000
