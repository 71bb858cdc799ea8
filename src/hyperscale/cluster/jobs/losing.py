"""Parts that lose their worker, and how long they wait for another one.

What a lost part had reported is collected first, then the loss is recorded, then the part is placed
again (`moving`). A part that finds no worker in time is given up, or its whole workflow goes back
to the queue.
"""

from __future__ import annotations

from hyperscale.cluster.jobs.effects import CollectReported
from hyperscale.cluster.jobs.events import Heard, ReportedCollected
from hyperscale.cluster.jobs.iterations import planned_iterations
from hyperscale.cluster.jobs.leader_state import LeaderState, Watch, token
from hyperscale.cluster.jobs.moving import RESUME_WORTH_S, can_move, squeeze_at
from hyperscale.cluster.jobs.records import Failed, GivenUp, Part, PartLost, Placement, Returned
from hyperscale.cluster.jobs.state import JobState, PartState, WorkflowState
from hyperscale.cluster.jobs.unheard import ANY_NUMBER, unheard

NOTHING = Heard(0.0, 0, b"")


def lose(leader: LeaderState, now: float, placement: Placement, reason: str) -> None:
    """Take what it reported, then record the loss. A part that had ended has nothing to take."""
    job_id = placement.part.job_id
    watch = leader.watches[job_id]
    if leader.replicated.placement(placement.part) == placement:
        if token(placement) not in watch.being_lost:
            watch.being_lost[token(placement)] = reason
            leader.emit(CollectReported(placement, reason))
        return
    _record_loss(leader, now, placement, NOTHING, reason)


def collected(leader: LeaderState, now: float, event: ReportedCollected) -> bool:
    if leader.leading:
        _collected(leader, now, event.placement, event.heard)
    return True


def _collected(leader: LeaderState, now: float, placement: Placement, heard: Heard) -> None:
    watch = leader.watches.get(placement.part.job_id)
    reason = watch.being_lost.get(token(placement)) if watch else None
    if watch is None or reason is None or leader.replicated.placement(placement.part) != placement:
        return
    if not _record_loss(leader, now, placement, heard, reason):
        del watch.being_lost[token(placement)]


def _record_loss(
    leader: LeaderState, now: float, placement: Placement, heard: Heard, reason: str
) -> bool:
    part = placement.part
    return leader.append(
        now,
        PartLost(
            part.job_id, leader.age_s(now, part.job_id), part, placement.fence, placement.worker,
            heard.at_s, heard.iterations, heard.result, reason,
            _unheard(leader, now, placement, heard),
        ),
    )  # fmt: skip


def _unheard(leader: LeaderState, now: float, placement: Placement, heard: Heard) -> int:
    """It may have gone on until its worker had surely ended it, or was seen to be gone."""
    workflow = leader.replicated.jobs[placement.part.job_id].workflows[placement.part.workflow]
    if workflow.needs.planned_s is not None or not workflow.started:
        return 0  # what goes by time leaves out what has passed
    needs, part = workflow.needs, workflow.parts[placement.part.number]
    users = needs.peak_vus * placement.cores / workflow.total_cores  # each may be about to end one
    own = (heard.iterations or users) / heard.at_s if heard.at_s else 0.0
    pace = max(own, heard.pace)
    if not pace or not (heard.result or heard.iterations):
        return ANY_NUMBER
    worker = leader.pool.workers.get(placement.worker)
    silent_s = leader.settings.reschedule_s
    if worker is not None and token(placement) in worker.load_s:  # else only leaders before heard
        reborn = placement.incarnation < worker.incarnation and not worker.owns(placement)
        heard_at = worker.former_heard_at if reborn else worker.heard_at
        untold_s = max(0.0, worker.load_s[token(placement)] - heard.at_s)
        gone_at = now if worker.refused_at is None or reborn else worker.refused_at
        silent_s = min(silent_s, max(0.0, gone_at - heard_at)) + untold_s
    found = unheard(pace, silent_s)
    planned = planned_iterations(needs, workflow.total_cores, placement.first_core, placement.cores)
    if planned is None:
        return found
    return max(0, min(found, planned - part.iterations_done + part.left_out - heard.iterations))


# -- parts without a worker -----------------------------------------------------------------------


def check_unplaced(
    leader: LeaderState, now: float, job: JobState, watch: Watch, workflow: WorkflowState
) -> float | None:
    """Parts without a worker wait for one, but not for ever."""
    unplaced = [] if workflow.is_winding_down else workflow.unplaced()
    parts = {_part(job, workflow, part): part for part in unplaced}
    for part in [p for p in watch.unplaced_since if p.workflow == workflow.needs.name]:
        if part not in parts:
            del watch.unplaced_since[part]
    again: list[float] = []
    for part, state in parts.items():
        since = watch.unplaced_since.setdefault(part, now)
        if job.paused:
            continue
        at = _give_up(leader, now, job, workflow, state, since)
        if at is not None:
            again.append(at)
            squeezed_at = squeeze_at(leader, job, workflow, since)
            if squeezed_at is not None:
                later = now + leader.settings.squeeze_after_s
                again.append(squeezed_at if squeezed_at > now else later)
    return min(again, default=None)


def _part(job: JobState, workflow: WorkflowState, part: PartState) -> Part:
    return Part(job.job_id, workflow.needs.name, part.number)


def _give_up(
    leader: LeaderState,
    now: float,
    job: JobState,
    workflow: WorkflowState,
    part: PartState,
    since: float,
) -> float | None:
    limits = leader.settings
    name, age = workflow.needs.name, leader.age_s(now, job.job_id)
    spent = part.attempts > limits.retries_max
    if not workflow.started:
        if spent:
            why = f"{part.losses[-1].reason}; no retry is left"
            leader.append(now, Failed(job.job_id, age, name, why))
        elif now >= since + limits.return_after_s:
            why = "a part of it found no worker"
            leader.append(now, Returned(job.job_id, age, name, why))
        return since + limits.return_after_s
    if spent:
        why = "no retry is left"
    elif job.ending:
        why = job.reason
    elif job.submitted.lost_load == "drop" and workflow.needs.is_test:
        why = "given up at once (lost_load = drop)"
    elif part.is_untold:
        why = "nobody knows how many of its iterations were made"
    elif not can_move(leader, now, job, workflow):
        why = "its time was over before a worker was free"
    elif now >= since + limits.dispatch_s:
        why = f"no worker was free for {limits.dispatch_s:g} s"
    else:
        return _patience_ends(leader, now, job, workflow, since)
    leader.append(now, GivenUp(job.job_id, age, _part(job, workflow, part), why))
    return None


def _patience_ends(
    leader: LeaderState, now: float, job: JobState, workflow: WorkflowState, since: float
) -> float:
    end = since + leader.settings.dispatch_s
    planned = workflow.needs.planned_s
    if workflow.needs.is_test and planned is not None and not job.paused:
        left_s = planned - RESUME_WORTH_S - leader.load_s(now, job, workflow)
        end = min(end, now + max(0.01, left_s + 0.01))
    return end
