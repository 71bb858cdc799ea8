"""Records of endings: of a part, by itself or with its worker, of a workflow, of a job."""

from __future__ import annotations

from msgspec.structs import replace

from hyperscale.cluster.jobs.lifecycle import RECOVERY, LifecycleState
from hyperscale.cluster.jobs.records import (
    Failed,
    Finished,
    GivenUp,
    Part,
    PartEnded,
    PartLost,
    Placement,
    ToldLate,
    TornDown,
)
from hyperscale.cluster.jobs.state import (
    Condense,
    JobState,
    Loss,
    PartState,
    ReplicatedState,
    WorkflowState,
)
from hyperscale.cluster.jobs.unheard import unheard


def ended(replicated: ReplicatedState, job: JobState, record: PartEnded) -> bool:
    workflow, part = find(job, record.part)
    if workflow is None or part is None or part.live is None or part.live.fence != record.fence:
        return False
    placement = part.live
    asked = workflow.is_winding_down or job.ending == "stop"
    if record.outcome in ("cut off", "cancelled") and not asked:
        at_s = placement.resume_at_s + record.measured_s
        reason = record.error or f"worker {record.worker} was cut off from its managers"
        _lose(
            replicated, job, workflow, part,
            at_s, record.iterations, _unheard(record), record.result, reason, record.age_s,
            what="part on worker",
        )  # fmt: skip
        part.losses[-1].generators = record.lost
        part.losses[-1].fence = None
        return True
    part.live = None
    part.ended = record
    ready = workflow.started or record.outcome != "failed"
    if workflow.needs.tears_down and ready and not workflow.torn_down:
        _keep_for_teardown(replicated, workflow, part, placement)
    else:
        replicated.free(placement)
    if record.outcome == "failed" and not workflow.is_winding_down:
        workflow.error = record.error or "failed"
        workflow.lifecycle.transition(
            workflow.lifecycle.state, LifecycleState.FAILED, workflow.error, record.age_s
        )
    if record.outcome == "completed":
        _make_up(workflow, part, record.age_s)
    close(workflow, record.age_s)
    return True


def _unheard(end: PartEnded) -> int:
    """Processes of it died with what they had not told their worker yet."""
    return unheard(end.iterations / end.measured_s, 0.0) if end.lost and end.measured_s else 0


def _keep_for_teardown(
    replicated: ReplicatedState, workflow: WorkflowState, part: PartState, placement: Placement
) -> None:
    """Processes of one ended part are kept: of part 0, which also ran setup(), once it ended."""
    others = [other for other in workflow.parts.values() if other.holding is not None]
    if others and part.number != 0:
        replicated.free(placement)
        return
    for other in others:
        if other.holding is not None:
            replicated.free(other.holding)
            other.holding = None
    part.holding = placement


def lost(replicated: ReplicatedState, job: JobState, record: PartLost) -> bool:
    workflow, part = find(job, record.part)
    if workflow is None or part is None:
        return False
    if part.live is not None and part.live.fence == record.fence:
        if workflow.is_winding_down and record.worker not in job.unconfirmed:
            job.unconfirmed.append(record.worker)
        _lose(
            replicated, job, workflow, part,
            record.at_s, record.iterations, record.unheard,
            record.result, record.reason, record.age_s,
        )  # fmt: skip
        return True
    if part.holding is not None and part.holding.fence == record.fence:
        replicated.free(part.holding)
        part.holding = None
        return True
    return False


def told_late(replicated: ReplicatedState, job: JobState, record: ToldLate) -> bool:
    workflow, part = find(job, record.part)
    if workflow is None or part is None or job.is_settled:
        return False
    loss = part.awaited(record.fence)
    if loss is None:
        return False
    more = record.iterations - loss.iterations - loss.unheard
    loss.iterations, loss.result, loss.fence = record.iterations, record.result, None
    loss.unheard = 0
    if workflow.needs.planned_s is None and not part.given_up:
        part.left_out -= more
        _make_up(workflow, part, record.age_s)
    return True


def _make_up(workflow: WorkflowState, part: PartState, age_s: float) -> None:
    """A part that ended without iterations which nobody made is not done: another attempt makes
    them. Where teardown() is to run it stays as it is."""
    end, open_ = part.ended, part.left_out > part.made_up
    if end is None or not open_ or part.holding is not None or workflow.is_winding_down:
        return
    part.losses.append(
        Loss(
            worker=end.worker,
            at_s=0.0,
            cores=part.cores,
            iterations=end.iterations,
            unheard=0,
            result=end.result,
            reason="a lost worker had made fewer iterations than it might have",
            age_s=age_s,
            under_load=False,
        )
    )
    part.iterations_done += end.iterations
    part.ended = None
    close(workflow, age_s)


def _lose(
    replicated: ReplicatedState,
    job: JobState,
    workflow: WorkflowState,
    part: PartState,
    at_s: float,
    iterations: int,
    unheard: int,
    result: bytes,
    reason: str,
    age_s: float,
    *,
    what: str = "worker",
) -> None:
    placement = part.live
    if placement is None:
        return
    counts = workflow.needs.is_test and workflow.started
    part.losses.append(
        Loss(
            worker=placement.worker,
            at_s=max(at_s, placement.resume_at_s) if counts else 0.0,
            cores=placement.cores,
            iterations=iterations if counts else 0,
            unheard=unheard if counts else 0,
            result=result if counts else b"",
            reason=reason,
            age_s=age_s,
            under_load=counts,
            fence=placement.fence if counts else None,
        )
    )
    loss = part.losses[-1]
    part.iterations_done += loss.iterations + loss.unheard
    if counts:
        share = f"{loss.cores} of {workflow.total_cores} cores"
        job.mark(workflow.needs.name, loss.at_s, f"{what} {loss.worker} lost, {share}")
    workflow.excluded.add(placement.worker)
    vacate(replicated, part)
    if workflow.is_winding_down:
        part.given_up = reason
    close(workflow, age_s)


def given_up(replicated: ReplicatedState, job: JobState, record: GivenUp) -> bool:
    workflow, part = find(job, record.part)
    if workflow is None or part is None or not part.is_unplaced:
        return False
    part.given_up = record.reason
    close(workflow, record.age_s)
    return True


def failed(replicated: ReplicatedState, job: JobState, record: Failed) -> bool:
    workflow = job.workflows.get(record.workflow)
    if workflow is None or not workflow.lifecycle.transition(
        workflow.lifecycle.state, LifecycleState.FAILED, record.reason, record.age_s
    ):
        return False
    workflow.error = record.reason
    return True


def torn_down(replicated: ReplicatedState, job: JobState, record: TornDown) -> bool:
    workflow = job.workflows.get(record.workflow)
    if workflow is None or not workflow.needs_teardown:
        return False
    workflow.torn_down = True
    workflow.teardown_requests = record.requests
    workflow.warning = record.warning
    for part in workflow.parts.values():
        if part.holding is not None:
            replicated.free(part.holding)
            part.holding = None
    return True


def finished(replicated: ReplicatedState, job: JobState, record: Finished) -> bool:
    for workflow in job.workflows.values():
        for part in workflow.parts.values():
            vacate(replicated, part)
            if part.holding is not None:
                replicated.free(part.holding)
                part.holding = None
    job.finished = record
    job.reason = record.reason
    if record.results:
        _condense(replicated.condense, job)
    return True


def _condense(condense: Condense, job: JobState) -> None:
    """All that was measured is in the job's own result: its parts keep how they ended."""
    job.submitted = replace(job.submitted, body=condense.body(job.submitted.body))
    for workflow in job.workflows.values():
        workflow.context = b""
        for part in workflow.parts.values():
            if part.ended is not None:
                part.ended = replace(part.ended, result=condense.result(part.ended.result))
            for loss in part.losses:
                loss.result = condense.result(loss.result) if loss.result else b""


def find(job: JobState, part: Part) -> tuple[WorkflowState | None, PartState | None]:
    workflow = job.workflows.get(part.workflow) if part.job_id == job.job_id else None
    return workflow, (workflow.parts.get(part.number) if workflow else None)


def vacate(replicated: ReplicatedState, part: PartState) -> None:
    if part.live is not None:
        replicated.free(part.live)
        part.live = None


def close(workflow: WorkflowState, age_s: float) -> None:
    """Nothing of it runs any more: how did the workflow end, or what does it wait for?"""
    life = workflow.lifecycle
    if workflow.is_live:
        return
    if life.state is LifecycleState.CANCELLING:
        life.transition(
            LifecycleState.CANCELLING, LifecycleState.CANCELLED, "nothing of it runs", age_s
        )
        return
    if life.state not in (
        LifecycleState.DISPATCHED,
        LifecycleState.RUNNING,
        LifecycleState.FAILED_READY_FOR_RETRY,
    ):
        return
    if not all(part.is_final for part in workflow.parts.values()):
        _recover(workflow, age_s)
        return
    if any(part.ended or _measured(part) for part in workflow.parts.values()):
        if life.state is LifecycleState.DISPATCHED:
            life.transition(
                LifecycleState.DISPATCHED, LifecycleState.RUNNING, "its end came first", age_s
            )
        life.transition(life.state, LifecycleState.COMPLETED, "all parts ended", age_s)
        return
    workflow.error = next(p.given_up for p in workflow.parts.values() if p.given_up)
    life.transition(life.state, LifecycleState.FAILED, workflow.error, age_s)


def _recover(workflow: WorkflowState, age_s: float) -> None:
    """What is left of it was lost, or given back. A worker that had no room is no failure."""
    life = workflow.lifecycle
    if life.state is LifecycleState.FAILED_READY_FOR_RETRY or (
        life.state is LifecycleState.DISPATCHED and workflow.returned
    ):
        return
    losses = [loss for part in workflow.unplaced() for loss in part.losses]
    last = max(losses, key=lambda loss: loss.age_s, default=None)
    reason = workflow.returned or ("lost before it began" if last is None else last.reason)
    for target, why in zip(
        RECOVERY, (reason, "dependents are held back", "nothing of it runs"), strict=True
    ):
        life.transition(life.state, target, why, age_s)


def _measured(part: PartState) -> bool:
    return any(loss.result for loss in part.losses)
