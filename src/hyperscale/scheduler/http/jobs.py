"""`/api/v1/jobs`: submit, look, cancel, retry."""

from __future__ import annotations

import hashlib
import uuid
from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Query, Response

from hyperscale.scheduler.errors import AlreadyExists, DedupConflict, NotFound
from hyperscale.scheduler.http.answers import (
    JobList,
    JobView,
    Submission,
    moment,
)
from hyperscale.scheduler.http.context import Asked, Operator, Viewer, retrying
from hyperscale.scheduler.http.history_answers import AttemptList, AttemptView, LogView
from hyperscale.scheduler.http.requests import ID_PATTERN, JobRequest, instant
from hyperscale.scheduler.queue.identity import instance_id
from hyperscale.scheduler.queue.job import Job, JobState
from hyperscale.scheduler.queue.spec import TAGS_MAX, JobSpec
from hyperscale.scheduler.schedules.cron.zones import offsets_of
from hyperscale.scheduler.store.types import JobFilter, Submitted
from hyperscale.scheduler.telemetry.spans import TRACEPARENT
from hyperscale.scheduler.worker.executors.loadtest_report import unpacked
from hyperscale.scheduler.worker.registration import nobody_can_run

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

JobId = Annotated[str, Path(pattern=ID_PATTERN)]
TAG_PATTERN = r"^[^=]{1,63}=.{0,200}$"


@router.post("", status_code=201, responses={200: {"model": Submission}})
async def submit_job(body: JobRequest, asked: Operator, response: Response) -> Submission:
    """201 for a new job, 200 with the first one for a repeated idempotency key, 409 for the same
    key with other content."""
    async with asked.recorded("job.submit", body.name):
        if body.cron_expression is not None:
            answer = await _as_schedule(body, asked)
        else:
            answer = await _once(body, asked)
    if not answer.created:
        response.status_code = 200
    return answer


async def _once(body: JobRequest, asked: Asked) -> Submission:
    service = asked.context.service
    offsets_of(body.timezone)
    job_id = body.job_id or service.new_id()
    spec = _within_trace(body.spec(body.name), asked.traceparent)
    tries = 0

    async def submit() -> Submitted:
        nonlocal tries
        tries += 1
        try:
            return await service.submit(
                spec,
                due_at=instant(body.run_at),
                job_id=job_id,
                key=body.idempotency_key,
                by_content=body.dedup_by_content,
                window_s=body.dedup_window_s,
                correlation_id=asked.correlation_id,
            )
        except AlreadyExists:
            known = await service.store.job(job_id) if tries > 1 else None
            if known is None or known.correlation_id != asked.correlation_id:
                raise
            return Submitted(known, created=True)  # by a try whose answer was lost

    submitted = await retrying(submit)
    job = submitted.job
    return Submission(
        job_id=job.id,
        schedule_id=job.schedule_id or None,
        status=str(job.state),
        created=submitted.created or (tries > 1 and job.correlation_id == asked.correlation_id),
        next_run=None if job.ended else moment(job.due_at),
        message=body.adjustment() or await _nobody_can_run(job, asked),
    )


async def _nobody_can_run(job: Job, asked: Asked) -> str | None:
    """Said at once: nothing else about the job looks wrong."""
    if job.ended or not nobody_can_run(job.spec, await asked.context.service.store.workers()):
        return None
    needed = "".join(f" with {each}" for each in job.spec.capabilities)
    return f"no worker runs {job.spec.kind} jobs{needed} at the moment: it waits for one"


def _within_trace(spec: JobSpec, traceparent: str) -> JobSpec:
    """Tags are not part of what makes two submissions one."""
    if not traceparent or TRACEPARENT in spec.tags or len(spec.tags) >= TAGS_MAX:
        return spec
    return msgspec.structs.replace(spec, tags={**spec.tags, TRACEPARENT: traceparent})


async def _as_schedule(body: JobRequest, asked: Asked) -> Submission:
    """A key makes the schedule's id, so the same key finds the same schedule, for as long as it
    lives."""
    service, definition = asked.context.service, body.definition()
    if body.idempotency_key is None:
        schedule_id = uuid.uuid4().hex
    else:
        schedule_id = "key-" + hashlib.sha256(body.idempotency_key.encode()).hexdigest()[:32]
    created = True
    try:
        schedule = await retrying(lambda: service.add_schedule(schedule_id, definition))
    except AlreadyExists:
        known = await service.store.schedule(schedule_id)
        if known is None:
            raise
        if body.idempotency_key is not None:
            if known.definition != definition:
                raise DedupConflict(body.idempotency_key, schedule_id) from None
            created = False
        schedule = known  # without a key: made by a try whose answer was lost
    next_at = schedule.next_at
    job_id = schedule.last_job_id if next_at is None else instance_id(schedule.id, next_at)
    return Submission(
        job_id=job_id,
        schedule_id=schedule.id,
        status="SCHEDULED",
        created=created,
        next_run=moment(next_at),
        message=body.adjustment(),
    )


@router.get("")
async def list_jobs(
    asked: Viewer,
    state: JobState | None = None,
    schedule_id: Annotated[str | None, Query(max_length=63)] = None,
    name: Annotated[str | None, Query(max_length=200)] = None,
    kind: Annotated[str | None, Query(max_length=63)] = None,
    worker: Annotated[str | None, Query(max_length=63)] = None,
    tag: Annotated[list[Annotated[str, Query(pattern=TAG_PATTERN)]], Query(max_length=16)] = [],  # noqa: B006 - FastAPI copies it
    cursor: Annotated[str, Query(max_length=200)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JobList:
    """Newest first; `tag=key=value` may be repeated."""
    wanted = JobFilter(
        state=state,
        schedule_id=schedule_id,
        name=name,
        kind=kind,
        worker=worker,
        tags=dict(one.split("=", 1) for one in tag),
    )
    page = await asked.context.service.store.jobs(wanted, cursor, limit)
    return JobList(jobs=[JobView.of(job) for job in page.jobs], cursor=page.cursor)


@router.get("/{job_id}")
async def get_job(job_id: JobId, asked: Viewer) -> JobView:
    """One that failed for good is found as long as its dead letter is kept."""
    store = asked.context.service.store
    job = await store.job(job_id)
    if job is None:
        letter = await store.letter(job_id)
        if letter is None:
            raise NotFound("job", job_id)
        job = letter.job
    return JobView.of(job)


@router.post("/{job_id}/cancel")
async def cancel_job(job_id: JobId, asked: Operator) -> JobView:
    """Ends it, or asks its worker to: then `cancel_requested` is true until the worker answers."""
    async with asked.recorded("job.cancel", job_id):
        service = asked.context.service
        return JobView.of(await service.store.cancel(job_id, service.now()))


@router.post("/{job_id}/retry", status_code=201)
async def retry_job(job_id: JobId, asked: Operator) -> JobView:
    """A new job like an ended one."""
    async with asked.recorded("job.retry", job_id):
        service = asked.context.service
        return JobView.of(await service.store.retry(job_id, service.new_id(), service.now()))


@router.get("/{job_id}/history")
async def job_history(job_id: JobId, asked: Viewer) -> AttemptList:
    """Every attempt, oldest first; they outlive the job."""
    store = asked.context.service.store
    attempts = await store.attempts(job_id)
    if not attempts and await store.job(job_id) is None:
        raise NotFound("job", job_id)
    return AttemptList(attempts=[AttemptView.of(one) for one in attempts])


@router.get("/{job_id}/results")
async def job_results(
    job_id: JobId,
    asked: Viewer,
    fencing_token: Annotated[int | None, Query(ge=0, le=2**53)] = None,
) -> Response:
    """Of a load test, as `hyperscale run --json` writes them; of the last attempt that has any."""
    store = asked.context.service.store
    if fencing_token is None:
        measured = [one.token for one in await store.attempts(job_id) if one.measured]
        fencing_token = measured[-1] if measured else 0
    packed = await store.results(job_id, fencing_token)
    if packed is None:
        raise NotFound("results of job", job_id)
    return Response(unpacked(packed), media_type="application/json")


@router.get("/{job_id}/logs")
async def job_logs(
    job_id: JobId,
    asked: Viewer,
    fencing_token: Annotated[int | None, Query(ge=0, le=2**53)] = None,
) -> LogView:
    """Of one attempt; the last one when none is named."""
    store = asked.context.service.store
    if fencing_token is None:
        attempts = await store.attempts(job_id)
        if not attempts:
            known = await store.job(job_id) is not None
            raise NotFound("finished attempt of job" if known else "job", job_id)
        fencing_token = attempts[-1].token
    text = await store.log(job_id, fencing_token)
    if text is None:
        raise NotFound(f"log of attempt {fencing_token} of job", job_id)
    return LogView(job_id=job_id, fencing_token=fencing_token, log=text)
