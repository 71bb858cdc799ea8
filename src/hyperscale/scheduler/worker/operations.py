"""The registry of workers."""

from __future__ import annotations

from hyperscale.scheduler.errors import NotFound, StoreFull
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.store.tables import WORKERS, Records
from hyperscale.scheduler.store.types import StoreLimits
from hyperscale.scheduler.worker.registration import (
    Worker,
    WorkerBeat,
    WorkerEvent,
    beaten,
    moved,
    registered,
)


def register(
    records: Records, worker: Worker, now: Instant, alive_for_s: float, limits: StoreLimits
) -> Worker:
    known = records.get(WORKERS, worker.id)
    if known is None and records.count(WORKERS) >= limits.workers_max:
        raise StoreFull("workers", limits.workers_max)
    worker = registered(known, worker, records.token(), now, alive_for_s)
    records.put(WORKERS, worker.id, worker)
    return worker


def beat(records: Records, said: WorkerBeat, now: Instant) -> Worker:
    known = _existing(records, said.worker_id)
    worker = beaten(known, said, now)
    if worker is not known:
        records.put(WORKERS, worker.id, worker)
    return worker


def move(records: Records, worker_id: str, event: WorkerEvent) -> Worker:
    worker = moved(_existing(records, worker_id), event)
    records.put(WORKERS, worker.id, worker)
    return worker


def remove(records: Records, worker_id: str) -> None:
    _existing(records, worker_id)
    records.drop(WORKERS, worker_id)


def _existing(records: Records, worker_id: str) -> Worker:
    worker = records.get(WORKERS, worker_id)
    if worker is None:
        raise NotFound("worker", worker_id)
    return worker
