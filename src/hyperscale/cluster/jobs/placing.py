"""Which worker gets what, and when.

Parts that lost their worker come first. Then the queue: of each job the first batch of its present
layer, sized by the whole pool, placed when all of it fits. A layer starts when all of the layer
before is settled. An exclusive workflow waits until nothing runs, and nothing is placed beside it.
"""

from __future__ import annotations

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.allocation import Allocation, allocate, by_worker, groups
from hyperscale.cluster.jobs.effects import Dispatch
from hyperscale.cluster.jobs.leader_state import LeaderState, Refusal, Watch, token
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.moving import place_again
from hyperscale.cluster.jobs.pool import Draft
from hyperscale.cluster.jobs.records import (
    Dispatched,
    Failed,
    Part,
    PartLost,
    Placement,
    Returned,
)
from hyperscale.cluster.jobs.state import JobState, WorkflowState
from hyperscale.cluster.placement.provision import Share, Wanted, batches


def ready(leader: LeaderState, now: float, job: JobState) -> list[WorkflowState]:
    """Workflows to dispatch next."""
    if job.ending or job.paused or job.is_over:
        return []
    layer = job.current_layer()
    return [
        workflow
        for name, workflow in job.workflows.items()
        if workflow.layer == layer
        and workflow.lifecycle.state is LifecycleState.PENDING
        and all(job.workflows[other].lifecycle.succeeded for other in workflow.needs.depends)
        and not leader.is_under_way(now, ("workflow", job.job_id, name))
    ]


def enqueue(leader: LeaderState, now: float, job: JobState, watch: Watch) -> None:
    if ready(leader, now, job):
        leader.queue.want(now, job.job_id, watch.arrival, fresh=job.dispatched_age_s is None)
        leader.placement_due = True
    else:
        leader.queue.leave(now, job.job_id)
        leader.deadlines.set(("wait", job.job_id), None)


def place(leader: LeaderState, now: float) -> None:
    leader.placement_due = False
    alone = _runs_alone(leader) if leader.unplaced_jobs else ""
    for job_id in sorted(leader.unplaced_jobs, key=lambda job_id: leader.watches[job_id].arrival):
        if alone in ("", job_id):
            place_again(leader, now, leader.replicated.jobs[job_id])
    if len(leader.queue):
        _serve_queue(leader, now)
    wake: list[float] = []
    if len(leader.queue) or leader.unplaced_jobs:
        wake = [w.pause_until for w in leader.pool.workers.values() if w.pause_until > now]
    leader.deadlines.set(("pool",), min(wake, default=None))


def _serve_queue(leader: LeaderState, now: float) -> None:
    pool = leader.pool.total_cores(now)
    alone = _runs_alone(leader)
    passed = 0
    blocked = False
    for job_id in leader.queue.order():
        if pool and (blocked or passed > leader.settings.overtakers_max):
            break
        entry = leader.queue.get(job_id)
        job = leader.replicated.jobs.get(job_id)
        if entry is None or job is None:
            continue
        missing = _place_batch(leader, now, job, pool, alone)
        if not missing:
            alone = _runs_alone(leader)
            enqueue(leader, now, job, leader.watches[job_id])
            continue
        passed += 1
        blocked = leader.queue.reserves(now, job_id)
        entry.reason = missing
        if not _is_hopeless(leader, now):
            entry.hopeless_since = None
        elif entry.hopeless_since is None:
            entry.hopeless_since = now
        leader.deadlines.set(
            ("wait", job_id),
            None
            if entry.hopeless_since is None
            else entry.hopeless_since + leader.settings.dispatch_s,
        )
    leader.placement_due = False


def _is_hopeless(leader: LeaderState, now: float) -> bool:
    """There are no workers, or none of them has anything to do: nothing will become free."""
    return not leader.pool.total_cores(now) or not (leader.replicated.by_worker or leader.under_way)


def _place_batch(leader: LeaderState, now: float, job: JobState, pool: int, alone: str) -> str:
    """Empty when it was placed, else why not."""
    wanted = ready(leader, now, job)
    if not wanted:
        return ""
    if not pool:
        return "no workers yet"
    if alone:
        return f"a workflow of job {alone} runs alone"
    draft = leader.pool.draft(now, {name for workflow in wanted for name in workflow.excluded})
    batch = _batch(wanted, pool)
    cores = {core for share in batch for core in share.cores}
    needed, free = len(cores), draft.free
    if job.workflows[batch[0].name].needs.is_exclusive:
        needed = pool
        if leader.unplaced_jobs or any(
            leader.pool.placements()
        ):  # also on workers not heard of yet
            return "it runs alone, when nothing else does"
    allocation = _allocations(leader, job, draft, batch) if needed <= free else None
    if allocation is None:
        allocation = _beside(leader, now, job, wanted)
    if allocation is None:
        return f"{free} of {needed} cores are free"
    for name, found in allocation.items():
        _dispatch(leader, now, job, job.workflows[name], found)
    return ""


def _runs_alone(leader: LeaderState) -> str:
    """The job whose exclusive workflow has all workers for itself, if there is one."""
    for placement in leader.pool.placements():
        job = leader.replicated.jobs.get(placement.part.job_id)
        if job is not None and job.workflows[placement.part.workflow].needs.is_exclusive:
            return job.job_id
    for job_id in leader.unplaced_jobs:
        workflows = leader.replicated.jobs[job_id].workflows.values()
        if any(w.needs.is_exclusive and w.unplaced() for w in workflows):
            return job_id
    return ""


def _batch(wanted: list[WorkflowState], pool: int) -> list[Share]:
    needs = [workflow.needs for workflow in wanted]
    return batches([Wanted(n.name, n.priority, n.is_test, n.peak_vus) for n in needs], pool)[0]


def _allocations(
    leader: LeaderState, job: JobState, draft: Draft, batch: list[Share]
) -> dict[str, Allocation] | None:
    """Free cores for all of them."""
    found: dict[str, Allocation] = {}
    for group in groups({share.name: share.cores for share in batch}):
        allocation = allocate(draft, group, leader.next_slot(job))
        if allocation is None:
            return None
        leader.use_slots(job, allocation.values())
        found |= allocation
    return found


def _beside(
    leader: LeaderState, now: float, job: JobState, wanted: list[WorkflowState]
) -> dict[str, Allocation] | None:
    """Cores of workflows of their layer that run: one that was given back goes on with them."""
    places = {
        slot: (worker, slot)
        for workflow in job.workflows.values()
        if not workflow.is_winding_down and not workflow.needs.is_exclusive
        for placement in workflow.live()
        if (worker := leader.pool.workers.get(placement.worker)) is not None
        and worker.owns(placement)
        and leader.pool.can_share(now, worker)
        for slot in placement.slots
    }
    if not places or any(workflow.needs.is_exclusive for workflow in wanted):
        return None
    cores = [places[slot] for slot in sorted(places)]
    return {
        share.name: by_worker(cores[core] for core in share.cores)
        for share in _batch(wanted, len(cores))
    }


def _dispatch(
    leader: LeaderState, now: float, job: JobState, workflow: WorkflowState, allocation: Allocation
) -> None:
    fence = Fence(leader.term, leader.next_epoch(job), workflow.tries + 1)
    placements = []
    first = 0
    for number, (worker, slots) in enumerate(allocation):
        part = Part(job.job_id, workflow.needs.name, number)
        placements.append(
            Placement(part, fence, worker.name, worker.incarnation, first, len(slots), slots=slots)
        )
        first += len(slots)
    leader.append(
        now,
        Dispatched(
            job.job_id, leader.age_s(now, job.job_id), workflow.needs.name, first, tuple(placements)
        ),
    )


# -- answers -------------------------------------------------------------------------------------


def send(leader: LeaderState, now: float, job: JobState, placement: Placement) -> None:
    """Its record is held: the worker may hear of it."""
    workflow = job.workflows[placement.part.workflow]
    leader.watches[job.job_id].sent[placement.part, placement.fence] = now
    leader.emit(
        Dispatch(
            placement,
            workflow.total_cores,
            run_setup=workflow.needs.sets_up
            and not workflow.started
            and placement.part.number == 0,
        )
    )


def answered(
    leader: LeaderState,
    now: float,
    placement: Placement,
    refusal: Refusal | None,
    free: int | None,
) -> None:
    worker = leader.pool.workers.get(placement.worker)
    watch = leader.watches.get(placement.part.job_id)
    if refusal is None:
        if worker is not None:
            worker.refusals = 0
        if watch is not None:
            watch.refusals.pop(placement.worker, None)
        return
    if watch is not None and not refusal.for_good:
        watch.refusals[placement.worker] += 1
    if (
        worker is not None
        and worker.incarnation == placement.incarnation
        and not refusal.for_good  # it was never asked
    ):
        leader.pool.refused(now, worker, free)
        leader.placement_due = True
    if watch is not None and leader.replicated.placement(placement.part) == placement:
        if token(placement) in watch.prepared or token(placement) in watch.started:
            return  # only the answer was lost
        watch.refused[token(placement)] = refusal
        leader.touch(placement.part.job_id)


def take_back(leader: LeaderState, now: float, job: JobState, watch: Watch) -> None:
    """Parts that were refused. Without room it is nobody's fault; else the worker is avoided."""
    for (part, fence), refusal in list(watch.refused.items()):
        placement = leader.replicated.placement(part)
        if placement is None or placement.fence != fence:
            del watch.refused[part, fence]
            continue
        workflow = job.workflows[part.workflow]
        age = leader.age_s(now, job.job_id)
        if refusal.no_room and not workflow.is_winding_down:
            why = f"no room on {placement.worker}"
            parts = (part.number,) if workflow.started else ()
            leader.append(now, Returned(job.job_id, age, part.workflow, why, parts))
            continue
        if refusal.for_good and not workflow.is_winding_down and not workflow.started:
            watch.unsendable[part.workflow] = refusal.reason
            leader.append(now, Returned(job.job_id, age, part.workflow, refusal.reason))
            continue
        why = f"worker {placement.worker} did not take it: {refusal.reason}"
        leader.append(
            now,
            PartLost(
                job.job_id, age, part, fence, placement.worker,
                placement.resume_at_s, 0, b"", why,
            ),
        )  # fmt: skip


def waited_too_long(leader: LeaderState, now: float, job: JobState) -> None:
    entry = leader.queue.get(job.job_id)
    if entry is None or entry.hopeless_since is None:
        return
    if not _is_hopeless(leader, now):  # it stands behind one that has been looked at since
        entry.hopeless_since = None
        return
    if now < entry.hopeless_since + leader.settings.dispatch_s:
        leader.placement_due = True
        return
    why = f"nobody could take it within {leader.settings.dispatch_s:g} s ({entry.reason})"
    for workflow in ready(leader, now, job):
        leader.append(
            now, Failed(job.job_id, leader.age_s(now, job.job_id), workflow.needs.name, why)
        )
