"""What the leading coordinator repairs and tidies, one record per step.

A sweep first asks an index which records may need it, then runs a step for each that looks again:
between the two anything may have happened, and a step that finds nothing to do does nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

from msgspec.structs import replace

from hyperscale.scheduler.instants import Instant, after
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.lifecycle import taken_away
from hyperscale.scheduler.queue.operations import fence, settle
from hyperscale.scheduler.queue.placement import Place, place_of, rank_at, watch_at
from hyperscale.scheduler.store.audit import Audit
from hyperscale.scheduler.store.ground import Ground, accepted
from hyperscale.scheduler.store.tables import (
    ATTEMPTS,
    AUDITS,
    DEDUPS,
    HISTORY,
    LETTERS,
    LOGS,
    RESULTS,
    WORKERS,
    Kind,
    Operation,
    Records,
    audit_key,
)
from hyperscale.scheduler.store.types import Keep, Purged

T = TypeVar("T")


async def expire(ground: Ground, now: Instant, limit: int, epoch: int) -> list[Job]:
    """Jobs whose lease had ended, as they are now."""
    due = await ground.due(Place.HELD, now, limit)
    return await _each(
        ground, [partial(_expire, job_id=job_id, now=now, epoch=epoch) for _, job_id in due]
    )


async def recover(
    ground: Ground, worker_id: str, now: Instant, limit: int, epoch: int
) -> list[Job]:
    """Every job the worker holds, taken away as if its lease had ended."""
    step = partial(_recover, worker_id=worker_id, now=now, epoch=epoch)
    held = await ground.held_by(worker_id, limit)
    return await _each(ground, [partial(step, job_id=job_id) for job_id in held])


async def age(ground: Ground, now: Instant, limit: int, epoch: int) -> int:
    """Betters the rank of jobs that wait too long."""
    due = await ground.due(Place.READY, now, limit)
    steps = [partial(_age, job_id=job_id, now=now, epoch=epoch) for _, job_id in due]
    return len(await _each(ground, steps))


_Sweep = Callable[[Ground, Any, Instant, int, int], Awaitable[int]]


async def _due_gone(
    ground: Ground, kind: Kind[Any], before: Instant, limit: int, epoch: int
) -> int:
    due = await ground.due(kind, before, limit)
    return await _purged(ground, kind, [key for _, key in due], before, epoch)


async def _jobs_gone(ground: Ground, done: Place, before: Instant, limit: int, epoch: int) -> int:
    due = await ground.due(done, before, limit)
    step = partial(_purge_job, before=before, epoch=epoch)
    return len(await _each(ground, [partial(step, job_id=job_id) for _, job_id in due]))


async def _audits_gone(
    ground: Ground, kind: Kind[Audit], before: Instant, limit: int, epoch: int
) -> int:
    """None behind one that stays, as one does that was written under a clock that stood ahead:
    a hole in the chain looks like tampering."""
    due = await ground.due(kind, before, limit)
    oldest = await ground.page(kind, "", "", len(due)) if due else []
    gone = takewhile(lambda row: row.at <= before, oldest)
    keys = [audit_key(row.sequence) for row in gone]
    return await _purged(ground, kind, keys, before, epoch)


async def purge(
    ground: Ground, letters_max: int, keep: Keep, now: Instant, limit: int, epoch: int
) -> Purged:
    bounds: dict[Kind[Any] | Place, tuple[float, int]] = {
        Place.DONE: (keep.job_s, keep.jobs_max),
        LOGS: (keep.log_s, keep.logs_max),
        RESULTS: (keep.result_s, keep.results_max),
        ATTEMPTS: (keep.attempt_s, keep.attempts_max),
        LETTERS: (keep.letter_s, letters_max),
        AUDITS: (keep.audit_s, keep.audits_max),
        HISTORY: (keep.history_s, keep.history_max),
    }
    sizes = dict(zip(bounds, await ground.sizes(list(bounds)), strict=True))

    async def gone(kind: Kind[Any] | Place, sweep: _Sweep = _due_gone) -> int:
        """First the old ones, then those beyond the number; each `limit` at most."""
        age_s, number_max = bounds[kind]
        count = await sweep(ground, kind, after(now, -age_s), limit, epoch)
        crowded = sizes[kind] - count - number_max
        if crowded > 0:
            count += await sweep(ground, kind, now, min(limit, crowded), epoch)
        return count

    return Purged(
        jobs=await gone(Place.DONE, _jobs_gone),
        dedups=await _due_gone(ground, DEDUPS, now, limit, epoch),
        logs=await gone(LOGS),
        attempts=await gone(ATTEMPTS),
        letters=await gone(LETTERS),
        workers=await _due_gone(ground, WORKERS, after(now, -keep.worker_s), limit, epoch),
        audits=await gone(AUDITS, _audits_gone),
        results=await gone(RESULTS),
        history=await gone(HISTORY),
    )


async def _purged(
    ground: Ground, kind: Kind[Any], keys: Sequence[str], before: Instant, epoch: int
) -> int:
    steps = [partial(_purge, kind=kind, key=key, before=before, epoch=epoch) for key in keys]
    return len(await _each(ground, steps))


async def _each(ground: Ground, steps: Sequence[Operation[T | None]]) -> list[T]:
    """What was done; a refusal (a newer leader) ends the sweep."""
    return [done for done in accepted(await ground.write(steps)) if done]


def _expire(records: Records, job_id: str, now: Instant, epoch: int) -> Job | None:
    fence(records, epoch)
    job = records.job(job_id)
    if job is None or not job.held or job.lease_until is None or job.lease_until > now:
        return None
    return _take_away(records, job, now)


def _recover(records: Records, job_id: str, worker_id: str, now: Instant, epoch: int) -> Job | None:
    fence(records, epoch)
    job = records.job(job_id)
    if job is None or not job.held or job.worker != worker_id:
        return None
    return _take_away(records, job, now)


def _take_away(records: Records, job: Job, now: Instant) -> Job:
    free = settle(records, job, taken_away(job, records.token(), now), now)
    assert not free.held, "what was taken away is nobody's"
    assert free.token > job.token, "the former holder's token is void"
    return free


def _age(records: Records, job_id: str, now: Instant, epoch: int) -> bool:
    fence(records, epoch)
    job = records.job(job_id)
    if job is None or place_of(job, now) is not Place.READY:
        return False
    rank = rank_at(job, now)
    if rank >= job.rank:
        return False
    records.put_job(job, replace(job, rank=rank), now)
    return True


def _purge_job(records: Records, job_id: str, before: Instant, epoch: int) -> bool:
    fence(records, epoch)
    job = records.job(job_id)
    if job is None or not job.ended:
        return False
    since = watch_at(job, Place.DONE)
    if since is None or since > before:
        return False
    entry = records.get(DEDUPS, job.dedup_key) if job.dedup_key else None
    records.drop_job(job)
    if entry is not None and entry.job_id == job.id:
        records.drop(DEDUPS, job.dedup_key)
    return True


def _purge(records: Records, kind: Kind[Any], key: str, before: Instant, epoch: int) -> bool:
    fence(records, epoch)
    value = records.get(kind, key)
    if value is None or kind.at is None:
        return False
    at = kind.at(value)
    if at is None or at > before:
        return False
    records.drop(kind, key)
    return True
