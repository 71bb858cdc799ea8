"""Steps made atomic on PostgreSQL: a transaction that locks what they read."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

import asyncpg

from hyperscale.scheduler.errors import SchedulerError, StoreUnavailable
from hyperscale.scheduler.store import codec
from hyperscale.scheduler.store.group_commit import Fault, GroupCommit
from hyperscale.scheduler.store.postgres.connecting import Connection, Connections
from hyperscale.scheduler.store.postgres.records import Copy, Missing, Name, Row
from hyperscale.scheduler.store.postgres.schema import SHARDS
from hyperscale.scheduler.store.tables import KINDS

STEPS_PER_COMMIT_MAX: Final = 512
"""Keeps what others wait for to some ten milliseconds."""
CONFLICTS_MAX: Final = 32
TRIPS_MAX: Final = 16

CONFLICTS: Final = (
    asyncpg.UniqueViolationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
)
"""Somebody was faster, or stood in the way: the transaction is repeated on what is true now."""

Step = Callable[[Copy], Any]

_JOBS: Final = "SELECT id, head, run FROM jobs WHERE id = ANY($1) ORDER BY id FOR UPDATE"
_LIVE: Final = (
    "SELECT id, head, run, schedule_id FROM jobs"
    " WHERE schedule_id = ANY($1) AND schedule_id <> '' AND place <> 4 ORDER BY id FOR UPDATE"
)
_VALUES: Final = (
    "SELECT records.kind, records.key, data FROM records"
    " JOIN unnest($1::text[], $2::text[]) AS wanted (kind, key)"
    " ON records.kind = wanted.kind AND records.key = wanted.key"
    " ORDER BY records.kind, records.key FOR UPDATE OF records"
)
_COUNTS: Final = "SELECT name, sum(value)::bigint FROM counters WHERE name = ANY($1) GROUP BY name"
TOKENS: Final = "SELECT nextval('tokens') FROM generate_series(1, $1)"
_INSERT: Final = (
    "INSERT INTO jobs SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::text[],"
    " $5::smallint[], $6::bigint[], $7::text[], $8::integer[], $9::bigint[], $10::bigint[],"
    " $11::text[], $12::text[], $13::text[], $14::text[], $15::text[])"
)
UPDATE: Final = (
    "UPDATE jobs SET run = new.run, state = new.state, place = new.place, at = new.at,"
    " rank = new.rank, due_at = new.due_at, worker = new.worker, avoid = new.avoid"
    " FROM unnest($1::text[], $2::bytea[], $3::text[], $4::smallint[], $5::bigint[],"
    " $6::integer[], $7::bigint[], $8::text[], $9::text[])"
    " AS new (id, run, state, place, at, rank, due_at, worker, avoid) WHERE jobs.id = new.id"
)
_ROWS: Final = (
    "INSERT INTO records SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[])"
)
_SAVE: Final = (
    f"{_ROWS} ON CONFLICT (kind, key) DO UPDATE SET at = excluded.at, data = excluded.data"
)
_GONE: Final = (
    "DELETE FROM records USING unnest($1::text[], $2::text[]) AS gone (kind, key)"
    " WHERE records.kind = gone.kind AND records.key = gone.key"
)
_COUNT: Final = (
    "INSERT INTO counters SELECT name, $2, value FROM unnest($1::text[], $3::bigint[])"
    " AS grown (name, value) ORDER BY name"
    " ON CONFLICT (name, shard) DO UPDATE SET value = counters.value + excluded.value"
)
NOTIFY: Final = "SELECT pg_notify('hyperscale_jobs', $1)"

_KINDS: Final = {kind.name: kind for kind in KINDS}


class _Faulty(Exception):
    """A step raised what it never should."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Committer:
    def __init__(self, connections: Connections, me: str, on_news: Callable[[], None]) -> None:
        """`me` tells others whose news it is."""
        self._connections = connections
        self._me = me
        self._on_news = on_news
        self._shard = random.randrange(SHARDS)
        self._group = GroupCommit(self._commit, STEPS_PER_COMMIT_MAX)

    async def run(self, steps: Sequence[Step], job_ids: Sequence[str] = ()) -> list[Any]:
        return await self._group.run(steps)

    async def _commit(self, steps: list[Step]) -> list[Any]:
        for _ in range(CONFLICTS_MAX):
            async with self._connections.one() as connection:
                await connection.execute("BEGIN")
                try:
                    copy = Copy()
                    outcomes = await _ran(connection, copy, steps)
                    await self._write(connection, copy)
                    await connection.execute("COMMIT")
                except CONFLICTS:
                    await connection.execute("ROLLBACK")
                    continue
                except _Faulty as fault:
                    # What it wrote is not told apart from what the others did.
                    await connection.execute("ROLLBACK")
                    if len(steps) == 1:
                        return [Fault(fault.error)]
                    return [(await self._commit([step]))[0] for step in steps]
            if copy.news:
                self._on_news()
            return outcomes
        raise StoreUnavailable("too many writers change the same jobs", "try again")

    async def _write(self, connection: Connection, copy: Copy) -> None:
        if not copy.changes:
            return
        inserts, updates, gone = copy.job_rows()
        await _many(connection, _INSERT, inserts)
        await _many(connection, UPDATE, updates)
        if gone:
            await connection.execute("DELETE FROM jobs WHERE id = ANY($1)", gone)
        new, changed, dropped = copy.value_rows()
        await _many(connection, _ROWS, new)
        await _many(connection, _SAVE, changed)
        await _many(connection, _GONE, dropped)
        grown = {name: amount for name, amount in copy.grown.items() if amount}
        if grown:
            await connection.execute(_COUNT, list(grown), self._shard, list(grown.values()))
        if copy.news:
            await connection.execute(NOTIFY, self._me)


async def _many(connection: Connection, statement: str, rows: Sequence[Row | Name]) -> None:
    if rows:
        await connection.execute(statement, *map(list, zip(*rows, strict=True)))


async def _ran(connection: Connection, copy: Copy, steps: list[Step]) -> list[Any]:
    for _ in range(TRIPS_MAX):
        copy.restart()
        outcomes = [_outcome(copy, step) for step in steps]
        if not copy.lacks:
            return outcomes
        await _fetch(connection, copy)
    raise StoreUnavailable("a step of the job store reads without end")


def _outcome(copy: Copy, step: Step) -> Any:
    changes = copy.changes
    try:
        return step(copy)
    except Missing:
        return None
    except SchedulerError as refusal:
        assert copy.changes == changes, "a step refuses before it writes"
        return refusal
    except Exception as error:
        if copy.lacks:
            return None  # others have not read all yet, and it may come of that
        raise _Faulty(error) from error


async def _fetch(connection: Connection, copy: Copy) -> None:
    tokens: list[int] = []
    if copy.wanted_jobs:
        copy.jobs.update(dict.fromkeys(copy.wanted_jobs))
        for job_id, head, run in await connection.fetch(_JOBS, list(copy.wanted_jobs)):
            copy.jobs[job_id] = codec.decode_job(head, run)
    if copy.wanted_values:
        copy.values.update(dict.fromkeys(copy.wanted_values))
        kinds, keys = zip(*copy.wanted_values, strict=True)
        for kind, key, data in await connection.fetch(_VALUES, list(kinds), list(keys)):
            copy.values[kind, key] = codec.decode(_KINDS[kind], data)
    if copy.wanted_lives:
        copy.lives.update({schedule_id: [] for schedule_id in copy.wanted_lives})
        for job_id, head, run, schedule_id in await connection.fetch(
            _LIVE, list(copy.wanted_lives)
        ):
            copy.lives[schedule_id].append(job_id)
            copy.jobs[job_id] = codec.decode_job(head, run)
    if copy.wanted_counts:
        copy.counts.update(dict.fromkeys(copy.wanted_counts, 0))
        copy.counts.update(await connection.fetch(_COUNTS, list(copy.wanted_counts)))
    only_tokens = not (
        copy.wanted_jobs or copy.wanted_values or copy.wanted_lives or copy.wanted_counts
    )
    if only_tokens:
        wanted = len(copy.tokens) + copy.wanted_tokens
        tokens = [token for (token,) in await connection.fetch(TOKENS, wanted)]
    copy.learned(tokens)
