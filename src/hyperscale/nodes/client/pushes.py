"""What a program that submitted a job is told while it runs.

Counts of a push are those of its window, which may be longer than 100 ms when windows were put
together; totals are of the whole workflow and never go backwards.
"""

from __future__ import annotations

from typing import Any

import msgspec

from hyperscale.metrics.delta import Delta, RequestDelta
from hyperscale.metrics.results import Results, WorkflowResult
from hyperscale.metrics.totals import covered
from hyperscale.nodes.protocol.jobs import JobView, Window, WorkflowDone

FINAL = frozenset({"completed", "partial", "failed", "cancelled", "timeout"})


class _Push(msgspec.Struct, frozen=True, kw_only=True):
    job_id: str


class StepStats(msgspec.Struct, frozen=True, kw_only=True):
    step_name: str
    completed_count: int = 0
    failed_count: int = 0
    total_count: int = 0


class WorkerWindowStats(msgspec.Struct, frozen=True, kw_only=True):
    worker_id: str
    completed_count: int = 0
    failed_count: int = 0
    rate_per_second: float = 0.0
    step_stats: tuple[StepStats, ...] = ()


class JobStatusPush(_Push, frozen=True, kw_only=True):
    """One for every change of the job's status; exactly one is final."""

    status: str
    message: str = ""
    total_completed: int = 0
    total_failed: int = 0
    overall_rate: float = 0.0
    elapsed_seconds: float = 0.0
    is_final: bool = False


class WindowedStatsPush(_Push, frozen=True, kw_only=True):
    workflow_id: str
    workflow_name: str
    window_start: float  # seconds of load time
    window_end: float
    completed_count: int = 0
    failed_count: int = 0
    rate_per_second: float = 0.0
    step_stats: tuple[StepStats, ...] = ()
    worker_count: int = 0
    per_worker_stats: tuple[WorkerWindowStats, ...] = ()
    is_aggregated: bool = True
    datacenter: str = ""
    total_completed: int = 0
    total_failed: int = 0


class WorkflowResultPush(_Push, frozen=True, kw_only=True):
    workflow_id: str
    workflow_name: str
    status: str
    error: str = ""
    hint: str = ""
    result: WorkflowResult | None = None


class JobOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a job. `results` is None when it ended without any."""

    job_id: str
    status: str
    reason: str = ""
    results: Results | None = None
    workflows: tuple[WorkflowResultPush, ...] = ()


def status_push(view: JobView, is_final: bool) -> JobStatusPush:
    requests = sum(workflow.requests for workflow in view.workflows)
    failed = sum(workflow.failed for workflow in view.workflows)
    seconds = covered((workflow.started_s, workflow.elapsed_s) for workflow in view.workflows)
    return JobStatusPush(
        job_id=view.job_id,
        status=view.status,
        message=view.reason,
        total_completed=requests - failed,
        total_failed=failed,
        overall_rate=requests / seconds if seconds else 0.0,
        elapsed_seconds=view.age_s,
        is_final=is_final,
    )


def window_push(
    job_id: str, window: Window, since_s: float, requests: int, failed: int
) -> WindowedStatsPush:
    """A window that began at `since_s`; the totals are those after it."""
    steps = _steps(window.delta)
    in_window = sum(step.total_count for step in steps)
    bad = sum(step.failed_count for step in steps)
    seconds = window.elapsed_s - since_s
    return WindowedStatsPush(
        job_id=job_id,
        workflow_id=window.workflow,
        workflow_name=window.workflow,
        window_start=since_s,
        window_end=window.elapsed_s,
        completed_count=in_window - bad,
        failed_count=bad,
        rate_per_second=in_window / seconds if seconds > 0 else 0.0,
        step_stats=steps,
        worker_count=window.workers,
        total_completed=requests - failed,
        total_failed=failed,
    )


def together(earlier: WindowedStatsPush, later: WindowedStatsPush) -> WindowedStatsPush:
    """Two windows of one workflow as one: nothing is left out, the later word counts."""
    steps = {step.step_name: step for step in earlier.step_stats}
    for step in later.step_stats:
        before = steps.get(step.step_name, StepStats(step_name=step.step_name))
        steps[step.step_name] = StepStats(
            step_name=step.step_name,
            completed_count=before.completed_count + step.completed_count,
            failed_count=before.failed_count + step.failed_count,
            total_count=before.total_count + step.total_count,
        )
    completed = earlier.completed_count + later.completed_count
    failed = earlier.failed_count + later.failed_count
    seconds = later.window_end - earlier.window_start
    changes: dict[str, Any] = {
        "window_start": earlier.window_start,
        "completed_count": completed,
        "failed_count": failed,
        "rate_per_second": (completed + failed) / seconds if seconds > 0 else 0.0,
        "step_stats": tuple(steps.values()),
    }
    return msgspec.structs.replace(later, **changes)


def result_push(job_id: str, done: WorkflowDone) -> WorkflowResultPush:
    result = None
    if done.result:
        result = msgspec.json.decode(done.result, type=WorkflowResult)
    return WorkflowResultPush(
        job_id=job_id,
        workflow_id=done.workflow,
        workflow_name=done.workflow,
        status=done.status,
        error=done.error,
        hint=done.hint,
        result=result,
    )


def _steps(delta: Delta) -> tuple[StepStats, ...]:
    steps: dict[str, list[RequestDelta]] = {}
    for one in delta.requests:
        steps.setdefault(one.key.step, []).append(one)
    return tuple(
        StepStats(
            step_name=name,
            completed_count=sum(one.count + one.unsent - one.failed for one in requests),
            failed_count=sum(one.failed for one in requests),
            total_count=sum(one.count for one in requests),
        )
        for name, requests in steps.items()
    )
