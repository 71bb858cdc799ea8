"""A ground on PostgreSQL: steps lock what they read, claims skip what others have locked, and
LISTEN tells when there is something new.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from hyperscale.errors import BadInput
from hyperscale.scheduler.addresses import plain_address
from hyperscale.scheduler.errors import SchedulerError, StaleLeader, StoreUnavailable
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job, JobState
from hyperscale.scheduler.queue.placement import Place
from hyperscale.scheduler.store import codec
from hyperscale.scheduler.store.ground import accepted
from hyperscale.scheduler.store.postgres.claiming import take
from hyperscale.scheduler.store.postgres.committing import CONFLICTS, NOTIFY, Committer
from hyperscale.scheduler.store.postgres.connecting import (
    Connection,
    Connections,
    answers,
    connect,
)
from hyperscale.scheduler.store.postgres.schema import migrate
from hyperscale.scheduler.store.tables import LETTERS, SCHEDULES, Kind, Operation
from hyperscale.scheduler.store.types import Claim, Counts, JobFilter, Taken, passes
from hyperscale.scheduler.store.wakeups import Wakeups

T = TypeVar("T")

CHANNEL: Final = "hyperscale_jobs"
LISTENED_S: Final = 15.0
"""A connection that only listens does not notice that the other end is gone: it is asked."""
LAST: Final = 2**63 - 1
FIND_CHUNK: Final = 500


class PostgresGround:
    """Made by `open`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._me = uuid.uuid4().hex
        self._connections = Connections(url)
        self.wakeups = Wakeups(self._sign)
        self._committer = Committer(self._connections, self._me, self.wakeups.wake)
        self._listening: Connection | None = None
        self._heard = 0
        self._asked_s = 0.0

    @classmethod
    async def open(cls, url: str) -> PostgresGround:
        """Raises BadInput when it cannot be used: better not to start than to start blind."""
        ground = cls(url)
        try:
            async with ground._connections.one() as connection:
                await migrate(connection)
            await ground._sign()
        except StoreUnavailable as error:
            await ground.close()
            hint = f"is there a postgres at {plain_address(url)}, and may this user log in?"
            raise BadInput(error.message, hint) from error
        except BadInput:
            await ground.close()
            raise
        return ground

    async def close(self) -> None:
        self._connections.close()
        if self._listening is not None:
            self._listening.terminate()
            self._listening = None

    async def time(self) -> Instant:
        query = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
        return int(await self._value(query))

    async def step(self, step: Operation[T], job_ids: Sequence[str] = ()) -> T:
        (outcome,) = accepted(await self.write((step,)))
        return outcome

    async def write(
        self, steps: Sequence[Operation[T]], job_ids: Sequence[str] = ()
    ) -> list[T | SchedulerError]:
        return await self._committer.run(steps) if steps else []

    async def take(self, claim: Claim, now: Instant, promote_max: int) -> Taken:
        async with self._connections.one() as connection:
            await connection.execute("BEGIN")
            try:
                taken = await take(connection, claim, now, promote_max)
                if taken.promoted > len(taken.jobs):
                    await connection.execute(NOTIFY, self._me)
                await connection.execute("COMMIT")
            except StaleLeader as refusal:
                await connection.execute("ROLLBACK")
                stale = refusal
            except CONFLICTS as error:
                raise StoreUnavailable(f"postgres could not claim: {error}", "ask again") from error
            else:
                if taken.promoted:
                    self.wakeups.wake()
                return taken
        raise stale

    async def _sign(self) -> int:
        """Asked many times a second; only seldom it costs a trip."""
        clock = asyncio.get_running_loop().time
        with answers():
            if self._listening is None or self._listening.is_closed():
                self._listening = await connect(self._url)
                await self._listening.add_listener(CHANNEL, self._on_news)
                self._heard += 1  # whatever was told meanwhile
            elif clock() - self._asked_s >= LISTENED_S:
                try:
                    async with asyncio.timeout(LISTENED_S):
                        await self._listening.execute("SELECT 1")
                except BaseException:
                    self._listening.terminate()
                    raise
            else:
                return self._heard
        self._asked_s = clock()
        return self._heard

    def _on_news(self, _connection: Connection, _pid: int, _channel: str, who: str) -> None:
        if who != self._me:
            self._heard += 1

    async def _rows(self, query: str, *values: Any) -> Sequence[Any]:
        async with self._connections.one() as connection:
            rows: Sequence[Any] = await connection.fetch(query, *values)
            return rows

    async def _value(self, query: str, *values: Any) -> Any:
        async with self._connections.one() as connection:
            return await connection.fetchval(query, *values)

    async def get(self, kind: Kind[T], keys: Sequence[str]) -> list[T | None]:
        query = "SELECT key, data FROM records WHERE kind = $1 AND key = ANY($2)"
        found = dict(await self._rows(query, kind.name, list(keys))) if keys else {}
        return [None if key not in found else codec.decode(kind, found[key]) for key in keys]

    async def page(self, kind: Kind[T], prefix: str, behind: str, limit: int) -> list[T]:
        # U+10FFFF sorts behind every character of a key.
        rows = await self._rows(
            "SELECT data FROM records WHERE kind = $1 AND key > $2 AND key >= $3 AND key < $4"
            " ORDER BY key LIMIT $5",
            *(kind.name, behind, prefix, prefix + "\U0010ffff", limit),
        )
        return [codec.decode(kind, data) for (data,) in rows]

    async def due(
        self, index: Kind[Any] | Place, until: Instant | None, limit: int
    ) -> list[tuple[Instant, str]]:
        last = LAST if until is None else until
        if isinstance(index, Place):
            query = (
                "SELECT at, id FROM jobs WHERE place = $1 AND at IS NOT NULL AND at <= $2"
                " ORDER BY at LIMIT $3"
            )
            rows = await self._rows(query, index.value, last, limit)
        else:
            query = (
                "SELECT at, key FROM records WHERE kind = $1 AND at IS NOT NULL AND at <= $2"
                " ORDER BY at, key LIMIT $3"
            )
            rows = await self._rows(query, index.name, last, limit)
        return [(at, key) for at, key in rows]

    async def jobs(self, job_ids: Sequence[str]) -> list[Job | None]:
        rows = await self._rows("SELECT id, head, run FROM jobs WHERE id = ANY($1)", list(job_ids))
        found = {job_id: codec.decode_job(head, run) for job_id, head, run in rows}
        return [found.get(job_id) for job_id in job_ids]

    async def held_by(self, worker_id: str, limit: int) -> list[str]:
        query = "SELECT id FROM jobs WHERE place = 3 AND worker = $1 ORDER BY id LIMIT $2"
        return [job_id for (job_id,) in await self._rows(query, worker_id, limit)]

    async def find(
        self, job_filter: JobFilter, behind: tuple[Instant, str] | None, limit: int
    ) -> list[Job]:
        """All but tags is the database's to find; those are looked at here, page after page."""
        found: list[Job] = []
        chunk = FIND_CHUNK if job_filter.tags else limit
        while len(found) < limit:
            query, values = _search(job_filter, behind, chunk)
            rows = await self._rows(query, *values)
            jobs = [codec.decode_job(head, run) for head, run in rows]
            found += [job for job in jobs if passes(job, job_filter)]
            if len(jobs) < chunk:
                break
            behind = (jobs[-1].created_at, jobs[-1].id)
        return found[:limit]

    async def counts(self) -> Counts:
        async with self._connections.one() as connection:
            states = dict(await connection.fetch("SELECT state, count(*) FROM jobs GROUP BY state"))
            places = await connection.fetchrow(
                "SELECT (SELECT count(*) FROM jobs WHERE place = 2),"
                " (SELECT count(*) FROM jobs WHERE place = 1 AND at IS NOT NULL),"
                " (SELECT count(*) FROM jobs"
                "  WHERE place = 0 AND schedule_id <> '' AND place <> 4),"
                " (SELECT coalesce(sum(value), 0)::bigint FROM counters WHERE name = $1),"
                " (SELECT coalesce(sum(value), 0)::bigint FROM counters WHERE name = $2)",
                *(SCHEDULES.name, LETTERS.name),
            )
        ready, delayed, waiting, schedules, letters = places
        return Counts(
            states={state: states.get(state, 0) for state in JobState},
            ready=ready,
            delayed=delayed,
            waiting=waiting,
            schedules=schedules,
            letters=letters,
        )

    async def sizes(self, indexes: Sequence[Kind[Any] | Place]) -> list[int]:
        async with self._connections.one() as connection:
            kinds = dict(
                await connection.fetch(
                    "SELECT kind, count(*) FROM records WHERE at IS NOT NULL AND kind = ANY($1)"
                    " GROUP BY kind",
                    [index.name for index in indexes if not isinstance(index, Place)],
                )
            )
            places = dict(
                await connection.fetch(
                    "SELECT place, count(*) FROM jobs WHERE at IS NOT NULL AND place = ANY($1)"
                    " GROUP BY place",
                    [index.value for index in indexes if isinstance(index, Place)],
                )
            )
        return [
            places.get(index.value, 0) if isinstance(index, Place) else kinds.get(index.name, 0)
            for index in indexes
        ]


def _search(
    job_filter: JobFilter, behind: tuple[Instant, str] | None, limit: int
) -> tuple[str, list[Any]]:
    values: list[Any] = []
    wheres = ["true"]
    columns = {
        "state": job_filter.state,
        "schedule_id": job_filter.schedule_id,
        "name": job_filter.name,
        "kind": job_filter.kind,
        "worker": job_filter.worker,
    }
    for column, value in columns.items():
        if value is not None:
            values.append(str(value))
            wheres.append(f"{column} = ${len(values)}")
    if job_filter.schedule_id:
        wheres.append("schedule_id <> ''")  # the index leaves out jobs without one
    if behind is not None:
        values += behind
        wheres.append(f"(created_at, id) < (${len(values) - 1}, ${len(values)})")
    values.append(limit)
    query = (
        f"SELECT head, run FROM jobs WHERE {' AND '.join(wheres)}"
        f" ORDER BY created_at DESC, id DESC LIMIT ${len(values)}"
    )
    return query, values
