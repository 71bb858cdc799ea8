"""Workers come, report, fall silent and go; their parts are kept safe from all of it.

A part is given up when its worker has not spoken to us for so long that it has surely ended its
load by itself: over TCP, which carries commands. What probes say of it changes nothing. A new
leader first gives everybody the time to report. Then what the part had reported is collected, the
loss recorded, and the part placed again.
"""

from __future__ import annotations

from hyperscale.cluster.jobs.effects import Command, ForgetWorker
from hyperscale.cluster.jobs.events import (
    ExtensionAsked,
    Grant,
    WorkerAlive,
    WorkerAnswered,
    WorkerDied,
    WorkerLeft,
    WorkerListed,
    WorkerReached,
    WorkerRegistered,
    WorkerReported,
    WorkerUnreached,
)
from hyperscale.cluster.jobs.health import Progress, Signals
from hyperscale.cluster.jobs.leader_state import LeaderState, token
from hyperscale.cluster.jobs.losing import lose
from hyperscale.cluster.jobs.pool import Worker
from hyperscale.cluster.jobs.records import Extended, Placement
from hyperscale.cluster.jobs.reports import compare, read_reports, update_pace

# -- events --------------------------------------------------------------------------------------


def registered(leader: LeaderState, now: float, event: WorkerRegistered) -> bool:
    worker, reports = event.worker, event.reports
    known = None
    if leader.leading:
        named = {(report.part, report.fence) for report in reports}
        known = leader.pool.register(
            now,
            worker,
            event.incarnation,
            event.total,
            event.free,
            event.draining,
            named,
            event.life,
        )
    if known is None:
        leader.answer(())
        return False
    known.deaf = event.cut_off
    leader.answer(read_reports(leader, now, known, reports))
    untold = {report.part.job_id for report in reports if report.state == "ended"}
    leader.heard_of(now, worker, untold)
    compare(leader, now, known, reports)
    check_worker(leader, now, known)
    leader.placement_due = True
    return True


def reported(leader: LeaderState, now: float, event: WorkerReported) -> bool:
    known = _in_this_life(leader, event.worker, event.incarnation)
    if known is None:
        leader.answer(None)
        return False
    stalled_s = leader.settings.stalled_s
    was_frozen = known.pace.frozen_s >= stalled_s
    was_lost = leader.pool.is_lost(now, known)
    has_more_room = leader.pool.heard(
        now, known, event.free, event.draining, event.degraded, event.cpu
    )
    if has_more_room or was_lost:
        leader.placement_due = True
    leader.answer(read_reports(leader, now, known, event.reports))
    if was_lost or was_frozen or known.pace.frozen_s >= stalled_s:
        check_worker(leader, now, known)
    return True


def answered(leader: LeaderState, now: float, event: WorkerAnswered) -> bool:
    known = leader.pool.workers.get(event.worker)
    if known is not None:
        known.heard_at = now
    return False


def listed(leader: LeaderState, now: float, event: WorkerListed) -> bool:
    known = _in_this_life(leader, event.worker, event.incarnation)
    if known is None:
        leader.answer(())
        return False
    leader.answer(read_reports(leader, now, known, event.reports))
    compare(leader, now, known, event.reports)
    check_worker(leader, now, known)
    return True


def died(leader: LeaderState, now: float, event: WorkerDied) -> bool:
    known = _known(leader, event.worker)
    if known is not None and known.incarnation <= event.incarnation and known.dead_at is None:
        known.dead_at = now
        check_worker(leader, now, known)
    return True


def alive(leader: LeaderState, now: float, event: WorkerAlive) -> bool:
    known = _known(leader, event.worker)
    if known is not None and known.incarnation == event.incarnation and known.dead_at is not None:
        known.dead_at = None
        check_worker(leader, now, known)
        leader.placement_due = True
    return True


def reached(leader: LeaderState, now: float, event: WorkerReached) -> bool:
    known = _known(leader, event.worker)
    if known is None or known.unreached_since is None:
        return False
    known.unreached_since = known.refused_at = None
    check_worker(leader, now, known)
    leader.placement_due = True
    return True


def unreached(leader: LeaderState, now: float, event: WorkerUnreached) -> bool:
    known = _known(leader, event.worker)
    if known is None:
        return False
    if known.unreached_since is None:
        known.unreached_since = now
    if not event.refused:
        known.refused_at = None
    elif known.refused_at is None:
        known.refused_at = now
    check_worker(leader, now, known)
    return True


def left(leader: LeaderState, now: float, event: WorkerLeft) -> bool:
    known = _known(leader, event.worker)
    if known is not None and known.incarnation <= event.incarnation:
        for placement in leader.placements_on(known.name):
            lose(leader, now, placement, f"worker {known.name} left")
        forget(leader, known)
    return True


def extension_asked(leader: LeaderState, now: float, event: ExtensionAsked) -> bool:
    worker, known = event.worker, _known(leader, event.worker)
    if known is None or not known.registered:
        leader.answer(Grant(False, denial="unknown worker: register first"))
        return False
    grant = known.extensions.ask(now, event.progress, suspect=known.dead_at is not None)
    leader.answer(grant)
    for job_id in sorted({p.part.job_id for p in leader.placements_on(worker)}):
        leader.log(job_id, "extension", worker=worker, reason=event.reason, granted=grant.granted)
        if grant.granted:
            age = leader.age_s(now, job_id)
            leader.append(now, Extended(job_id, age, worker, grant.seconds))
    check_worker(leader, now, known)
    return True


def _known(leader: LeaderState, name: str) -> Worker | None:
    return leader.pool.workers.get(name) if leader.leading else None


def _in_this_life(leader: LeaderState, name: str, incarnation: int) -> Worker | None:
    known = _known(leader, name)
    if known is None or not known.registered or known.incarnation != incarnation:
        return None
    return known


# -- who is gone ---------------------------------------------------------------------------------


def check_worker(leader: LeaderState, now: float, worker: Worker) -> None:
    limits = leader.settings
    update_pace(leader, now, worker, leader.placements_on(worker.name))
    signals = leader.pool.signals(now, worker)
    leader.health.update(now, worker.name, signals)
    again: list[float] = []
    for placement in leader.placements_on(worker.name):
        if not worker.registered:
            continue  # a new leader: only the worker knows what it took into a later incarnation
        if placement.incarnation < worker.incarnation and not worker.owns(placement):
            at = worker.former_heard_at + limits.reschedule_s
            if worker.has_lost(placement) or now >= at:
                lose(leader, now, placement, f"worker {worker.name} restarted")
            else:
                again.append(at)
        again += _untold(leader, now, placement)
    if signals.may_evict:
        verdict = leader.health.should_evict(now, worker.name)
        if verdict.evict:
            _evict(leader, now, worker, signals)
        elif verdict.again_at is not None:
            again.append(verdict.again_at)
            leader.log(
                "", "eviction_held", "warning", worker=worker.name, failing=verdict.correlated
            )
    if signals.live and signals.progress is not Progress.STUCK:
        _take_frozen(leader, now, worker)
    if not signals.live and not leader.placements_on(worker.name):
        if now >= worker.heard_at + limits.dead_worker_kept_s:
            forget(leader, worker)
            return
        again.append(worker.heard_at + limits.dead_worker_kept_s)
    elif signals.live:
        again += _watch_for(leader, now, worker)
    again = [at for at in again if at > now]
    leader.deadlines.set(("worker", worker.name), min(again, default=None))


def _untold(leader: LeaderState, now: float, placement: Placement) -> list[float]:
    """By its worker's word it makes no load any more, but how it ended does not arrive: the worker
    hears none of our answers. It tells an end again after 5 s at most; returns when to look."""
    since = leader.watches[placement.part.job_id].untold.get(token(placement))
    if since is None or leader.replicated.placement(placement.part) != placement:
        return []
    if now >= since + leader.settings.reschedule_s:
        lose(leader, now, placement, f"worker {placement.worker} could not tell how it ended")
    return [since + leader.settings.reschedule_s]


def _watch_for(leader: LeaderState, now: float, worker: Worker) -> list[float]:
    limits = leader.settings
    again = [leader.pool.silent_at(worker), leader.pool.gone_at(worker)]
    if worker.unreached_since is not None:
        again.append(worker.unreached_since + limits.unreached_s)
    if leader.placements_on(worker.name):
        again += [at for at in (worker.extensions.until, worker.extensions.evict_at()) if at]
    return again


def _evict(leader: LeaderState, now: float, worker: Worker, signals: Signals) -> None:
    if not signals.live:
        why = f"worker {worker.name} {_fate(worker)}"
    elif signals.progress is Progress.STUCK:
        why = f"worker {worker.name} made no progress for {worker.pace.idle_s:.0f} s"
    else:
        why = f"worker {worker.name} has used up its extensions"
    for placement in leader.placements_on(worker.name):
        if worker.owns(placement) or not worker.registered:
            if signals.live:
                leader.emit(Command(placement, "cancel", reason=why))
            lose(leader, now, placement, why)


def _fate(worker: Worker) -> str:
    if worker.dead_at is not None:
        return "died"
    return "was cut off" if worker.registered else "did not come back"


def _take_frozen(leader: LeaderState, now: float, worker: Worker) -> None:
    """A part that stands still beside others that do not is moved alone."""
    limits = leader.settings
    if worker.extensions.excuses(now):
        return
    for placement in leader.placements_on(worker.name):
        idle_s = leader.idle_s(placement)
        if idle_s >= limits.stuck_s + limits.stuck_evict_s:
            why = f"it made no progress on worker {worker.name} for {idle_s:.0f} s"
            leader.emit(Command(placement, "cancel", reason=why))
            lose(leader, now, placement, why)


def forget(leader: LeaderState, worker: Worker) -> None:
    leader.pool.workers.pop(worker.name, None)
    leader.health.remove(worker.name)
    leader.deadlines.set(("worker", worker.name), None)
    leader.emit(ForgetWorker(worker.name))
