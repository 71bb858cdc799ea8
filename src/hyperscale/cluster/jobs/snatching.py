"""Giving a part up: what it had reported is taken first, then the loss is recorded."""

from __future__ import annotations

from hyperscale.cluster.jobs.desk import Desk, token
from hyperscale.cluster.jobs.effects import Snatch
from hyperscale.cluster.jobs.records import PartLost, Placement


def lose(desk: Desk, now: float, placement: Placement, reason: str) -> None:
    """Take what it reported, then record the loss. A part that had ended has nothing to take."""
    job_id = placement.part.job_id
    watch = desk.watches[job_id]
    if desk.book.placement(placement.part) == placement:
        if token(placement) not in watch.snatched:
            watch.snatched[token(placement)] = reason
            desk.emit(Snatch(placement, reason))
        return
    _record_loss(desk, now, placement, 0.0, 0, b"", reason)


def snatched(
    desk: Desk, now: float, placement: Placement, at_s: float, iterations: int, result: bytes
) -> None:
    watch = desk.watches.get(placement.part.job_id)
    reason = watch.snatched.get(token(placement)) if watch else None
    if watch is None or reason is None or desk.book.placement(placement.part) != placement:
        return
    if not _record_loss(desk, now, placement, at_s, iterations, result, reason):
        del watch.snatched[token(placement)]


def _record_loss(
    desk: Desk,
    now: float,
    placement: Placement,
    at_s: float,
    iterations: int,
    result: bytes,
    reason: str,
) -> bool:
    part = placement.part
    return desk.append(
        now,
        PartLost(
            part.job_id, desk.age_s(now, part.job_id), part, placement.fence,
            placement.worker, at_s, iterations, result, reason,
        ),
    )  # fmt: skip
