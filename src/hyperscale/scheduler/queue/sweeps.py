"""What the leading coordinator repairs and tidies, one record per step.

A sweep first asks an index which records may need it, then runs a step for each that looks again:
between the two anything may have happened, and a step that finds nothing to do does nothing.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.lifecycle import taken_away
from hyperscale.scheduler.queue.operations import fence, settle
from hyperscale.scheduler.queue.placement import Place, place_of, rank_at, watch_at
from hyperscale.scheduler.store.tables import DEDUPS, Kind, Records


def expire(records: Records, job_id: str, now: Instant, epoch: int) -> Job | None:
    fence(records, epoch)
    job = records.job(job_id)
    if job is None or not job.held or job.lease_until is None or job.lease_until > now:
        return None
    return settle(records, job, taken_away(job, records.token(), now), now)


def recover(records: Records, job_id: str, worker_id: str, now: Instant, epoch: int) -> Job | None:
    fence(records, epoch)
    job = records.job(job_id)
    if job is None or not job.held or job.worker != worker_id:
        return None
    return settle(records, job, taken_away(job, records.token(), now), now)


def age(records: Records, job_id: str, now: Instant, epoch: int) -> bool:
    fence(records, epoch)
    job = records.job(job_id)
    if job is None or place_of(job, now) is not Place.READY:
        return False
    rank = rank_at(job, now)
    if rank >= job.rank:
        return False
    records.put_job(job, replace(job, rank=rank), now)
    return True


def purge_job(records: Records, job_id: str, before: Instant, epoch: int) -> bool:
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


def purge(records: Records, kind: Kind[Any], key: str, before: Instant, epoch: int) -> bool:
    fence(records, epoch)
    value = records.get(kind, key)
    if value is None or kind.at is None:
        return False
    at = kind.at(value)
    if at is None or at > before:
        return False
    records.drop(kind, key)
    return True
