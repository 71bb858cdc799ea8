"""Where a page of jobs ended, as an opaque word for the next one; and what a filter lets pass."""

from __future__ import annotations

from hyperscale.scheduler.model.errors import InvalidJob
from hyperscale.scheduler.model.instants import Instant
from hyperscale.scheduler.model.job import Job
from hyperscale.scheduler.stores.contract import JobFilter


def cursor_of(job: Job) -> str:
    return f"{job.created_at}.{job.id}"


def position_of(cursor: str) -> tuple[Instant, str] | None:
    if not cursor:
        return None
    instant, dot, job_id = cursor.partition(".")
    if not dot or not instant.isascii() or not instant.isdigit() or len(instant) > 18:
        raise InvalidJob(f"{cursor!r} is not a page cursor", "use the one the last page gave")
    return int(instant), job_id


def passes(job: Job, job_filter: JobFilter) -> bool:
    spec = job.spec
    return (
        (job_filter.state is None or job.state is job_filter.state)
        and (job_filter.schedule_id is None or job.schedule_id == job_filter.schedule_id)
        and (job_filter.name is None or spec.name == job_filter.name)
        and (job_filter.kind is None or spec.kind == job_filter.kind)
        and (job_filter.worker is None or job.worker == job_filter.worker)
        and all(spec.tags.get(tag) == value for tag, value in job_filter.tags.items())
    )
