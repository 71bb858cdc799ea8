"""What every store of the scheduler promises. Coordinator, API and workers know only this.

# Rules that hold for each method

- Atomic: it happens whole or not at all, also when the process dies inside it. A method that takes
  many things (`*_batch`, `fire`, sweeps) is atomic per thing.
- Durable before it returns, as far as the store promises durability at all (docs).
- Repeatable: after StoreUnavailable, or a lost answer, call it again.
- Time is an argument. Instants are microseconds since 1970 UTC (`model.instants`). Leases are
  judged by the clock of whoever sweeps, so they are right up to the skew between coordinators.
- `epoch` is the coordinator's fencing token. A call with an older one than the store has seen
  raises StaleLeader and changes nothing; 0 means "no coordinator is involved".
- Refusals are the types of `model.errors`; batches give them as values, in place.

Where a page of jobs ended, as an opaque word for the next one; and what a filter lets pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from hyperscale.scheduler.errors import InvalidJob, SchedulerError
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.history import Attempt, Audit, DeadLetter
from hyperscale.scheduler.queue.job import Job, JobState
from hyperscale.scheduler.queue.reports import Answer, Report
from hyperscale.scheduler.schedules.schedule import Fired, Firing, Schedule, ScheduleDefinition
from hyperscale.scheduler.worker.registration import Worker, WorkerBeat, WorkerEvent

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
    """How long, from the end of the thing. A job stays at least as long as its dedup window."""

    job_s: float = 86_400.0
    log_s: float = 7 * 86_400.0
    attempt_s: float = 90 * 86_400.0
    letter_s: float = 90 * 86_400.0
    worker_s: float = 86_400.0
    audit_s: float = 365 * 86_400.0


class Purged(msgspec.Struct, frozen=True, kw_only=True):
    jobs: int
    dedups: int
    logs: int
    attempts: int
    letters: int
    workers: int
    audits: int


class Value(msgspec.Struct, frozen=True):
    """`version` grows with every put in the whole store, so it may serve as a fencing token."""

    data: bytes
    version: int


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Past these a store refuses with StoreFull instead of growing."""

    jobs_max: int = 1_000_000
    schedules_max: int = 100_000
    workers_max: int = 10_000
    letters_max: int = 100_000
    """The only one that makes room instead: beyond it `purge` drops the oldest letters."""
    line_max: int = 100
    """Instances of one schedule waiting for each other; more are counted as skipped."""


DEFAULT_LIMITS: Final = StoreLimits()


class Store(Protocol):
    async def close(self) -> None: ...

    # Jobs in.

    async def submit(self, submission: Submission, now: Instant) -> Submitted:
        """Raises AlreadyExists, DedupConflict, StoreFull."""
        ...

    async def submit_batch(
        self, submissions: Sequence[Submission], now: Instant
    ) -> list[Submitted | SchedulerError]: ...

    # Jobs out. Best rank first, then due, then created, then id; among jobs the worker can do.

    async def claim(self, claim: Claim, now: Instant) -> list[Job]:
        """Up to `limit` jobs, each with a fresh token. Some due delayed jobs are promoted first;
        a leader who knows of many calls `promote` until it answers 0."""
        ...

    async def report(self, report: Report, now: Instant) -> Answer: ...

    async def report_batch(self, reports: Sequence[Report], now: Instant) -> list[Answer]:
        """In the given order; one job may occur more than once."""
        ...

    async def cancel(self, job_id: str, now: Instant) -> Job:
        """Ends it, or asks its worker to (`cancel_requested`). Raises IllegalTransition at an end,
        except that cancelling a cancelled job answers as before."""
        ...

    async def retry(self, job_id: str, new_id: str, now: Instant) -> Job:
        """A new job like an ended one. The same `new_id` again answers as before."""
        ...

    # Wake-ups: mark, then claim; if nothing came, wait until the mark is old.

    def mark(self) -> int: ...

    async def changed(self, mark: int, timeout_s: float) -> bool:
        """True as soon as something may have become claimable or due since `mark` was taken, also
        by another process; False after the timeout."""
        ...

    async def next_due(self, now: Instant) -> Instant | None:
        """When the earliest delayed job is due."""
        ...

    # Sweeps of the leading coordinator; each looks at `limit` things at most.

    async def promote(self, now: Instant, limit: int = BATCH_MAX, epoch: int = 0) -> int: ...

    async def expire(self, now: Instant, limit: int = BATCH_MAX, epoch: int = 0) -> list[Job]:
        """Jobs whose lease had ended, as they are now."""
        ...

    async def recover_worker(
        self, worker_id: str, now: Instant, limit: int = BATCH_MAX, epoch: int = 0
    ) -> list[Job]:
        """Every job the worker holds, taken away as if its lease had ended."""
        ...

    async def age(self, now: Instant, limit: int = BATCH_MAX, epoch: int = 0) -> int:
        """Betters the rank of jobs that wait too long."""
        ...

    async def purge(
        self, now: Instant, keep: Keep, limit: int = BATCH_MAX, epoch: int = 0
    ) -> Purged: ...

    # Schedules.

    async def create_schedule(self, schedule: Schedule) -> Schedule: ...

    async def update_schedule(
        self,
        schedule_id: str,
        version: int,
        definition: ScheduleDefinition,
        now: Instant,
        next_at: Instant | None,
        cursor: Instant | None = None,
        skipped: int = 0,
        before: Instant | None = None,
    ) -> Schedule:
        """Compare and set on `version`, and on the cursor when `before` says where it was. The
        cursor never moves back."""
        ...

    async def delete_schedule(self, schedule_id: str, version: int | None = None) -> Schedule:
        """Instances made already live on."""
        ...

    async def schedule(self, schedule_id: str) -> Schedule | None: ...

    async def schedules(self, after: str = "", limit: int = PAGE_MAX) -> list[Schedule]:
        """By id, those behind `after`."""
        ...

    async def due_schedules(self, now: Instant, limit: int = BATCH_MAX) -> list[Schedule]:
        """Earliest first."""
        ...

    async def next_schedule_at(self) -> Instant | None: ...

    async def fire(
        self, firings: Sequence[Firing], now: Instant, epoch: int = 0
    ) -> list[Fired | SchedulerError]: ...

    # Looking.

    async def job(self, job_id: str) -> Job | None: ...

    async def jobs(self, job_filter: JobFilter, cursor: str = "", limit: int = 100) -> JobPage: ...

    async def attempts(self, job_id: str, limit: int = PAGE_MAX) -> list[Attempt]:
        """Oldest first, without logs; they outlive the job."""
        ...

    async def log(self, job_id: str, token: int) -> str | None: ...

    async def counts(self) -> Counts: ...

    # Dead letters.

    async def letters(self, after: str = "", limit: int = PAGE_MAX) -> list[DeadLetter]: ...

    async def letter(self, job_id: str) -> DeadLetter | None: ...

    async def replay(self, job_id: str, new_id: str, now: Instant) -> Job:
        """A new job like the dead one, whose letter goes away in the same step."""
        ...

    async def drop(self, job_id: str) -> DeadLetter: ...

    # Workers.

    async def register(self, worker: Worker, now: Instant, alive_for_s: float) -> Worker:
        """With its session. Raises StaleSession while another process lives under the id."""
        ...

    async def beat(self, beat: WorkerBeat, now: Instant) -> Worker:
        """Raises NotFound (register again) or StaleSession (stop)."""
        ...

    async def move_worker(self, worker_id: str, event: WorkerEvent) -> Worker:
        """DRAIN by a person, LOST by the coordinator."""
        ...

    async def remove_worker(self, worker_id: str) -> None: ...

    async def workers(self, after: str = "", limit: int = PAGE_MAX) -> list[Worker]: ...

    # The rest.

    async def audit(self, row: Audit) -> Audit:
        """Numbered and chained."""
        ...

    async def audits(self, after: int = 0, limit: int = PAGE_MAX) -> list[Audit]: ...

    async def get(self, key: str) -> Value | None: ...

    async def put(self, key: str, data: bytes, version: int) -> Value:
        """Compare and set; `version` 0 means "not there". Raises VersionConflict."""
        ...

    async def delete(self, key: str, version: int) -> None: ...

    async def epoch(self) -> int:
        """The highest coordinator epoch seen."""
        ...

    async def raise_epoch(self, epoch: int) -> None:
        """A new leader's first act: from here on older ones are refused. Raises StaleLeader."""
        ...


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
