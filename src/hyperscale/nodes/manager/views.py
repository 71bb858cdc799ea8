"""What people and scripts are told about jobs and workers."""

from __future__ import annotations

from hyperscale.cluster.jobs.queries import JobQueries
from hyperscale.cluster.jobs.state import JobState, WorkflowState
from hyperscale.nodes.manager.live import Live
from hyperscale.nodes.member.endings import Ending, Endings
from hyperscale.nodes.protocol.jobs import JobView, WorkflowView


def job_view(jobs: JobQueries, live: Live, endings: Endings, now: float, job: JobState) -> JobView:
    finished = job.finished
    ending = endings.of(job.job_id, finished.results if finished is not None else None)
    age_s = jobs.age_s(now, job.job_id)
    began = any(workflow.started for workflow in job.workflows.values())
    return JobView(
        job_id=job.job_id,
        name=job.submitted.name,
        status="prepared" if jobs.is_prepared(job) else job.status,
        reason=finished.reason if finished else job.reason or jobs.waiting_for(job.job_id),
        age_s=round(age_s, 3),
        began_ago_s=round(job.run_age_s(age_s), 3) if began else None,
        position=jobs.position(job.job_id),
        paused=job.paused,
        workflows=tuple(
            _workflow_view(jobs, live, ending, now, job, workflow)
            for workflow in job.workflows.values()
        ),
        lost=tuple(ending.lost if ending else jobs.lost_sentences(job.job_id)),
        coverage=ending.coverage if ending else jobs.coverage(job.job_id),
        requested_by=job.submitted.requested_by,
        correlation_id=job.submitted.correlation_id,
        exit_code=ending.exit_code if ending else None,
        idempotency_key=job.submitted.idempotency_key,
        owner=job.submitted.owner,
    )


def _workflow_view(
    jobs: JobQueries,
    live: Live,
    ending: Ending | None,
    now: float,
    job: JobState,
    workflow: WorkflowState,
) -> WorkflowView:
    name = workflow.needs.name
    if ending is not None:
        requests, failed, elapsed_s = ending.numbers(name)
    else:
        requests, failed = live.totals(job.job_id, name)
        elapsed_s = live.elapsed_s(job.job_id, name)
        if not workflow.is_over:
            elapsed_s = jobs.load_s(now, job.job_id, name)
    return WorkflowView(
        name=name,
        state=workflow.lifecycle.public,
        lifecycle=workflow.lifecycle.state.value,
        cores=workflow.total_cores,
        workers=tuple(sorted({placement.worker for placement in workflow.live()})),
        attempts=max((part.attempts for part in workflow.parts.values()), default=0),
        elapsed_s=round(elapsed_s, 3),
        planned_s=workflow.needs.planned_s,
        requests=requests,
        failed=failed,
        error=workflow.error,
        rate_percent=workflow.steered.get("rate", 100),
        history=tuple(workflow.lifecycle.lines()),
        started_s=round(job.load_age_s(workflow), 3) if workflow.started else 0.0,
    )
