"""What the leading coordinator repairs and tidies, one record per step.

A sweep first asks an index which records may need it, then runs a step for each that looks again:
between the two anything may have happened, and a step that finds nothing to do does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

from msgspec.structs import replace

from hyperscale.scheduler.instants import Instant, after
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.lifecycle import taken_away
from hyperscale.scheduler.queue.operations import fence, settle
from hyperscale.scheduler.queue.placement import Place, place_of, rank_at, watch_at
from hyperscale.scheduler.store.ground import Ground, accepted
from hyperscale.scheduler.store.tables import (
    ATTEMPTS,
    AUDITS,
    DEDUPS,
    LETTERS,
    LOGS,
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


async def purge(
    ground: Ground, letters_max: int, keep: Keep, now: Instant, limit: int, epoch: int
) -> Purged:
    async def gone(kind: Kind[Any], before: Instant, at_most: int = limit) -> int:
        due = await ground.due(kind, before, at_most) if at_most > 0 else []
        return await _purged(ground, kind, [key for _, key in due], before, epoch)

    before = after(now, -keep.job_s)
    due = await ground.due(Place.DONE, before, limit)
    ended = await _each(
        ground, [partial(_purge_job, job_id=i, before=before, epoch=epoch) for _, i in due]
    )
    crowded = max(0, await ground.step(lambda records: records.count(LETTERS)) - letters_max)
    return Purged(
        jobs=len(ended),
        dedups=await gone(DEDUPS, now),
        logs=await gone(LOGS, after(now, -keep.log_s)),
        attempts=await gone(ATTEMPTS, after(now, -keep.attempt_s)),
        letters=await gone(LETTERS, after(now, -keep.letter_s))
        + await gone(LETTERS, now, min(limit, crowded)),
        workers=await gone(WORKERS, after(now, -keep.worker_s)),
        audits=await _purge_audits(ground, after(now, -keep.audit_s), limit, epoch),
    )


async def _purge_audits(ground: Ground, before: Instant, limit: int, epoch: int) -> int:
    """None behind one that stays, as one does that was written under a clock that stood ahead:
    a hole in the chain looks like tampering."""
    due = await ground.due(AUDITS, before, limit)
    oldest = await ground.page(AUDITS, "", "", len(due)) if due else []
    gone = takewhile(lambda row: row.at <= before, oldest)
    return await _purged(ground, AUDITS, [audit_key(row.sequence) for row in gone], before, epoch)


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
    return settle(records, job, taken_away(job, records.token(), now), now)


def _recover(records: Records, job_id: str, worker_id: str, now: Instant, epoch: int) -> Job | None:
    fence(records, epoch)
    job = records.job(job_id)
    if job is None or not job.held or job.worker != worker_id:
        return None
    return settle(records, job, taken_away(job, records.token(), now), now)


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
