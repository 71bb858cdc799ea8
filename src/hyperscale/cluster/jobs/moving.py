"""Parts that lost their worker, on others.

Those that shared cores wait for one another and share cores again if there is room for all of them;
else each is placed by itself. One that finds no free core shares those that its job has, if the job
says so.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import invariant
from hyperscale.cluster.jobs.allocation import Allocation, allocate, groups
from hyperscale.cluster.jobs.draft import Draft
from hyperscale.cluster.jobs.iterations import Rest
from hyperscale.cluster.jobs.leader_state import LeaderState
from hyperscale.cluster.jobs.records import Dispatched, Part, Placement
from hyperscale.cluster.jobs.squeezing import Squeeze
from hyperscale.cluster.jobs.state import JobState, PartState, WorkflowState

RESUME_WORTH_S = 1.0
"""Less load time than this is not worth moving a part: preparing takes about as long."""


class UnplacedPart(NamedTuple):
    workflow: str
    number: int


def can_move(leader: LeaderState, now: float, job: JobState, workflow: WorkflowState) -> bool:
    """There is enough of its load left to be worth another worker."""
    planned = workflow.needs.planned_s
    if not workflow.started or not workflow.needs.is_test or planned is None:
        return True
    return planned - leader.load_s(now, job, workflow) >= RESUME_WORTH_S


def place_again(leader: LeaderState, now: float, job: JobState) -> None:
    if job.paused or job.ending or job.is_over:
        return
    waiting = {
        UnplacedPart(name, part.number): part for name, part in _unplaced_parts(leader, now, job)
    }
    if not waiting:
        return
    draft = Draft(
        leader.pool,
        now,
        {worker for who in waiting for worker in job.workflows[who.workflow].excluded},
    )
    allocation = _allocations(leader, job, draft, waiting)
    left = {who: part for who, part in waiting.items() if who not in allocation}
    allocation |= _squeezed(leader, now, job, draft, left)
    for name in sorted({who.workflow for who in allocation}):
        workflow = job.workflows[name]
        epoch = leader.next_epoch(job)
        spare = 1 + max(workflow.parts)
        placements: list[Placement] = []
        for number in sorted(who.number for who in allocation if who.workflow == name):
            found = allocation[UnplacedPart(name, number)]
            part = workflow.parts[number]
            placements += _pieces(leader, now, job, workflow, part, found, epoch, spare)
            spare += len(found) - 1
        leader.append(
            now,
            Dispatched(
                job.job_id,
                leader.age_s(now, job.job_id),
                name,
                workflow.total_cores,
                tuple(placements),
                replaces=True,
            ),
        )


def _unplaced_parts(
    leader: LeaderState, now: float, job: JobState
) -> Iterator[tuple[str, PartState]]:
    watch = leader.watches[job.job_id]
    live = (placement for workflow in job.workflows.values() for placement in workflow.live())
    leaving = {slot for one in live if watch.is_leaving(one) for slot in one.slots}
    for name in sorted(job.workflows):
        workflow = job.workflows[name]
        if (
            workflow.is_winding_down
            or leader.is_under_way(now, ("workflow", job.job_id, name))
            or not can_move(leader, now, job, workflow)
        ):
            continue
        for part in workflow.unplaced():
            about = ("part", job.job_id, name, str(part.number))
            spent = part.attempts > leader.settings.retries_max
            if part.is_untold:
                continue
            if not spent and not leader.is_under_way(now, about) and leaving.isdisjoint(part.slots):
                yield name, part


def _allocations(
    leader: LeaderState, job: JobState, draft: Draft, waiting: dict[UnplacedPart, PartState]
) -> dict[UnplacedPart, Allocation]:
    parts_on = Counter((who.workflow, slot) for who, p in waiting.items() for slot in p.slots)
    unnumbered = -1  # parts placed by an older manager have no slots
    before: dict[UnplacedPart, Sequence[int]] = {}
    for who, part in waiting.items():
        # Parts of one workflow share a core for want of others only.
        alone = any(parts_on[who.workflow, slot] > 1 for slot in part.slots) or not part.slots
        before[who] = range(unnumbered, unnumbered - part.cores, -1) if alone else part.slots
        unnumbered -= part.cores
    found: dict[UnplacedPart, Allocation] = {}
    for group in groups(before):
        together = _allocate_group(leader, job, draft, group)
        found |= together
        if not together and len(group) > 1:
            for who, cores in group.items():
                found |= _allocate_group(leader, job, draft, {who: cores})
    return found


def _allocate_group(
    leader: LeaderState, job: JobState, draft: Draft, group: Mapping[UnplacedPart, Sequence[int]]
) -> dict[UnplacedPart, Allocation]:
    allocation = allocate(draft, group, leader.next_slot(job))
    if allocation is None:
        return {}
    leader.use_slots(job, allocation.values())
    return allocation


def squeeze_at(
    leader: LeaderState, job: JobState, workflow: WorkflowState, since: float
) -> float | None:
    """When a part that is without a worker since then may share a core; None: never. One whose
    load has not begun is placed again with all of its workflow."""
    if job.submitted.lost_load != "squeeze" or not workflow.started:
        return None
    return since + leader.settings.squeeze_after_s


def _squeezed(
    leader: LeaderState,
    now: float,
    job: JobState,
    draft: Draft,
    waiting: Mapping[UnplacedPart, PartState],
) -> dict[UnplacedPart, Allocation]:
    watch = leader.watches[job.job_id]
    found: dict[UnplacedPart, Allocation] = {}
    squeeze: Squeeze | None = None
    for who, part in waiting.items():
        workflow = job.workflows[who.workflow]
        since = watch.unplaced_since.get(Part(job.job_id, *who), now)
        at = squeeze_at(leader, job, workflow, since)
        if at is None or now < at:
            continue
        squeeze = squeeze or Squeeze(leader, now, job)
        allocation = squeeze.take(workflow, part.cores)
        if allocation is None and not any(each.live() for each in job.workflows.values()):
            allocation = _on_fewer(leader, job, draft, part.cores)
        if allocation is not None:
            found[who] = allocation
    return found


def _on_fewer(leader: LeaderState, job: JobState, draft: Draft, cores: int) -> Allocation | None:
    """Nobody runs the job any more whose cores could be shared, and those that are free are fewer
    than the part had: its pieces share them."""
    chosen = draft.take(min(draft.free, cores)) if draft.free else None
    if chosen is None:
        return None
    slot, allocation = leader.next_slot(job), []
    for worker, count in chosen:
        allocation.append((worker, tuple(range(slot, slot + count))))
        slot += count
    leader.use_slots(job, [allocation])
    missing = cores - sum(count for _, count in chosen)
    for worker, slots in itertools.cycle(allocation[:]):
        if missing <= 0:
            return allocation
        allocation.append((worker, slots[:missing]))
        missing -= len(slots)
    return allocation


def _resume_at_s(leader: LeaderState, now: float, job: JobState, workflow: WorkflowState) -> float:
    """Load time never runs backwards: a leader that has heard no worker yet may think it is less
    than what was told of a lost part."""
    told = (loss.at_s for part in workflow.parts.values() for loss in part.losses)
    return max(leader.load_s(now, job, workflow), max(told, default=0.0))


def _pieces(
    leader: LeaderState,
    now: float,
    job: JobState,
    workflow: WorkflowState,
    part: PartState,
    allocation: Allocation,
    epoch: int,
    spare: int,
) -> list[Placement]:
    """The part on its new workers; further pieces of it become parts of their own."""
    by_time = workflow.needs.is_test and workflow.needs.planned_s is not None
    resume_at_s = _resume_at_s(leader, now, job, workflow) if by_time else 0.0
    fence = Fence(leader.term, epoch, part.attempts + 1)
    rest = Rest(workflow, part)
    first, cores_left = part.first_core, part.cores
    found = []
    for piece, (worker, slots) in enumerate(allocation):
        cores = len(slots)
        done, left_out = rest.cut(first, cores)
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
                slots,
                left_out,
            )
        )
        first, cores_left = first + cores, cores_left - cores
    whole = cores_left == 0 and rest.is_cut
    invariant(whole, "the pieces of a part have all of its cores and iterations")
    return found
