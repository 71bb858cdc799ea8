"""Workers come, speak, fall silent and go; their parts are kept safe from all of it.

A part is given up when its worker has not spoken to us for so long that it has surely ended its
load by itself: over TCP, which carries commands. What probes say of it changes nothing. A new
leader first gives everybody the time to report. Then what the part had reported is taken, the loss
recorded, and the part placed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hyperscale.cluster.jobs.effects import Acknowledge, Command, ForgetWorker
from hyperscale.cluster.jobs.ending import prepared
from hyperscale.cluster.jobs.health import Progress, Signals
from hyperscale.cluster.jobs.inputs import PartReport, Unwanted
from hyperscale.cluster.jobs.leader_state import LeaderState, Watch, token
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.losing import lose
from hyperscale.cluster.jobs.placing import send
from hyperscale.cluster.jobs.pool import Worker
from hyperscale.cluster.jobs.records import Part, Placement
from hyperscale.cluster.jobs.steering import remind
from hyperscale.cluster.jobs.timeouts import Idle, should_move

# -- what workers say ----------------------------------------------------------------------------


def read_reports(
    leader: LeaderState, now: float, worker: Worker, reports: Iterable[PartReport]
) -> Unwanted:
    """Learn from each; returns those nobody waits for."""
    reports = list(reports)
    unwanted = []
    moved = 0
    held = leader.replicated.by_worker.get(worker.name, {})
    # What was sent to it before it refuted its death may have reached it since.
    worker.carry(held.values(), {(report.part, report.fence) for report in reports})
    for report in reports:
        placement = held.get(report.part)
        if placement is None or placement.fence != report.fence:
            if report.state == "ended" and not _is_awaited(leader, report):
                leader.emit(Acknowledge(worker.name, report.part, report.fence))
            elif report.state != "ended":
                unwanted.append((report.part, report.fence))
            continue
        worker.misses.pop(report.part, None)
        if leader.pool.cores_done(worker, placement, report.cores_done):
            leader.placement_due = True
        watch = leader.watches[report.part.job_id]
        watch.sent.setdefault(token(placement), now)
        if report.context is not None:
            prepared(leader, report.part, report.fence, report.context)
        worker.load_s[token(placement)] = report.elapsed_s
        if report.state == "running" and report.elapsed_s > 0:
            worker.loads_since.setdefault(token(placement), now)
        else:
            worker.loads_since.pop(token(placement), None)
        if report.state in ("running", "paused", "ending"):
            moved += _running(leader, now, worker, watch, report)
        elif report.state == "ended" and leader.replicated.placement(report.part) == placement:
            watch.untold.setdefault(token(placement), now)
    _pace(leader, now, worker, held.values())
    worker.pace.moved(now, moved)
    if len(worker.counters) > 8 + 2 * len(held):
        worker.counters = {p: n for p, n in worker.counters.items() if p in held}
    if max(len(worker.done), len(worker.load_s)) > 8 + 2 * len(held):
        present = {token(placement) for placement in held.values()}
        worker.done = {about: n for about, n in worker.done.items() if about in present}
        worker.loads_since = {one: at for one, at in worker.loads_since.items() if one in present}
        worker.load_s = {one: s for one, s in worker.load_s.items() if one in present}
    if moved and not worker.extensions.excuses(now):
        worker.extensions.reset()
    return tuple(unwanted)


def _is_awaited(leader: LeaderState, report: PartReport) -> bool:
    """Its worker was lost with it, and has more to tell than was heard by then."""
    job = leader.replicated.jobs.get(report.part.job_id)
    workflow = job.workflows.get(report.part.workflow) if job and not job.is_settled else None
    part = workflow.parts.get(report.part.number) if workflow else None
    return part is not None and part.awaited(report.fence) is not None


def _running(
    leader: LeaderState, now: float, worker: Worker, watch: Watch, report: PartReport
) -> int:
    about = (report.part, report.fence)
    if about not in watch.started:
        watch.started.add(about)
        watch.is_ready(report.part, report.fence)
        remind(leader, report)
        if not _is_running(leader, report.part):  # it may be what the others wait for
            leader.touch(report.part.job_id)
    amount = 0
    if report.counter is not None:
        amount = report.counter - worker.counters.get(report.part, 0)
        worker.counters[report.part] = report.counter
    if report.idle_s >= leader.settings.stalled_s:
        watch.idle[about] = Idle(now, report.idle_s)
    elif watch.idle:
        watch.idle.pop(about, None)
    if report.idle_s >= leader.settings.stuck_s:
        leader.touch(report.part.job_id)
    job = leader.replicated.jobs[report.part.job_id]
    workflow = job.workflows[report.part.workflow]
    elapsed_s = leader.believable_s(now, report.part, report.elapsed_s)
    behind = elapsed_s - leader.load_s(now, job, workflow)
    if workflow.started and behind > 0.5:
        name = report.part.workflow
        watch.ahead_s[name] = watch.ahead_s.get(name, 0.0) + behind
    return max(0, amount)


def _is_running(leader: LeaderState, part: Part) -> bool:
    return (
        leader.replicated.jobs[part.job_id].workflows[part.workflow].lifecycle.state
        is LifecycleState.RUNNING
    )


def _pace(leader: LeaderState, now: float, worker: Worker, held: Iterable[Placement]) -> None:
    """What its parts that should move have to show."""
    moving = [one for one in held if _should_move(leader, one)]
    idle = [leader.idle_s(one) for one in moving]
    worker.pace.work(now, bool(moving))
    worker.pace.idle_s, worker.pace.frozen_s = min(idle, default=0.0), max(idle, default=0.0)


def _should_move(leader: LeaderState, placement: Placement) -> bool:
    job = leader.replicated.jobs[placement.part.job_id]
    return should_move(job, job.workflows[placement.part.workflow])


def compare(leader: LeaderState, now: float, worker: Worker, reports: Sequence[PartReport]) -> None:
    """The list is complete: what is missing was never sent by this leader, or is lost."""
    named = {(report.part, report.fence) for report in reports}
    held = leader.replicated.by_worker.get(worker.name, {})
    worker.misses = {part: n for part, n in worker.misses.items() if part in held}
    for placement in leader.placements_on(worker.name):
        if not worker.owns(placement) or token(placement) in named:
            continue
        job = leader.replicated.jobs[placement.part.job_id]
        watch = leader.watches[job.job_id]
        is_live = leader.replicated.placement(placement.part) == placement
        sent_at = watch.sent.get(token(placement))
        workflow = job.workflows[placement.part.workflow]
        if sent_at is None and is_live:
            if job.ending or workflow.is_winding_down:
                lose(leader, now, placement, f"it never reached worker {worker.name}")
            else:
                send(leader, now, job, placement)
        elif sent_at is None or now - sent_at >= leader.settings.orphan_age_s:
            misses = worker.misses.get(placement.part, 0) + 1
            worker.misses[placement.part] = misses
            if misses >= leader.settings.orphan_misses:
                lose(leader, now, placement, f"orphaned: worker {worker.name} does not hold it")


# -- who is gone ---------------------------------------------------------------------------------


def check_worker(leader: LeaderState, now: float, worker: Worker) -> None:
    limits = leader.settings
    _pace(leader, now, worker, leader.placements_on(worker.name))
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


def left(leader: LeaderState, now: float, worker: Worker) -> None:
    for placement in leader.placements_on(worker.name):
        lose(leader, now, placement, f"worker {worker.name} left")
    forget(leader, worker)
