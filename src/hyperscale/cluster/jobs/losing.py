"""Workers come, speak, fall silent and go; their parts are kept safe from all of it.

A part is given up when its worker has not spoken to us for so long that it has surely ended its
load by itself: over TCP, which carries commands. What probes say of it changes nothing. A new
leader first gives everybody the time to report. Then what the part had reported is taken, the loss
recorded, and the part placed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hyperscale.cluster.jobs.desk import Desk, Watch, token
from hyperscale.cluster.jobs.effects import Acknowledge, Command, Gone
from hyperscale.cluster.jobs.ending import prepared
from hyperscale.cluster.jobs.health import Progress, Signals
from hyperscale.cluster.jobs.inputs import PartReport, Unwanted
from hyperscale.cluster.jobs.lifecycle import State
from hyperscale.cluster.jobs.placing import send
from hyperscale.cluster.jobs.pool import Worker
from hyperscale.cluster.jobs.records import (
    Failed,
    GivenUp,
    Part,
    Placement,
    Returned,
)
from hyperscale.cluster.jobs.rehousing import RESUME_WORTH_S, can_move, squeeze_at
from hyperscale.cluster.jobs.snatching import lose
from hyperscale.cluster.jobs.state import JobState, PartState, WorkflowState
from hyperscale.cluster.jobs.steering import remind
from hyperscale.cluster.jobs.timeouts import Idle, should_move

# -- what workers say ----------------------------------------------------------------------------


def read_reports(desk: Desk, now: float, worker: Worker, reports: Iterable[PartReport]) -> Unwanted:
    """Learn from each; returns those nobody waits for."""
    reports = list(reports)
    unwanted = []
    moved = 0
    held = desk.book.by_worker.get(worker.name, {})
    # What was sent to it before it refuted its death may have reached it since.
    worker.carry(held.values(), {(report.part, report.fence) for report in reports})
    for report in reports:
        placement = held.get(report.part)
        if placement is None or placement.fence != report.fence:
            if report.state == "ended" and not _is_awaited(desk, report):
                desk.emit(Acknowledge(worker.name, report.part, report.fence))
            elif report.state != "ended":
                unwanted.append((report.part, report.fence))
            continue
        worker.misses.pop(report.part, None)
        if desk.pool.cores_done(worker, placement, report.cores_done):
            desk.hungry = True
        watch = desk.watches[report.part.job_id]
        watch.sent.setdefault(token(placement), now)
        if report.context is not None:
            prepared(desk, report.part, report.fence, report.context)
        worker.load_s[token(placement)] = report.elapsed_s
        if report.state == "running" and report.elapsed_s > 0:
            worker.loads_since.setdefault(token(placement), now)
        else:
            worker.loads_since.pop(token(placement), None)
        if report.state in ("running", "paused", "ending"):
            moved += _running(desk, now, worker, watch, report)
        elif report.state == "ended" and desk.book.placement(report.part) == placement:
            watch.untold.setdefault(token(placement), now)
    _pace(desk, now, worker, held.values())
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


def _is_awaited(desk: Desk, report: PartReport) -> bool:
    """Its worker was lost with it, and has more to tell than was heard by then."""
    job = desk.book.jobs.get(report.part.job_id)
    workflow = job.workflows.get(report.part.workflow) if job and not job.is_settled else None
    part = workflow.parts.get(report.part.number) if workflow else None
    return part is not None and part.awaited(report.fence) is not None


def _running(desk: Desk, now: float, worker: Worker, watch: Watch, report: PartReport) -> int:
    about = (report.part, report.fence)
    if about not in watch.started:
        watch.started.add(about)
        watch.is_ready(report.part, report.fence)
        remind(desk, report)
        if not _is_running(desk, report.part):  # it may be what the others wait for
            desk.touch(report.part.job_id)
    amount = 0
    if report.counter is not None:
        amount = report.counter - worker.counters.get(report.part, 0)
        worker.counters[report.part] = report.counter
    if report.idle_s >= desk.settings.stalled_s:
        watch.idle[about] = Idle(now, report.idle_s)
    elif watch.idle:
        watch.idle.pop(about, None)
    if report.idle_s >= desk.settings.stuck_s:
        desk.touch(report.part.job_id)
    job = desk.book.jobs[report.part.job_id]
    workflow = job.workflows[report.part.workflow]
    elapsed_s = desk.believable_s(now, report.part, report.elapsed_s)
    behind = elapsed_s - desk.load_s(now, job, workflow)
    if workflow.started and behind > 0.5:
        name = report.part.workflow
        watch.ahead_s[name] = watch.ahead_s.get(name, 0.0) + behind
    return max(0, amount)


def _is_running(desk: Desk, part: Part) -> bool:
    return desk.book.jobs[part.job_id].workflows[part.workflow].lifecycle.state is State.RUNNING


def _pace(desk: Desk, now: float, worker: Worker, held: Iterable[Placement]) -> None:
    """What its parts that should move have to show."""
    moving = [one for one in held if _should_move(desk, one)]
    idle = [desk.idle_s(one) for one in moving]
    worker.pace.work(now, bool(moving))
    worker.pace.idle_s, worker.pace.frozen_s = min(idle, default=0.0), max(idle, default=0.0)


def _should_move(desk: Desk, placement: Placement) -> bool:
    job = desk.book.jobs[placement.part.job_id]
    return should_move(job, job.workflows[placement.part.workflow])


def compare(desk: Desk, now: float, worker: Worker, reports: Sequence[PartReport]) -> None:
    """The list is complete: what is missing was never sent by this leader, or is lost."""
    named = {(report.part, report.fence) for report in reports}
    held = desk.book.by_worker.get(worker.name, {})
    worker.misses = {part: n for part, n in worker.misses.items() if part in held}
    for placement in desk.placements_on(worker.name):
        if not worker.owns(placement) or token(placement) in named:
            continue
        job = desk.book.jobs[placement.part.job_id]
        watch = desk.watches[job.job_id]
        is_live = desk.book.placement(placement.part) == placement
        sent_at = watch.sent.get(token(placement))
        workflow = job.workflows[placement.part.workflow]
        if sent_at is None and is_live:
            if job.ending or workflow.is_winding_down:
                lose(desk, now, placement, f"it never reached worker {worker.name}")
            else:
                send(desk, now, job, placement)
        elif sent_at is None or now - sent_at >= desk.settings.orphan_age_s:
            misses = worker.misses.get(placement.part, 0) + 1
            worker.misses[placement.part] = misses
            if misses >= desk.settings.orphan_misses:
                lose(desk, now, placement, f"orphaned: worker {worker.name} does not hold it")


# -- who is gone ---------------------------------------------------------------------------------


def review_worker(desk: Desk, now: float, worker: Worker) -> None:
    limits = desk.settings
    _pace(desk, now, worker, desk.placements_on(worker.name))
    signals = desk.pool.signals(now, worker)
    desk.health.update(now, worker.name, signals)
    again: list[float] = []
    for placement in desk.placements_on(worker.name):
        if not worker.registered:
            continue  # a new leader: only the worker knows what it took into a later incarnation
        if placement.incarnation < worker.incarnation and not worker.owns(placement):
            at = worker.former_heard_at + limits.reschedule_s
            if worker.has_lost(placement) or now >= at:
                lose(desk, now, placement, f"worker {worker.name} restarted")
            else:
                again.append(at)
        again += _untold(desk, now, placement)
    if signals.may_evict:
        verdict = desk.health.should_evict(now, worker.name)
        if verdict.evict:
            _evict(desk, now, worker, signals)
        elif verdict.again_at is not None:
            again.append(verdict.again_at)
            desk.tell(
                "", "eviction_held", "warning", worker=worker.name, failing=verdict.correlated
            )
    if signals.live and signals.progress is not Progress.STUCK:
        _take_frozen(desk, now, worker)
    if not signals.live and not desk.placements_on(worker.name):
        if now >= worker.heard_at + limits.dead_worker_kept_s:
            forget(desk, worker)
            return
        again.append(worker.heard_at + limits.dead_worker_kept_s)
    elif signals.live:
        again += _watch_for(desk, now, worker)
    again = [at for at in again if at > now]
    desk.deadlines.set(("worker", worker.name), min(again, default=None))


def _untold(desk: Desk, now: float, placement: Placement) -> list[float]:
    """By its worker's word it makes no load any more, but how it ended does not arrive: the worker
    hears none of our answers. It tells an end again after 5 s at most; returns when to look."""
    since = desk.watches[placement.part.job_id].untold.get(token(placement))
    if since is None or desk.book.placement(placement.part) != placement:
        return []
    if now >= since + desk.settings.reschedule_s:
        lose(desk, now, placement, f"worker {placement.worker} could not tell how it ended")
    return [since + desk.settings.reschedule_s]


def _watch_for(desk: Desk, now: float, worker: Worker) -> list[float]:
    limits = desk.settings
    again = [desk.pool.silent_at(worker), desk.pool.gone_at(worker)]
    if worker.unreached_since is not None:
        again.append(worker.unreached_since + limits.unreached_s)
    if desk.placements_on(worker.name):
        again += [at for at in (worker.extensions.until, worker.extensions.evict_at()) if at]
    return again


def _evict(desk: Desk, now: float, worker: Worker, signals: Signals) -> None:
    if not signals.live:
        why = f"worker {worker.name} {_fate(worker)}"
    elif signals.progress is Progress.STUCK:
        why = f"worker {worker.name} made no progress for {worker.pace.idle_s:.0f} s"
    else:
        why = f"worker {worker.name} has used up its extensions"
    for placement in desk.placements_on(worker.name):
        if worker.owns(placement) or not worker.registered:
            if signals.live:
                desk.emit(Command(placement, "cancel", reason=why))
            lose(desk, now, placement, why)


def _fate(worker: Worker) -> str:
    if worker.dead_at is not None:
        return "died"
    return "was cut off" if worker.registered else "did not come back"


def _take_frozen(desk: Desk, now: float, worker: Worker) -> None:
    """A part that stands still beside others that do not is moved alone."""
    limits = desk.settings
    if worker.extensions.excuses(now):
        return
    for placement in desk.placements_on(worker.name):
        idle_s = desk.idle_s(placement)
        if idle_s >= limits.stuck_s + limits.stuck_evict_s:
            why = f"it made no progress on worker {worker.name} for {idle_s:.0f} s"
            desk.emit(Command(placement, "cancel", reason=why))
            lose(desk, now, placement, why)


def forget(desk: Desk, worker: Worker) -> None:
    desk.pool.workers.pop(worker.name, None)
    desk.health.remove(worker.name)
    desk.deadlines.set(("worker", worker.name), None)
    desk.emit(Gone(worker.name))


def left(desk: Desk, now: float, worker: Worker) -> None:
    for placement in desk.placements_on(worker.name):
        lose(desk, now, placement, f"worker {worker.name} left")
    forget(desk, worker)


# -- what becomes of its parts -------------------------------------------------------------------


def review_homeless(
    desk: Desk, now: float, job: JobState, watch: Watch, workflow: WorkflowState
) -> float | None:
    """Parts without a worker wait for one, but not for ever."""
    homeless = [] if workflow.is_winding_down else workflow.homeless()
    parts = {_part(job, workflow, part): part for part in homeless}
    for part in [p for p in watch.homeless if p.workflow == workflow.needs.name]:
        if part not in parts:
            del watch.homeless[part]
    again: list[float] = []
    for part, state in parts.items():
        since = watch.homeless.setdefault(part, now)
        if job.paused:
            continue
        at = _give_up(desk, now, job, workflow, state, since)
        if at is not None:
            again.append(at)
            squeezed_at = squeeze_at(desk, job, workflow, since)
            if squeezed_at is not None:
                later = now + desk.settings.squeeze_after_s
                again.append(squeezed_at if squeezed_at > now else later)
    return min(again, default=None)


def _part(job: JobState, workflow: WorkflowState, part: PartState) -> Part:
    return Part(job.job_id, workflow.needs.name, part.number)


def _give_up(
    desk: Desk, now: float, job: JobState, workflow: WorkflowState, part: PartState, since: float
) -> float | None:
    limits = desk.settings
    name, age = workflow.needs.name, desk.age_s(now, job.job_id)
    spent = part.attempts > limits.retries_max
    if not workflow.started:
        if spent:
            why = f"{part.losses[-1].reason}; no retry is left"
            desk.append(now, Failed(job.job_id, age, name, why))
        elif now >= since + limits.return_after_s:
            why = "a part of it found no worker"
            desk.append(now, Returned(job.job_id, age, name, why))
        return since + limits.return_after_s
    if spent:
        why = "no retry is left"
    elif job.ending:
        why = job.reason
    elif job.submitted.lost_load == "drop" and workflow.needs.is_test:
        why = "given up at once (lost_load = drop)"
    elif part.is_untold:
        why = "nobody knows how many of its iterations were made"
    elif not can_move(desk, now, job, workflow):
        why = "its time was over before a worker was free"
    elif now >= since + limits.dispatch_s:
        why = f"no worker was free for {limits.dispatch_s:g} s"
    else:
        return _patience_ends(desk, now, job, workflow, since)
    desk.append(now, GivenUp(job.job_id, age, _part(job, workflow, part), why))
    return None


def _patience_ends(
    desk: Desk, now: float, job: JobState, workflow: WorkflowState, since: float
) -> float:
    end = since + desk.settings.dispatch_s
    planned = workflow.needs.planned_s
    if workflow.needs.is_test and planned is not None and not job.paused:
        left_s = planned - RESUME_WORTH_S - desk.load_s(now, job, workflow)
        end = min(end, now + max(0.01, left_s + 0.01))
    return end
