"""The records of a SQLite file, as one transaction sees them.

Writes are kept back until the transaction ends or a question needs an index: a job that is started
and completed in one batch is then read once and written once. Live jobs and counters stay known
after a transaction, until another connection changes the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeVar

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job, JobState
from hyperscale.scheduler.queue.placement import BOOST_AGE, Place, lane_of, place_of, watch_at
from hyperscale.scheduler.store import codec
from hyperscale.scheduler.store.sqlite.bulk import Bulk, Lookup
from hyperscale.scheduler.store.tables import LETTERS, SCHEDULES, WORKERS, Kind

T = TypeVar("T")

NEWS: Final = "news"
_TOKENS: Final = "tokens"
_LIVE: Final = "live jobs"
KNOWN_MAX: Final = 4096
"""Live jobs remembered, some 8 MB. Those that wait are not added to a full memory: they are claimed
in the order they came, so the oldest are the ones to keep."""
COUNTED: Final = frozenset({SCHEDULES.name, WORKERS.name, LETTERS.name})
_STATES: Final = {state: state.value for state in JobState}
_PLACES: Final = {place: place.value for place in Place}
"""As SQLite takes them at once; of an enum's member it first asks how to adapt it."""
_TO_BE_CLAIMED: Final = (Place.READY, Place.DELAYED)

_INSERT: Final = Bulk(
    "INSERT OR ROLLBACK INTO jobs (id, head, run, state, place, at, lane, rank, due_at, created_at,"
    " schedule_id, worker)",
    12,
    "",
)
_UPDATE: Final = Bulk(
    "UPDATE OR ROLLBACK jobs SET run = column2, state = column3, place = column4, at = column5,"
    " rank = column6, due_at = column7, worker = column8 FROM (",
    8,
    ") WHERE id = column1",
)
_SAVE: Final = Bulk(
    "INSERT OR ROLLBACK INTO records",
    4,
    "ON CONFLICT DO UPDATE SET at = excluded.at, data = excluded.data",
)
_FIND: Final = Lookup("SELECT id, head, run FROM jobs WHERE id IN")
_COUNT: Final = "INSERT INTO counters VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2"
# A delayed job has its submitted priority (ageing begins when it is ready), hence the plain sum.
_PROMOTE: Final = (
    f"UPDATE jobs SET place = {Place.READY:d},"
    f" at = CASE WHEN rank > 0 THEN max(due_at, created_at) + {BOOST_AGE} END"
    " WHERE number IN (SELECT number FROM jobs"
    f" WHERE place = {Place.DELAYED:d} AND at <= ? AND at IS NOT NULL ORDER BY at LIMIT ?)"
)
# From lane to lane along the index, without looking at the jobs between.
_LANES: Final = """
WITH RECURSIVE lanes (lane) AS (
  SELECT min(lane) FROM jobs WHERE place = 2
  UNION ALL
  SELECT (SELECT min(lane) FROM jobs WHERE place = 2 AND lane > lanes.lane)
  FROM lanes WHERE lane IS NOT NULL
) SELECT lane FROM lanes WHERE lane IS NOT NULL
"""
# Answered by the index alone: the jobs themselves are often known.
_READY: Final = (
    "SELECT rank, due_at, created_at, id FROM jobs INDEXED BY jobs_ready"
    " WHERE place = 2 AND lane = ?"
    " ORDER BY rank, due_at, created_at, id LIMIT ?"
)


class SqliteRecords:
    """Lives as long as its connection; `begin` and `flush` frame each transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._version: int | None = None
        self.changes = 0
        self.forget()
        self._clear()

    def begin(self) -> None:
        """Inside the transaction: what this connection knows is then the file's newest state,
        unless another one has changed it."""
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self.forget()
            self._version = version
        self._clear()

    def flush(self) -> int | None:
        """Write what was kept back; the new sign of change, if there is news."""
        sign = self._add(NEWS, 1) if self.news else None
        self._save_jobs()
        self._save_values()
        changed = {n: value for n, value in self._counters.items() if value != self._stored[n]}
        self._db.executemany(_COUNT, changed.items())
        self._stored.update(changed)
        self._remember()
        return sign

    def forget(self) -> None:
        """The transaction was not committed, or was not the only one."""
        self._known: dict[str, Job] = {}
        self._counters: dict[str, int] = {}
        self._stored: dict[str, int] = {}

    def _clear(self) -> None:
        self._jobs: dict[str, Job | None] = {}
        self._placed: dict[str, Place] = {}
        self._new: set[str] = set()
        self._values: dict[tuple[str, str], Any] = {}
        self._unsaved: dict[tuple[str, str], Kind[Any]] = {}
        self.news = False

    def _remember(self) -> None:
        known = self._known
        for job_id, job in self._jobs.items():
            if job is None or job.ended:
                known.pop(job_id, None)
            elif job_id in known or len(known) < KNOWN_MAX:
                known[job_id] = job

    def expect(self, job_ids: Sequence[str]) -> None:
        """Looks up together what `job` would look up one by one."""
        unknown = list(
            dict.fromkeys(i for i in job_ids if i not in self._known and i not in self._jobs)
        )
        if len(unknown) < 2:
            return
        self._jobs.update(dict.fromkeys(unknown))
        for job_id, head, run in _FIND.rows(self._db, unknown):
            self._jobs[job_id] = codec.decode_job(head, run)

    def job(self, job_id: str) -> Job | None:
        if job_id not in self._jobs:
            job = self._known.get(job_id)
            if job is None:
                query = "SELECT head, run FROM jobs WHERE id = ?"
                row = self._db.execute(query, (job_id,)).fetchone()
                job = None if row is None else codec.decode_job(*row)
            self._jobs[job_id] = job
        return self._jobs[job_id]

    def put_job(self, before: Job | None, job: Job, now: Instant) -> None:
        job_id, place = job.id, place_of(job, now)
        if before is None:
            self._new.add(job_id)
        appears = before is None and not job.ended
        ends = before is not None and job.ended and not before.ended
        if appears or ends:
            self._add(_LIVE, 1 if appears else -1)
        self._jobs[job_id] = job
        self._placed[job_id] = place
        if place in _TO_BE_CLAIMED:
            self.news = True
        self.changes += 1

    def drop_job(self, job: Job) -> None:
        self._save_jobs()
        self._db.execute("DELETE FROM jobs WHERE id = ?", (job.id,))
        self._jobs[job.id] = None
        assert job.ended, "what has not ended is not removed"
        self.changes += 1

    def job_count(self) -> int:
        return self._add(_LIVE, 0)

    def live(self, schedule_id: str) -> list[Job]:
        self._save_jobs()
        rows = self._db.execute(
            "SELECT head, run FROM jobs WHERE schedule_id = ? AND schedule_id <> '' AND place <> 4",
            (schedule_id,),
        )
        found = [codec.decode_job(*row) for row in rows]
        return sorted(found, key=lambda job: (job.tick or 0, job.created_at, job.id))

    def get(self, kind: Kind[T], key: str) -> T | None:
        name = (kind.name, key)
        if name not in self._values:
            row = self._db.execute(
                "SELECT data FROM records WHERE kind = ? AND key = ?", name
            ).fetchone()
            self._values[name] = None if row is None else codec.decode(kind, row[0])
        value: T | None = self._values[name]
        return value

    def put(self, kind: Kind[T], key: str, value: T) -> None:
        if kind.name in COUNTED and self.get(kind, key) is None:
            self._add(kind.name, 1)
        name = (kind.name, key)
        self._values[name] = value
        self._unsaved[name] = kind
        if kind is SCHEDULES:
            self.news = True
        self.changes += 1

    def drop(self, kind: Kind[Any], key: str) -> None:
        if kind.name in COUNTED:
            self._add(kind.name, -1)
        self._values[kind.name, key] = None
        self._unsaved[kind.name, key] = kind
        self.changes += 1

    def count(self, kind: Kind[Any]) -> int:
        return self._add(kind.name, 0)

    def token(self) -> int:
        return self._add(_TOKENS, 1)

    def promote(self, now: Instant, limit: int) -> int:
        self._save_jobs()
        promoted = self._db.execute(_PROMOTE, (now, limit)).rowcount
        self.news = self.news or promoted > 0
        return promoted

    def ready(self, fits: Callable[[str], bool], limit: int) -> Iterator[Job]:
        self._save_jobs()
        lanes = [lane for (lane,) in self._db.execute(_LANES) if fits(lane)]
        queues = [self._db.execute(_READY, (lane, limit)).fetchall() for lane in lanes]
        first = queues[0] if len(queues) == 1 else islice(merge(*queues), limit)
        ids = [row[-1] for row in first]
        self.expect(ids)
        for job_id in ids:
            job = self.job(job_id)
            assert job is not None, "the index and the rows are one table"
            yield job

    def _save_jobs(self) -> None:
        inserts, updates = [], []
        jobs, new, encode_run = self._jobs, self._new, codec.encode_run
        for job_id, place in self._placed.items():
            job = jobs[job_id]
            assert job is not None
            at, run = watch_at(job, place), encode_run(job)
            state, number = _STATES[job.state], _PLACES[place]
            if job_id in new:
                head, lane = codec.encode_head(job), lane_of(job)
                row = (job_id, head, run, state, number, at, lane, job.rank, job.due_at)
                inserts.append((*row, job.created_at, job.schedule_id, job.worker))
            else:
                updates.append((job_id, run, state, number, at, job.rank, job.due_at, job.worker))
        self._placed.clear()
        self._new.clear()
        _INSERT.run(self._db, inserts)
        _UPDATE.run(self._db, updates)

    def _save_values(self) -> None:
        saves, drops = [], []
        values, encode = self._values, codec.encode
        for name, kind in self._unsaved.items():
            value = values[name]
            if value is None:
                drops.append(name)
            else:
                at = None if kind.at is None else kind.at(value)
                saves.append((*name, at, encode(value)))
        self._unsaved.clear()
        _SAVE.run(self._db, saves)
        self._db.executemany("DELETE FROM records WHERE kind = ? AND key = ?", drops)

    def _add(self, name: str, amount: int) -> int:
        value = self._counters.get(name)
        if value is None:
            row = self._db.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
            value = 0 if row is None else row[0]
            self._stored[name] = value
        self._counters[name] = value + amount
        return value + amount
