"""The records as one step sees them. What it reads becomes a condition, what it writes a command;
commit.lua applies the commands if the conditions still hold. Otherwise somebody was faster, and the
step runs again on a fresh copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job, JobState
from hyperscale.scheduler.queue.placement import Place, place_of, watch_at
from hyperscale.scheduler.store import codec
from hyperscale.scheduler.store.redis import keys
from hyperscale.scheduler.store.redis.copy import Command, Copy, Missing
from hyperscale.scheduler.store.redis.scripts import blob
from hyperscale.scheduler.store.tables import SCHEDULES, Kind

T = TypeVar("T")


class StepRecords:
    def __init__(self, copy: Copy) -> None:
        self._copy = copy
        self._written: dict[tuple[str, str], bytes | None] = {}
        self._grown: dict[str, int] = {}
        self._joined: list[tuple[str, str]] = []
        self.checks: dict[tuple[str, str], bytes | None] = {}
        self.writes: list[Command] = []
        self.news = False

    def keep(self) -> None:
        self._copy.keep(self._written, self._joined, self._grown)

    def expect(self, job_ids: Iterable[str]) -> None:
        """All that is lacking comes in one trip."""
        lacking = False
        for job_id in job_ids:
            try:
                self._run(job_id)
            except Missing:
                lacking = True
        if lacking:
            raise Missing

    def job(self, job_id: str) -> Job | None:
        run = self._run(job_id)
        if run is None:
            return None
        head = self._written.get((keys.HEADS, job_id))
        head = self._copy.field((keys.HEADS, job_id)) if head is None else head
        assert head is not None, "head and run are fetched and written together"
        return codec.decode_job(head, run)

    def put_job(self, before: Job | None, job: Job, now: Instant) -> None:
        self._set(keys.RUNS, job.id, codec.encode_run(job))
        created = keys.time_member(job.created_at, job.id)
        if job.ended and (before is None or not before.ended):
            self._grow(keys.DONE, 1)
        if before is None:
            self._set(keys.HEADS, job.id, codec.encode_head(job))
            self._add(keys.NEWEST, "0", created)
            self._grow(keys.RUNS, 1)
            if job.schedule_id:
                self._add(keys.BY_SCHEDULE, "0", keys.under(job.schedule_id, created))
                self._add(keys.LIVE, "0", keys.under(job.schedule_id, created))
                self._joined.append((job.schedule_id, job.id))
        elif job.ended and job.schedule_id:
            self._remove(keys.LIVE, keys.under(job.schedule_id, created))
        if before is None or before.state is not job.state:
            if before is not None:
                self._remove(keys.STATES, keys.under(before.state, created))
            self._add(keys.STATES, "0", keys.under(job.state, created))
        self._move(before, job, now)

    def drop_job(self, job: Job) -> None:
        created = keys.time_member(job.created_at, job.id)
        self._unset(keys.RUNS, job.id)
        self._unset(keys.HEADS, job.id)
        self._grow(keys.RUNS, -1)
        self._grow(keys.DONE, -1)
        self._remove(keys.NEWEST, created)
        self._remove(keys.STATES, keys.under(job.state, created))
        self._leave(job)
        if job.schedule_id:
            self._remove(keys.BY_SCHEDULE, keys.under(job.schedule_id, created))
            self._remove(keys.LIVE, keys.under(job.schedule_id, created))

    def job_count(self) -> int:
        return self._size(keys.RUNS) - self._size(keys.DONE)

    def live(self, schedule_id: str) -> list[Job]:
        mine = [job_id for joined_id, job_id in self._joined if joined_id == schedule_id]
        job_ids = dict.fromkeys(self._copy.live(schedule_id) + mine)
        self.expect(job_ids)
        jobs = [self.job(job_id) for job_id in job_ids]
        found = [job for job in jobs if job is not None and not job.ended]
        return sorted(found, key=lambda job: (job.tick or 0, job.created_at, job.id))

    def get(self, kind: Kind[T], key: str) -> T | None:
        data = self._read(keys.table(kind), key)
        return None if data is None else codec.decode(kind, data)

    def put(self, kind: Kind[T], key: str, value: T) -> None:
        if self.checks.get((keys.table(kind), key)) is None:
            self._grow(keys.table(kind), 1)
        self._set(keys.table(kind), key, codec.encode(value))
        if kind.listed:
            self._add(keys.listing(kind), "0", key)
        if kind.at is not None:
            at = kind.at(value)
            if at is None:
                self._remove(keys.index(kind), key)
            else:
                self._add(keys.index(kind), _score(at), key)
        self.news = self.news or kind.name == SCHEDULES.name

    def drop(self, kind: Kind[Any], key: str) -> None:
        self._unset(keys.table(kind), key)
        self._grow(keys.table(kind), -1)
        if kind.listed:
            self._remove(keys.listing(kind), key)
        if kind.at is not None:
            self._remove(keys.index(kind), key)

    def count(self, kind: Kind[Any]) -> int:
        return self._size(keys.table(kind))

    def token(self) -> int:
        return self._copy.token()

    def _run(self, job_id: str) -> bytes | None:
        return self._read(keys.RUNS, job_id, (keys.HEADS, job_id))

    def _read(self, table: str, field: str, *together: tuple[str, str]) -> bytes | None:
        place = (table, field)
        if place in self._written:
            return self._written[place]
        value = self._copy.field(place, *together)
        self.checks[place] = value
        return value

    def _move(self, before: Job | None, job: Job, now: Instant) -> None:
        place = place_of(job, now)
        at = watch_at(job, place)
        stays = before is not None and before.held and job.held and before.worker == job.worker
        if before is not None and not stays:
            self._leave(before)
        if place is Place.DELAYED:
            self._add(keys.DELAYED, _score(job.due_at), keys.queue_member(job))
        elif place is Place.READY:
            self._add(keys.READY, "0", keys.queue_member(job))
            if at is not None:
                self._add(keys.AGEING, _score(at), keys.queue_member(job))
        elif place is not Place.WAITING:
            assert at is not None
            name = keys.HELD if place is Place.HELD else keys.DONE
            self._add(name, _score(at), job.id)
            if place is Place.HELD and not stays:
                self._add(keys.HOLDERS, "0", keys.under(job.worker, job.id))
        self.news = self.news or place in (Place.READY, Place.DELAYED)

    def _leave(self, job: Job) -> None:
        if job.state is JobState.PENDING and not job.waiting:
            # Promotion does not touch the record: the job may be in either.
            for name in (keys.READY, keys.DELAYED, keys.AGEING):
                self._remove(name, keys.queue_member(job))
        elif job.held:
            self._remove(keys.HELD, job.id)
            self._remove(keys.HOLDERS, keys.under(job.worker, job.id))
        elif job.ended:
            self._remove(keys.DONE, job.id)

    def _size(self, name: str) -> int:
        return self._copy.size(name) + self._grown.get(name, 0)

    def _grow(self, name: str, amount: int) -> None:
        self._grown[name] = self._grown.get(name, 0) + amount

    def _set(self, table: str, field: str, value: bytes) -> None:
        self._written[table, field] = value
        self.writes.append(("HSET", table, field, blob(value)))

    def _unset(self, table: str, field: str) -> None:
        self._written[table, field] = None
        self.writes.append(("HDEL", table, field))

    def _add(self, name: str, score: str, member: str) -> None:
        self.writes.append(("ZADD", name, score, member))

    def _remove(self, name: str, member: str) -> None:
        self.writes.append(("ZREM", name, member))


def _score(instant: Instant) -> str:
    return str(instant)
