"""Questions to the file that change nothing. In WAL mode they neither wait for writers nor stop
them, and see everything that was acknowledged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job, JobState
from hyperscale.scheduler.queue.placement import Place
from hyperscale.scheduler.store import codec
from hyperscale.scheduler.store.sqlite.transaction import NEWS
from hyperscale.scheduler.store.tables import LETTERS, SCHEDULES, Kind
from hyperscale.scheduler.store.types import Counts, JobFilter, passes

T = TypeVar("T")

LAST: Final = 2**63 - 1
"""Behind every instant."""


class Reader:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def sign(self) -> int:
        return self._one("SELECT value FROM counters WHERE name = ?", NEWS) or 0

    def get(self, kind: Kind[T], keys: Sequence[str]) -> list[T | None]:
        query = "SELECT data FROM records WHERE kind = ? AND key = ?"
        found = [self._one(query, kind.name, key) for key in keys]
        return [None if data is None else codec.decode(kind, data) for data in found]

    def page(self, kind: Kind[T], prefix: str, behind: str, limit: int) -> list[T]:
        # U+10FFFF sorts behind every character of a key.
        rows = self._db.execute(
            "SELECT data FROM records WHERE kind = ? AND key > ? AND key >= ? AND key < ?"
            " ORDER BY key LIMIT ?",
            (kind.name, behind, prefix, prefix + "\U0010ffff", limit),
        )
        return [codec.decode(kind, data) for (data,) in rows]

    def due(
        self, index: Kind[Any] | Place, until: Instant | None, limit: int
    ) -> list[tuple[Instant, str]]:
        last = LAST if until is None else until
        if isinstance(index, Place):
            query = (
                "SELECT at, id FROM jobs WHERE place = ? AND at IS NOT NULL AND at <= ?"
                " ORDER BY at LIMIT ?"
            )
            return self._db.execute(query, (index, last, limit)).fetchall()
        query = (
            "SELECT at, key FROM records WHERE kind = ? AND at IS NOT NULL AND at <= ?"
            " ORDER BY at, key LIMIT ?"
        )
        return self._db.execute(query, (index.name, last, limit)).fetchall()

    def _count(self, kind: Kind[Any]) -> int:
        return self._one("SELECT value FROM counters WHERE name = ?", kind.name) or 0

    def jobs(self, job_ids: Sequence[str]) -> list[Job | None]:
        query = "SELECT head, run FROM jobs WHERE id = ?"
        rows = [self._db.execute(query, (job_id,)).fetchone() for job_id in job_ids]
        return [None if row is None else codec.decode_job(*row) for row in rows]

    def held_by(self, worker_id: str, limit: int) -> list[str]:
        rows = self._db.execute(
            "SELECT id FROM jobs WHERE place = 3 AND worker = ? ORDER BY id LIMIT ?",
            (worker_id, limit),
        )
        return [job_id for (job_id,) in rows]

    def find(
        self, job_filter: JobFilter, behind: tuple[Instant, str] | None, limit: int
    ) -> list[Job]:
        wheres, values = ["1"], list[Any]()
        if job_filter.state is not None:
            wheres.append("state = ?")
            values.append(job_filter.state)
        if job_filter.schedule_id is not None:
            # The index by schedule leaves out jobs without one.
            belongs = " AND schedule_id <> ''" if job_filter.schedule_id else ""
            wheres.append("schedule_id = ?" + belongs)
            values.append(job_filter.schedule_id)
        if behind is not None:
            wheres.append("(created_at, id) < (?, ?)")
            values.extend(behind)
        rows = self._db.execute(
            f"SELECT head, run FROM jobs WHERE {' AND '.join(wheres)}"
            " ORDER BY created_at DESC, id DESC",
            values,
        )
        found: list[Job] = []
        for row in rows:
            job = codec.decode_job(*row)
            if passes(job, job_filter):
                found.append(job)
                if len(found) == limit:
                    break
        return found

    def sizes(self, indexes: Sequence[Kind[Any] | Place]) -> list[int]:
        """By an index alone."""
        of_jobs = "SELECT count(*) FROM jobs WHERE place = ? AND at IS NOT NULL"
        of_kind = "SELECT count(*) FROM records WHERE kind = ? AND at IS NOT NULL"
        return [
            self._one(of_jobs, int(index))
            if isinstance(index, Place)
            else self._one(of_kind, index.name)
            for index in indexes
        ]

    def counts(self) -> Counts:
        by_state = dict(self._db.execute("SELECT state, count(*) FROM jobs GROUP BY state"))
        # Each of these is answered by a partial index alone.
        place_is = "SELECT count(*) FROM jobs WHERE place = "
        return Counts(
            states={state: by_state.get(state, 0) for state in JobState},
            ready=self._one(f"{place_is}2"),
            delayed=self._one(f"{place_is}1 AND at IS NOT NULL"),
            waiting=self._one(f"{place_is}0 AND schedule_id <> '' AND place <> 4"),
            schedules=self._count(SCHEDULES),
            letters=self._count(LETTERS),
        )

    def _one(self, query: str, *values: Any) -> Any:
        row = self._db.execute(query, values).fetchone()
        return None if row is None else row[0]
