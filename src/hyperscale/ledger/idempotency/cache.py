"""A gate's memory of answers: saves a trip to the manager, decides nothing.

The same table as the ledger's, without a journal. Because the manager decides, this one may forget:
it makes room by dropping the answer that would end next, and a reservation that got no answer in
time. It never drops a reservation to make room, nor remembers a transient refusal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hyperscale.ledger.idempotency.key import IdempotencyKey, fingerprint
from hyperscale.ledger.idempotency.settings import IdempotencySettings
from hyperscale.ledger.idempotency.submission import (
    STILL_PENDING,
    Answer,
    Kind,
    known_answer,
)
from hyperscale.ledger.idempotency.table import Entry, IdempotencyTable, Ruling, Verdict
from hyperscale.ledger.waiting import Waiters
from hyperscale.runtime.host import Clock


@dataclass(frozen=True, slots=True)
class CacheStats:
    total_entries: int
    pending_count: int
    committed_count: int
    rejected_count: int
    pending_waiters: int
    max_entries: int
    lookups: int
    hits: int
    """Many hits of all lookups: clients retry aggressively."""
    evictions: int
    """Rising: `entries_max` is too low."""
    pending_timeouts: int


class GateCache:
    def __init__(self, clock: Clock, settings: IdempotencySettings | None = None) -> None:
        self._clock = clock
        self._settings = settings or IdempotencySettings()
        self._table = IdempotencyTable(self._settings)
        self._waiters: Waiters[Entry] = Waiters()
        self._lookups = self._hits = self._evictions = self._timeouts = 0

    def __len__(self) -> int:
        return len(self._table)

    def get(self, key: IdempotencyKey) -> Entry | None:
        return self._table.look(self._clock.now(), fingerprint(key))

    def stats(self) -> CacheStats:
        return CacheStats(
            *self._table.counts(),
            len(self._waiters),
            self._settings.entries_max,
            self._lookups,
            self._hits,
            self._evictions,
            self._timeouts,
        )

    def check_or_insert(self, key: IdempotencyKey, job_id: str, content: bytes) -> Ruling:
        """One step without a pause, so atomic on the event loop."""
        now, mark = self._clock.now(), fingerprint(key)
        ruling = self._table.reserve(now, mark, key, job_id, content)
        if ruling.verdict is Verdict.FULL and self._table.evict(now):
            self._evictions += 1
            ruling = self._table.reserve(now, mark, key, job_id, content)
        self._lookups += 1
        self._hits += ruling.verdict in (Verdict.PENDING, Verdict.ANSWERED)
        return ruling

    async def through(
        self,
        key: IdempotencyKey | None,
        content: bytes,
        job_id: str,
        forward: Callable[[], Awaitable[Answer]],
    ) -> Answer:
        """Answer from memory, or forward to the manager and remember a final answer. Raises what
        `forward` raised: a retry goes through at once, for the manager to decide."""
        if key is None:
            return await forward()
        ruling = self.check_or_insert(key, job_id, content)
        if ruling.verdict is Verdict.NEW:
            return await self._forward(key, forward)
        if ruling.verdict is Verdict.FULL:
            return await forward()
        known = known_answer(ruling, job_id)
        if known is not None:
            return known
        entry = await self._waiters.wait(fingerprint(key), self._settings.pending_wait_s)
        if entry is not None:
            return Answer.of(entry)
        self._timeouts += 1
        return Answer(Kind.RETRYABLE, job_id, reason=STILL_PENDING, duplicate=True)

    def settle(self, key: IdempotencyKey, answer: Answer) -> bool:
        """Remember a final answer, drop the reservation of any other; wake who waits. The job is
        the manager's: it may have known the key from another gate."""
        now, mark = self._clock.now(), fingerprint(key)
        match answer.kind:
            case Kind.ACCEPTED:
                done = self._table.commit(now, mark, answer.answer, job_id=answer.job_id)
            case Kind.REJECTED:
                done = self._table.reject(now, mark, answer.answer, job_id=answer.job_id)
            case _:
                done = self._table.release(mark)
        self._waiters.settle(mark, self._table.look(now, mark) if done else None)
        return done

    async def maintain(self) -> None:
        """Forget what is due, for ever; run it as a task of the host."""
        while True:
            await self._clock.sleep(self._settings.sweep_interval_s)
            await self.sweep()

    async def sweep(self) -> None:
        slice_size = looked = self._settings.sweep_slice
        while looked == slice_size:
            looked, overdue = self._table.sweep(self._clock.now(), slice_size)
            for item in overdue:
                self._table.expire(item.fingerprint)
                self._waiters.settle(item.fingerprint, None)
            await asyncio.sleep(0)

    def close(self) -> None:
        self._waiters.settle_all(None)

    async def _forward(
        self, key: IdempotencyKey, forward: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        answer = Answer(Kind.RETRYABLE, "")
        try:
            answer = await forward()
            return answer
        finally:
            self.settle(key, answer)
