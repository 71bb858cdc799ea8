"""Giving a part up: what it had reported is taken first, then the loss is recorded."""

from __future__ import annotations

from hyperscale.cluster.jobs.desk import Desk, token
from hyperscale.cluster.jobs.effects import Snatch
from hyperscale.cluster.jobs.inputs import Heard
from hyperscale.cluster.jobs.records import PartLost, Placement
from hyperscale.cluster.jobs.unheard import ANY_NUMBER, unheard

NOTHING = Heard(0.0, 0, b"")


def lose(desk: Desk, now: float, placement: Placement, reason: str) -> None:
    """Take what it reported, then record the loss. A part that had ended has nothing to take."""
    job_id = placement.part.job_id
    watch = desk.watches[job_id]
    if desk.book.placement(placement.part) == placement:
        if token(placement) not in watch.snatched:
            watch.snatched[token(placement)] = reason
            desk.emit(Snatch(placement, reason))
        return
    _record_loss(desk, now, placement, NOTHING, reason)


def snatched(desk: Desk, now: float, placement: Placement, heard: Heard) -> None:
    watch = desk.watches.get(placement.part.job_id)
    reason = watch.snatched.get(token(placement)) if watch else None
    if watch is None or reason is None or desk.book.placement(placement.part) != placement:
        return
    if not _record_loss(desk, now, placement, heard, reason):
        del watch.snatched[token(placement)]


def _record_loss(desk: Desk, now: float, placement: Placement, heard: Heard, reason: str) -> bool:
    part = placement.part
    return desk.append(
        now,
        PartLost(
            part.job_id, desk.age_s(now, part.job_id), part, placement.fence, placement.worker,
            heard.at_s, heard.iterations, heard.result, reason,
            _unheard(desk, now, placement, heard),
        ),
    )  # fmt: skip


def _unheard(desk: Desk, now: float, placement: Placement, heard: Heard) -> int:
    """It may have gone on until its worker had surely ended it."""
    workflow = desk.book.jobs[placement.part.job_id].workflows[placement.part.workflow]
    if workflow.needs.planned_s is not None or not workflow.started:
        return 0  # what goes by time leaves out what has passed
    if not heard.result and not heard.iterations:
        return ANY_NUMBER
    worker = desk.pool.workers.get(placement.worker)
    silent_s = desk.settings.reschedule_s
    if worker is not None and token(placement) in worker.load_s:  # else only leaders before heard
        reborn = placement.incarnation < worker.incarnation and not worker.owns(placement)
        heard_at = worker.former_heard_at if reborn else worker.heard_at
        untold_s = max(0.0, worker.load_s[token(placement)] - heard.at_s)
        silent_s = min(silent_s, now - heard_at) + untold_s
    own = heard.iterations / heard.at_s if heard.at_s else 0.0
    return unheard(max(own, heard.pace), silent_s)
