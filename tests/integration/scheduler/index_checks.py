"""Do a store's indexes say what its records say? Reads the files and keys behind the contract."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import asyncpg
import redis

from hyperscale.scheduler.queue.job import Job, JobState
from hyperscale.scheduler.queue.placement import Place, lane_of, watch_at
from hyperscale.scheduler.store import codec
from hyperscale.scheduler.store.postgres.records import inserted
from hyperscale.scheduler.store.redis import keys
from hyperscale.scheduler.store.tables import KINDS


def _places(job: Job) -> set[Place]:
    """A pending job may be delayed or ready: promotion does not touch the record."""
    if job.ended:
        return {Place.DONE}
    if job.held:
        return {Place.HELD}
    return {Place.WAITING} if job.waiting else {Place.DELAYED, Place.READY}


def check_sqlite(path: Path) -> int:
    """Number of jobs looked at."""
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = db.execute(
            "SELECT head, run, id, state, place, at, lane, rank, due_at, created_at, schedule_id,"
            " worker FROM jobs"
        ).fetchall()
        for head, run, *columns in rows:
            job = codec.decode_job(head, run)
            place = Place(columns[2])
            assert place in _places(job)
            assert columns == [
                job.id,
                job.state,
                place,
                watch_at(job, place),
                lane_of(job),
                job.rank,
                job.due_at,
                job.created_at,
                job.schedule_id,
                job.worker,
            ]
        counters = dict(db.execute("SELECT name, value FROM counters"))
        live = [row for row in rows if row[4] != Place.DONE]
        assert counters.get("live jobs", 0) == len(live)
        for kind in KINDS:
            found = db.execute("SELECT at, data FROM records WHERE kind = ?", (kind.name,))
            values = [(at, codec.decode(kind, data)) for at, data in found]
            for at, value in values:
                assert at == (None if kind.at is None else kind.at(value))
            if kind.name in ("schedules", "workers", "letters"):
                assert counters.get(kind.name, 0) == len(values)
        _check_lines(
            (codec.decode_job(head, run) for head, run, *_ in rows),
            {
                key: codec.decode(KINDS[1], data)
                for key, data in db.execute("SELECT key, data FROM records WHERE kind = 'lines'")
            },
        )
        return len(rows)


async def check_postgres(url: str) -> int:
    """Number of jobs looked at."""
    connection = await asyncpg.connect(url, server_settings={"search_path": "hyperscale"})
    try:
        jobs = await connection.fetch("SELECT * FROM jobs")
        values = await connection.fetch("SELECT * FROM records")
        counters = dict(
            await connection.fetch("SELECT name, sum(value)::bigint FROM counters GROUP BY name")
        )
    finally:
        await connection.close()
    decoded = [codec.decode_job(row["head"], row["run"]) for row in jobs]
    for row, job in zip(jobs, decoded, strict=True):
        place = Place(row["place"])
        assert place in _places(job)
        assert tuple(row) == inserted(job, place)
    assert counters.get("live jobs", 0) == sum(not job.ended for job in decoded)
    for kind in KINDS:
        of_kind = {
            row["key"]: (row["at"], codec.decode(kind, row["data"]))
            for row in values
            if row["kind"] == kind.name
        }
        for at, value in of_kind.values():
            assert at == (None if kind.at is None else kind.at(value))
        if kind.name in ("schedules", "workers", "letters"):
            assert counters.get(kind.name, 0) == len(of_kind)
        if kind.name == "lines":
            _check_lines(decoded, {key: value for key, (_, value) in of_kind.items()})
    return len(jobs)


def check_redis(client: redis.Redis, prefix: str = "hyperscale") -> int:
    """Number of jobs looked at."""
    name = ("{" + prefix + "}:").__add__
    heads: Any = client.hgetall(name(keys.HEADS))
    runs: Any = client.hgetall(name(keys.RUNS))
    assert set(heads) == set(runs)
    jobs = [codec.decode_job(heads[job_id], run) for job_id, run in runs.items()]

    def members(key: str) -> dict[str, int]:
        found: Any = client.zrange(name(key), 0, -1, withscores=True)
        return {member.decode(): int(score) for member, score in found}

    ready, delayed, ageing = members(keys.READY), members(keys.DELAYED), members(keys.AGEING)
    pending = {
        keys.queue_member(job): job
        for job in jobs
        if job.state is JobState.PENDING and not job.waiting
    }
    assert set(ready) | set(delayed) == set(pending)
    assert not set(ready) & set(delayed)
    assert delayed == {member: pending[member].due_at for member in delayed}
    boosts = {member: watch_at(pending[member], Place.READY) for member in ready}
    assert ageing == {member: at for member, at in boosts.items() if at is not None}
    held = [job for job in jobs if job.held]
    assert members(keys.HELD) == {job.id: job.lease_until for job in held}
    assert set(members(keys.HOLDERS)) == {keys.under(job.worker, job.id) for job in held}
    done = [job for job in jobs if job.ended]
    assert members(keys.DONE) == {job.id: watch_at(job, Place.DONE) for job in done}
    times = {job.id: keys.time_member(job.created_at, job.id) for job in jobs}
    assert set(members(keys.NEWEST)) == set(times.values())
    assert set(members(keys.STATES)) == {keys.under(job.state, times[job.id]) for job in jobs}
    instances = [job for job in jobs if job.schedule_id]
    by_schedule = {job.id: keys.under(job.schedule_id, times[job.id]) for job in instances}
    assert set(members(keys.BY_SCHEDULE)) == set(by_schedule.values())
    live = {by_schedule[job.id] for job in instances if not job.ended}
    assert set(members(keys.LIVE)) == live
    for kind in KINDS:
        table: Any = client.hgetall(name(keys.table(kind)))
        values = {key.decode(): codec.decode(kind, data) for key, data in table.items()}
        if kind.listed:
            assert set(members(keys.listing(kind))) == set(values)
        if kind.at is not None:
            ats = {key: kind.at(value) for key, value in values.items()}
            assert members(keys.index(kind)) == {k: at for k, at in ats.items() if at is not None}
        if kind.name == "lines":
            _check_lines(jobs, values)
    return len(jobs)


def _check_lines(jobs: Iterable[Job], lines: dict[str, int]) -> None:
    """Who waits is counted, and somebody is before it."""
    waiting: dict[str, int] = {}
    moving: set[str] = set()
    for job in jobs:
        if job.waiting:
            waiting[job.schedule_id] = waiting.get(job.schedule_id, 0) + 1
        elif not job.ended:
            moving.add(job.schedule_id)
    assert lines == waiting
    assert set(waiting) <= moving
