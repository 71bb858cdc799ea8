"""Which worker gets what, and when.

Parts that lost their worker come first. Then the queue: of each job the first batch of its present
layer, sized by the whole pool, placed when all of it fits. A layer starts when all of the layer
before is settled.
"""

from __future__ import annotations

from itertools import accumulate

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.desk import Desk, Refusal, Watch, token
from hyperscale.cluster.jobs.effects import Dispatch
from hyperscale.cluster.jobs.lifecycle import State
from hyperscale.cluster.jobs.pool import Chosen
from hyperscale.cluster.jobs.records import (
    Dispatched,
    Failed,
    Needs,
    Part,
    PartLost,
    Placement,
    Returned,
)
from hyperscale.cluster.jobs.state import JobState, PartState, WorkflowState
from hyperscale.cluster.placement.provision import Share, Wanted, batches

RESUME_WORTH_S = 1.0
"""Less load time than this is not worth moving a part: preparing takes about as long."""


def ready(desk: Desk, now: float, job: JobState) -> list[WorkflowState]:
    """Workflows to dispatch next."""
    if job.ending or job.paused or job.is_over:
        return []
    layer = job.current_layer()
    return [
        workflow
        for name, workflow in job.workflows.items()
        if workflow.layer == layer
        and workflow.lifecycle.state is State.PENDING
        and all(job.workflows[other].lifecycle.succeeded for other in workflow.needs.depends)
        and not desk.is_under_way(now, ("workflow", job.job_id, name))
    ]


def enqueue(desk: Desk, now: float, job: JobState, watch: Watch) -> None:
    if ready(desk, now, job):
        desk.queue.want(now, job.job_id, watch.arrival, fresh=job.dispatched_age_s is None)
        desk.hungry = True
    else:
        desk.queue.leave(now, job.job_id)
        desk.deadlines.set(("wait", job.job_id), None)


def place(desk: Desk, now: float) -> None:
    desk.hungry = False
    for job_id in sorted(desk.displaced, key=lambda job_id: desk.watches[job_id].arrival):
        _rehouse(desk, now, desk.book.jobs[job_id])
    if len(desk.queue):
        _serve_queue(desk, now)
    wake: list[float] = []
    if len(desk.queue) or desk.displaced:
        wake = [w.pause_until for w in desk.pool.workers.values() if w.pause_until > now]
    desk.deadlines.set(("pool",), min(wake, default=None))


def _serve_queue(desk: Desk, now: float) -> None:
    pool = desk.pool.total_cores(now)
    passed = 0
    blocked = False
    for job_id in desk.queue.order():
        if pool and (blocked or passed > desk.settings.overtakers_max):
            break
        entry = desk.queue.get(job_id)
        job = desk.book.jobs.get(job_id)
        if entry is None or job is None:
            continue
        missing = _place_batch(desk, now, job, pool)
        if not missing:
            enqueue(desk, now, job, desk.watches[job_id])
            continue
        passed += 1
        blocked = desk.queue.reserves(now, job_id)
        entry.reason = missing
        if not _is_hopeless(desk, now):
            entry.hopeless_since = None
        elif entry.hopeless_since is None:
            entry.hopeless_since = now
        desk.deadlines.set(
            ("wait", job_id),
            None
            if entry.hopeless_since is None
            else entry.hopeless_since + desk.settings.dispatch_s,
        )
    desk.hungry = False


def _is_hopeless(desk: Desk, now: float) -> bool:
    """There are no workers, or none of them has anything to do: nothing will become free."""
    return not desk.pool.total_cores(now) or not (desk.book.by_worker or desk.under_way)


def _place_batch(desk: Desk, now: float, job: JobState, pool: int) -> str:
    """Empty when it was placed, else why not."""
    if not pool:
        return "no workers yet"
    wanted = ready(desk, now, job)
    shares = _shares(wanted, pool)
    excluded = {name for workflow in wanted for name in workflow.excluded}
    draft = desk.pool.draft(now, excluded)
    needed, free = sum(len(share.cores) for share in shares), draft.free
    if needed > free:
        return f"{free} of {needed} cores are free"
    plan: list[tuple[str, Chosen]] = []
    for share in shares:
        chosen = draft.take(len(share.cores))
        if chosen is None:
            return f"{free} of {needed} cores are free"
        plan.append((share.name, chosen))
    for name, chosen in plan:
        _dispatch(desk, now, job, job.workflows[name], chosen)
    return ""


def _shares(wanted: list[WorkflowState], pool: int) -> list[Share]:
    """Of the first batch, as many as fit."""
    if not wanted:
        return []
    batch = batches([_wanted(workflow.needs) for workflow in wanted], pool)[0]
    taken = accumulate(len(share.cores) for share in batch)
    return [share for share, cores in zip(batch, taken, strict=True) if cores <= pool]


def _wanted(needs: Needs) -> Wanted:
    return Wanted(needs.name, needs.priority, needs.is_test, needs.peak_vus)


def _next_epoch(desk: Desk, job: JobState) -> int:
    watch = desk.watches[job.job_id]
    watch.epoch = max(watch.epoch, job.epoch) + 1
    return watch.epoch


def _dispatch(
    desk: Desk, now: float, job: JobState, workflow: WorkflowState, chosen: Chosen
) -> None:
    fence = Fence(desk.term, _next_epoch(desk, job), workflow.tries + 1)
    placements = []
    first = 0
    for number, (worker, cores) in enumerate(chosen):
        part = Part(job.job_id, workflow.needs.name, number)
        placements.append(Placement(part, fence, worker.name, worker.incarnation, first, cores))
        first += cores
    desk.append(
        now,
        Dispatched(
            job.job_id, desk.age_s(now, job.job_id), workflow.needs.name, first, tuple(placements)
        ),
    )


# -- parts without a worker ----------------------------------------------------------------------


def can_move(desk: Desk, now: float, job: JobState, workflow: WorkflowState) -> bool:
    """There is enough of its load left to be worth another worker."""
    planned = workflow.needs.planned_s
    if not workflow.started or not workflow.needs.is_test or planned is None:
        return True
    return planned - desk.load_s(now, job, workflow) >= RESUME_WORTH_S


def _rehouse(desk: Desk, now: float, job: JobState) -> None:
    if job.paused or job.ending or job.is_over:
        return
    for name in sorted(job.workflows):
        workflow = job.workflows[name]
        if (
            workflow.is_winding_down
            or desk.is_under_way(now, ("workflow", job.job_id, name))
            or not can_move(desk, now, job, workflow)
        ):
            continue
        draft = desk.pool.draft(now, workflow.excluded)
        epoch = 0
        placements: list[Placement] = []
        spare = 1 + max(workflow.parts, default=0)
        for part in workflow.homeless():
            about = ("part", job.job_id, name, str(part.number))
            if part.attempts > desk.settings.retries_max or desk.is_under_way(now, about):
                continue
            chosen = draft.take(part.cores)
            if chosen is None:
                continue
            epoch = epoch or _next_epoch(desk, job)
            placements += _pieces(desk, now, job, workflow, part, chosen, epoch, spare)
            spare += len(chosen) - 1
        if placements:
            desk.append(
                now,
                Dispatched(
                    job.job_id,
                    desk.age_s(now, job.job_id),
                    name,
                    workflow.total_cores,
                    tuple(placements),
                    replaces=True,
                ),
            )


def _pieces(
    desk: Desk,
    now: float,
    job: JobState,
    workflow: WorkflowState,
    part: PartState,
    chosen: Chosen,
    epoch: int,
    spare: int,
) -> list[Placement]:
    """The part on its new workers; further pieces of it become parts of their own."""
    by_time = workflow.needs.is_test and workflow.needs.planned_s is not None
    resume_at_s = desk.load_s(now, job, workflow) if by_time else 0.0
    fence = Fence(desk.term, epoch, part.attempts + 1)
    first, left = part.first_core, part.iterations_done
    cores_left = part.cores
    found = []
    for piece, (worker, cores) in enumerate(chosen):
        done = left * cores // cores_left
        number = part.number if piece == 0 else spare + piece - 1
        found.append(
            Placement(
                Part(job.job_id, workflow.needs.name, number),
                fence,
                worker.name,
                worker.incarnation,
                first,
                cores,
                resume_at_s,
                0 if by_time else done,
            )
        )
        first, left, cores_left = first + cores, left - done, cores_left - cores
    return found


# -- answers -------------------------------------------------------------------------------------


def send(desk: Desk, now: float, job: JobState, placement: Placement) -> None:
    """Its record is held: the worker may hear of it."""
    workflow = job.workflows[placement.part.workflow]
    desk.watches[job.job_id].sent[placement.part, placement.fence] = now
    desk.emit(
        Dispatch(
            placement,
            workflow.total_cores,
            run_setup=workflow.needs.sets_up
            and not workflow.started
            and placement.part.number == 0,
        )
    )


def answered(
    desk: Desk,
    now: float,
    placement: Placement,
    accepted: bool,
    no_room: bool,
    reason: str,
    free: int | None,
) -> None:
    worker = desk.pool.workers.get(placement.worker)
    if accepted:
        if worker is not None:
            worker.refusals = 0
        return
    if worker is not None and worker.incarnation == placement.incarnation:
        desk.pool.refused(now, worker, free)
        desk.hungry = True
    if desk.book.placement(placement.part) == placement:
        watch = desk.watches[placement.part.job_id]
        if token(placement) in watch.prepared or token(placement) in watch.started:
            return  # only the answer was lost
        watch.refused[token(placement)] = Refusal(no_room, reason or "refused")
        desk.touch(placement.part.job_id)


def take_back(desk: Desk, now: float, job: JobState, watch: Watch) -> None:
    """Parts that were refused. Without room it is nobody's fault; else the worker is avoided."""
    for (part, fence), refusal in list(watch.refused.items()):
        placement = desk.book.placement(part)
        if placement is None or placement.fence != fence:
            del watch.refused[part, fence]
            continue
        workflow = job.workflows[part.workflow]
        age = desk.age_s(now, job.job_id)
        if refusal.no_room and not workflow.is_winding_down:
            why = f"no room on {placement.worker}"
            parts = (part.number,) if workflow.started else ()
            desk.append(now, Returned(job.job_id, age, part.workflow, why, parts))
            continue
        why = f"worker {placement.worker} did not take it: {refusal.reason}"
        desk.append(
            now,
            PartLost(
                job.job_id, age, part, fence, placement.worker,
                placement.resume_at_s, 0, b"", why,
            ),
        )  # fmt: skip


def waited_too_long(desk: Desk, now: float, job: JobState) -> None:
    entry = desk.queue.get(job.job_id)
    if entry is None or entry.hopeless_since is None:
        return
    if not _is_hopeless(desk, now):  # it stands behind one that has been looked at since
        entry.hopeless_since = None
        return
    if now < entry.hopeless_since + desk.settings.dispatch_s:
        desk.hungry = True
        return
    why = f"nobody could take it within {desk.settings.dispatch_s:g} s ({entry.reason})"
    for workflow in ready(desk, now, job):
        desk.append(now, Failed(job.job_id, desk.age_s(now, job.job_id), workflow.needs.name, why))
