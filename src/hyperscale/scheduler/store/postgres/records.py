"""The records as the steps of one transaction see them.

Steps run on a copy of what was read so far. What a step lacks is noted; when all have run, that is
fetched, with the rows locked, and they run again from the start, until none lacks anything. Locks
are kept to the end of the transaction, so what was read is true when it is written. What was not
there cannot be locked: its writing is an INSERT, and whoever was faster makes the transaction run
again. Tokens are drawn after everything else: whoever held a job before drew a smaller one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.placement import Place, lane_of, place_of, watch_at
from hyperscale.scheduler.store import codec
from hyperscale.scheduler.store.tables import LETTERS, SCHEDULES, WORKERS, Kind

T = TypeVar("T")

LIVE: Final = "live jobs"
COUNTED: Final = frozenset({SCHEDULES.name, WORKERS.name, LETTERS.name})

Name = tuple[str, str]
"""(kind, key)"""
Row = tuple[Any, ...]


class Missing(Exception):
    """The copy lacks something a step asked for; it has been noted."""


class Copy:
    """What one transaction has read, and what its steps want to write."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job | None] = {}
        self.lives: dict[str, list[str]] = {}
        self.values: dict[Name, Any] = {}
        self.counts: dict[str, int] = {}
        self.tokens: list[int] = []
        self.wanted_jobs: set[str] = set()
        self.wanted_lives: set[str] = set()
        self.wanted_values: dict[Name, Kind[Any]] = {}
        self.wanted_counts: set[str] = set()
        self.wanted_tokens = 0
        self.restart()

    def restart(self) -> None:
        """Forget what steps wrote: they run again."""
        self.new_jobs: dict[str, Job | None] = {}
        self.placed: dict[str, Place] = {}
        self.new_values: dict[Name, Any] = {}
        self.kinds: dict[Name, Kind[Any]] = {}
        self.grown: dict[str, int] = {}
        self.tokens_used = 0
        self.news = False
        self.changes = 0

    @property
    def lacks(self) -> bool:
        return bool(
            self.wanted_jobs
            or self.wanted_lives
            or self.wanted_values
            or self.wanted_counts
            or self.wanted_tokens
        )

    def learned(self, tokens: Sequence[int] = ()) -> None:
        """What was wanted is known. Tokens drawn before this may be older than what it brought."""
        self.tokens = list(tokens)
        self.wanted_jobs.clear()
        self.wanted_lives.clear()
        self.wanted_values.clear()
        self.wanted_counts.clear()
        self.wanted_tokens = 0

    # As `Records`.

    def expect(self, job_ids: Iterable[str]) -> None:
        lacking = [i for i in job_ids if i not in self.new_jobs and i not in self.jobs]
        if lacking:
            self.wanted_jobs.update(lacking)
            raise Missing

    def job(self, job_id: str) -> Job | None:
        if job_id in self.new_jobs:
            return self.new_jobs[job_id]
        if job_id not in self.jobs:
            self.wanted_jobs.add(job_id)
            # Who does not find a job asks next whether there is room for it.
            if LIVE not in self.counts:
                self.wanted_counts.add(LIVE)
            raise Missing
        return self.jobs[job_id]

    def put_job(self, before: Job | None, job: Job, now: Instant) -> None:
        place = place_of(job, now)
        alive = (before is not None and not before.ended, not job.ended)
        if alive[0] != alive[1]:
            self._grow(LIVE, 1 if alive[1] else -1)
        self.new_jobs[job.id] = job
        self.placed[job.id] = place
        self.news = self.news or place in (Place.READY, Place.DELAYED)
        self.changes += 1

    def drop_job(self, job: Job) -> None:
        assert job.ended, "what has not ended is not removed"
        self.new_jobs[job.id] = None
        self.placed.pop(job.id, None)
        self.changes += 1

    def job_count(self) -> int:
        return self._count(LIVE)

    def live(self, schedule_id: str) -> list[Job]:
        if schedule_id not in self.lives:
            self.wanted_lives.add(schedule_id)
            raise Missing
        joined = [
            job.id
            for job in self.new_jobs.values()
            if job is not None and job.schedule_id == schedule_id
        ]
        jobs = [self.job(job_id) for job_id in dict.fromkeys(self.lives[schedule_id] + joined)]
        found = [job for job in jobs if job is not None and not job.ended]
        return sorted(found, key=lambda job: (job.tick or 0, job.created_at, job.id))

    def get(self, kind: Kind[T], key: str) -> T | None:
        name = (kind.name, key)
        value: T | None
        if name in self.new_values:
            value = self.new_values[name]
            return value
        if name not in self.values:
            self.wanted_values[name] = kind
            raise Missing
        value = self.values[name]
        return value

    def put(self, kind: Kind[T], key: str, value: T) -> None:
        if kind.name in COUNTED and self.get(kind, key) is None:
            self._grow(kind.name, 1)
        self._set(kind, key, value)
        self.news = self.news or kind is SCHEDULES

    def drop(self, kind: Kind[Any], key: str) -> None:
        if kind.name in COUNTED:
            self._grow(kind.name, -1)
        self._set(kind, key, None)

    def count(self, kind: Kind[Any]) -> int:
        return self._count(kind.name)

    def token(self) -> int:
        if self.tokens_used == len(self.tokens):
            self.wanted_tokens += 1
            raise Missing
        self.tokens_used += 1
        return self.tokens[self.tokens_used - 1]

    def _set(self, kind: Kind[Any], key: str, value: Any) -> None:
        self.new_values[kind.name, key] = value
        self.kinds[kind.name, key] = kind
        self.changes += 1

    def _grow(self, name: str, amount: int) -> None:
        self.grown[name] = self.grown.get(name, 0) + amount

    def _count(self, name: str) -> int:
        if name not in self.counts:
            self.wanted_counts.add(name)
            raise Missing
        return self.counts[name] + self.grown.get(name, 0)

    # What is to be written, as rows.

    def job_rows(self) -> tuple[list[Row], list[Row], list[str]]:
        """Inserts, updates, and ids of deletes."""
        inserts: list[Row] = []
        updates: list[Row] = []
        for job_id, place in self.placed.items():
            job = self.new_jobs[job_id]
            assert job is not None, "what is placed is there"
            if self.jobs.get(job_id) is None:
                inserts.append(inserted(job, place))
            else:
                updates.append(updated(job, place))
        gone = [i for i, job in self.new_jobs.items() if job is None and self.jobs.get(i)]
        return inserts, updates, gone

    def value_rows(self) -> tuple[list[Row], list[Row], list[Name]]:
        """Inserts of what was seen not to be there, upserts of what nobody looked for or what is
        locked, and names of deletes."""
        inserts: list[Row] = []
        upserts: list[Row] = []
        gone: list[Name] = []
        for name, value in sorted(self.new_values.items(), key=lambda item: item[0]):
            kind = self.kinds[name]
            if value is None:
                gone.append(name)
                continue
            at = None if kind.at is None else kind.at(value)
            rows = inserts if name in self.values and self.values[name] is None else upserts
            rows.append((*name, at, codec.encode(value)))
        return inserts, upserts, gone


def inserted(job: Job, place: Place) -> Row:
    return (
        job.id,
        codec.encode_head(job),
        codec.encode_run(job),
        job.state.value,
        place.value,
        watch_at(job, place),
        lane_of(job),
        job.rank,
        job.due_at,
        job.created_at,
        job.schedule_id,
        job.worker,
        job.avoid_worker,
        job.spec.kind,
        job.spec.name,
    )


def updated(job: Job, place: Place) -> Row:
    return (
        job.id,
        codec.encode_run(job),
        job.state.value,
        place.value,
        watch_at(job, place),
        job.rank,
        job.due_at,
        job.worker,
        job.avoid_worker,
    )
