"""What callers of a store give and get: submissions, claims, filters, pages, counts and limits."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job, JobState

BATCH_MAX: Final = 1000
PAGE_MAX: Final = 1000
VALUE_BYTES_MAX: Final = 64 * 1024


class Dedup(msgspec.Struct, frozen=True, kw_only=True):
    """Within `window_s` the same key gives the original job; `digest` tells other content."""

    key: str
    digest: str
    window_s: float


class Submission(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    job: Job
    dedup: Dedup | None = None


class Submitted(msgspec.Struct, frozen=True, gc=False):
    job: Job
    """The new job, or the original one."""
    created: bool


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    worker: str
    kinds: tuple[str, ...] = ()
    """Those it can run; none named, all."""
    capabilities: tuple[str, ...] = ()
    limit: int = 1
    lease_s: float = 60.0
    """To start in; `Started` brings its own. With `start`, to be heard of again in."""
    start: bool = False
    """Start them in the same step: who runs them at once saves a write and a wait for each."""
    epoch: int = 0


class Taken(NamedTuple):
    promoted: int
    """Delayed jobs that were due and are ready now."""
    jobs: list[Job]


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    state: JobState | None = None
    schedule_id: str | None = None
    name: str | None = None
    kind: str | None = None
    worker: str | None = None
    tags: dict[str, str] = {}


class JobPage(msgspec.Struct, frozen=True):
    """Newest first. `cursor` goes on where this page ends; "" at the end."""

    jobs: tuple[Job, ...]
    cursor: str


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    states: dict[JobState, int]
    ready: int
    delayed: int
    waiting: int
    schedules: int
    letters: int


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """How long, from the end of the thing, and how many: beyond a number the oldest go first. A job
    stays at least as long as its dedup window. Each thing has a bound of bytes, so a number of them
    has one too: an attempt some 0.7 KB, an audit row 1 KB, a run 0.2 KB, a log 64 KB at most."""

    job_s: float = 86_400.0
    log_s: float = 7 * 86_400.0
    attempt_s: float = 90 * 86_400.0
    letter_s: float = 90 * 86_400.0
    worker_s: float = 86_400.0
    audit_s: float = 365 * 86_400.0
    result_s: float = 90 * 86_400.0
    """Results of load tests."""
    history_s: float = 365 * 86_400.0
    """What became of the instances of schedules, in short."""
    jobs_max: int = 1_000_000
    logs_max: int = 100_000
    results_max: int = 10_000
    attempts_max: int = 1_000_000
    audits_max: int = 1_000_000
    history_max: int = 1_000_000


class Purged(msgspec.Struct, frozen=True, kw_only=True):
    jobs: int
    dedups: int
    logs: int
    attempts: int
    letters: int
    workers: int
    audits: int
    results: int
    history: int


class Value(msgspec.Struct, frozen=True):
    """`version` grows with every put in the whole store, so it may serve as a fencing token."""

    data: bytes
    version: int


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Past these a store refuses with StoreFull instead of growing."""

    jobs_max: int = 1_000_000
    """That have not ended: those that have are kept as long and as many as `Keep` says."""
    schedules_max: int = 100_000
    workers_max: int = 10_000
    letters_max: int = 100_000
    """The only one that makes room instead: beyond it `purge` drops the oldest letters."""
    line_max: int = 100
    """Instances of one schedule waiting for each other; more are counted as skipped."""
    suspect_after_s: float = 30.0
    """A worker that was silent for so long gets no job until it is heard again."""


DEFAULT_LIMITS: Final = StoreLimits()


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
