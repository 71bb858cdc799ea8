"""Claims, where everybody wants the same jobs: rows that others have locked are skipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from hyperscale.scheduler.errors import StaleLeader
from hyperscale.scheduler.instants import Instant, after
from hyperscale.scheduler.queue.lifecycle import AVOID_S, claimed, started
from hyperscale.scheduler.queue.operations import EPOCH_KEY
from hyperscale.scheduler.queue.placement import BOOST_AGE, Place, lane_fits
from hyperscale.scheduler.store import codec
from hyperscale.scheduler.store.postgres.committing import TOKENS, UPDATE
from hyperscale.scheduler.store.postgres.connecting import Connection
from hyperscale.scheduler.store.postgres.records import updated
from hyperscale.scheduler.store.tables import EPOCHS, WORKERS
from hyperscale.scheduler.store.types import BATCH_MAX, Claim, Taken
from hyperscale.scheduler.worker.registration import CLOSED

_KNOWN: Final = (
    f"SELECT kind, data FROM records WHERE (kind = '{EPOCHS.name}' AND key = '{EPOCH_KEY}')"
    f" OR (kind = '{WORKERS.name}' AND key = $1) ORDER BY kind FOR SHARE"
)
# A delayed job has its submitted priority (ageing begins when it is ready), hence the plain sum.
_PROMOTE: Final = (
    f"UPDATE jobs SET place = {Place.READY:d},"
    f" at = CASE WHEN rank > 0 THEN greatest(due_at, created_at) + {BOOST_AGE} END"
    f" WHERE id IN (SELECT id FROM jobs WHERE place = {Place.DELAYED:d} AND at <= $1"
    " AND at IS NOT NULL ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)"
)
# From lane to lane along the index, without looking at the jobs between.
_LANES: Final = """
WITH RECURSIVE lanes (lane) AS (
  (SELECT lane FROM jobs WHERE place = 2 ORDER BY lane LIMIT 1)
  UNION ALL
  SELECT (SELECT jobs.lane FROM jobs WHERE place = 2 AND jobs.lane > lanes.lane
          ORDER BY jobs.lane LIMIT 1)
  FROM lanes WHERE lane IS NOT NULL
) SELECT lane FROM lanes WHERE lane IS NOT NULL
"""
_ORDER: Final = "ORDER BY rank, due_at, created_at, id"
_FITS: Final = "place = 2 AND lane = {lane} AND NOT (avoid = $2 AND due_at > $3)"
_ONE_LANE: Final = (
    f"SELECT id, head, run FROM jobs WHERE {_FITS.format(lane='$1')} {_ORDER} LIMIT $4"
    " FOR UPDATE SKIP LOCKED"
)
# The first of each lane, then those of them that nobody else is about to take. What a claim finds
# locked it leaves: those before it in the order go to somebody else anyway.
_LANES_HEADS: Final = (
    "SELECT heads.id FROM unnest($1::text[]) AS lanes (lane) CROSS JOIN LATERAL"
    f" (SELECT rank, due_at, created_at, id FROM jobs WHERE {_FITS.format(lane='lanes.lane')}"
    f" {_ORDER} LIMIT $4) AS heads {_ORDER} LIMIT $4"
)
_THESE: Final = (
    f"SELECT id, head, run FROM jobs WHERE id = ANY($1) AND place = 2 {_ORDER}"
    " FOR UPDATE SKIP LOCKED"
)


async def take(connection: Connection, claim: Claim, now: Instant, promote_max: int) -> Taken:
    """Within a transaction. As `queue.operations.take`. Raises StaleLeader."""
    if (claim.epoch or claim.limit) and not await _admitted(connection, claim):
        return Taken(await _promoted(connection, now, promote_max), [])
    promoted = await _promoted(connection, now, promote_max)
    if not claim.limit:
        return Taken(promoted, [])
    rows = await _locked(connection, claim, now, min(claim.limit, BATCH_MAX))
    if not rows:
        return Taken(promoted, [])
    tokens = await connection.fetch(TOKENS, len(rows))
    jobs = []
    for (_, head, run), (token,) in zip(rows, tokens, strict=True):
        job = codec.decode_job(head, run)
        assert not job.held, "a ready job is nobody's"
        mine = claimed(job, claim.worker, token, now, claim.lease_s)
        jobs.append(started(mine, now, claim.lease_s) if claim.start else mine)
    written = [updated(job, Place.HELD) for job in jobs]
    await connection.execute(UPDATE, *map(list, zip(*written, strict=True)))
    return Taken(promoted, jobs)


async def _admitted(connection: Connection, claim: Claim) -> bool:
    known: dict[str, Any] = dict(await connection.fetch(_KNOWN, claim.worker))
    if claim.epoch:
        data = known.get(EPOCHS.name)
        current = 0 if data is None else msgspec.msgpack.decode(data, type=int)
        if claim.epoch < current:
            raise StaleLeader(claim.epoch, current)
    worker = known.get(WORKERS.name)
    return worker is None or codec.decode(WORKERS, worker).state not in CLOSED


async def _promoted(connection: Connection, now: Instant, limit: int) -> int:
    tag: str = await connection.execute(_PROMOTE, now, limit)
    return int(tag.rpartition(" ")[2])


async def _locked(connection: Connection, claim: Claim, now: Instant, limit: int) -> Sequence[Any]:
    kinds, capabilities = frozenset(claim.kinds), frozenset(claim.capabilities)
    found = await connection.fetch(_LANES)
    lanes = [lane for (lane,) in found if lane_fits(lane, kinds, capabilities)]
    avoided = after(now, -AVOID_S)
    if not lanes:
        return ()
    if len(lanes) == 1:
        rows: Sequence[Any] = await connection.fetch(
            _ONE_LANE, lanes[0], claim.worker, avoided, limit
        )
        return rows
    heads = await connection.fetch(_LANES_HEADS, lanes, claim.worker, avoided, limit)
    taken = list(await connection.fetch(_THESE, [job_id for (job_id,) in heads]))
    for lane in lanes:  # others were faster at the heads
        if len(taken) == len(heads) or len(taken) >= limit:
            break
        mine = {row["id"] for row in taken}
        more = await connection.fetch(_ONE_LANE, lane, claim.worker, avoided, limit)
        taken += [row for row in more if row["id"] not in mine][: limit - len(taken)]
    return taken
