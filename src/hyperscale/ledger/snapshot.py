"""Jobs and keys of a node as the state of one checkpoint.

Jobs are written out; keys are not, because within minutes all they stand on is written anew: the
checkpoint reaches back to the oldest record a key still needs, and that part of the log is read
again. Jobs know which records they hold, so reading some of them twice changes nothing.
"""

from __future__ import annotations

import asyncio

import msgspec

from hyperscale.ledger.idempotency import IdempotencyLedger
from hyperscale.ledger.jobs import JobLedger
from hyperscale.ledger.journal import NEWER_HINT, UnreadableRecord

VERSION = 1
JOBS_AT_ONCE = 100
"""Written out before other work gets its turn: a few milliseconds of long histories."""


class _Snapshot(msgspec.Struct, frozen=True, array_like=True):
    version: int
    jobs_lsn: int
    jobs: list[bytes]


_decode = msgspec.msgpack.Decoder(_Snapshot).decode


async def take_snapshot(jobs: JobLedger, keys: IdempotencyLedger) -> tuple[int, bytes]:
    """The LSN after which the log must be read again, and the state to put beside it."""
    jobs_lsn = jobs.applied_lsn
    lsn = min(jobs_lsn, keys.needed_from() - 1)
    pieces: list[bytes] = []
    for piece in jobs.pieces():
        pieces.append(piece)
        if len(pieces) % JOBS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return lsn, msgspec.msgpack.encode(_Snapshot(VERSION, jobs_lsn, pieces))


async def restore_snapshot(jobs: JobLedger, state: bytes) -> None:
    """Before the log is opened after the checkpoint's LSN, with both ledgers taking its records."""
    try:
        snapshot = _decode(state)
    except msgspec.DecodeError as error:
        raise UnreadableRecord(f"the checkpoint is not one of jobs: {error}.") from None
    if snapshot.version != VERSION:
        raise UnreadableRecord(f"the checkpoint has version {snapshot.version}.", NEWER_HINT)
    for number, piece in enumerate(snapshot.jobs):
        jobs.restore(piece)
        if number % JOBS_AT_ONCE == 0:
            await asyncio.sleep(0)
    jobs.resume_after(snapshot.jobs_lsn)
