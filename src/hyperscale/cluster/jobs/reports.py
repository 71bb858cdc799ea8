"""What workers report of their parts: what is learnt from it, and what nobody waits for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hyperscale.cluster.jobs.effects import Acknowledge
from hyperscale.cluster.jobs.ending import mark_prepared
from hyperscale.cluster.jobs.events import PartReport, Unwanted
from hyperscale.cluster.jobs.leader_state import LeaderState, Watch, token
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.losing import lose
from hyperscale.cluster.jobs.placing import send
from hyperscale.cluster.jobs.pool import Worker
from hyperscale.cluster.jobs.records import Part, Placement
from hyperscale.cluster.jobs.steering import remind
from hyperscale.cluster.jobs.timeouts import Idle, should_move


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
            mark_prepared(leader, report.part, report.fence, report.context)
        worker.load_s[token(placement)] = report.elapsed_s
        if report.state == "running" and report.elapsed_s > 0:
            worker.loads_since.setdefault(token(placement), now)
        else:
            worker.loads_since.pop(token(placement), None)
        if report.state in ("running", "paused", "ending"):
            moved += _running(leader, now, worker, watch, report)
        elif report.state == "ended" and leader.replicated.placement(report.part) == placement:
            watch.untold.setdefault(token(placement), now)
    update_pace(leader, now, worker, held.values())
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


def update_pace(leader: LeaderState, now: float, worker: Worker, held: Iterable[Placement]) -> None:
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
