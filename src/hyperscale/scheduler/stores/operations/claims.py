"""Taking jobs from the queue, for stores whose steps exclude each other."""

from __future__ import annotations

from typing import Final

from hyperscale.scheduler.model.instants import Instant, after
from hyperscale.scheduler.model.job import Job
from hyperscale.scheduler.policies.lifecycle import AVOID_S, claimed, started
from hyperscale.scheduler.stores.contract import BATCH_MAX, Claim
from hyperscale.scheduler.stores.operations.settle import fence
from hyperscale.scheduler.stores.placement import lane_fits
from hyperscale.scheduler.stores.records import Queue

PROMOTE_PER_CLAIM: Final = 100
"""A claim promotes on its way, but a burst of due jobs is the sweep's to move (S-41)."""

AVOID_SCAN: Final = 32
"""So many candidates more are looked at, in case the first ones avoid this worker."""


def promote(queue: Queue, now: Instant, limit: int, epoch: int) -> int:
    fence(queue, epoch)
    return queue.promote(now, limit)


def claim(queue: Queue, wanted: Claim, now: Instant) -> list[Job]:
    fence(queue, wanted.epoch)
    queue.promote(now, PROMOTE_PER_CLAIM)
    limit = min(wanted.limit, BATCH_MAX)
    taken: list[Job] = []
    kinds, capabilities = frozenset(wanted.kinds), frozenset(wanted.capabilities)
    fitting = queue.ready(lambda lane: lane_fits(lane, kinds, capabilities), limit + AVOID_SCAN)
    for job in fitting:
        if len(taken) == limit:
            break
        if job.avoid_worker == wanted.worker and after(job.due_at, AVOID_S) > now:
            continue
        mine = claimed(job, wanted.worker, queue.token(), now, wanted.lease_s)
        if wanted.start:
            mine = started(mine, now, wanted.lease_s)
        queue.put_job(job, mine, now)
        taken.append(mine)
    return taken
