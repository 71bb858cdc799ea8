"""A ground in this process's memory: for tests, and for trying things out.

Records are immutable, so what it hands out cannot change what it holds. It forgets everything when
the process ends.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice, takewhile
from typing import Any, TypeVar

from hyperscale.scheduler.errors import SchedulerError
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job, JobState
from hyperscale.scheduler.queue.operations import take
from hyperscale.scheduler.queue.placement import Place, claim_order, lane_of, place_of, watch_at
from hyperscale.scheduler.store.ground import accepted
from hyperscale.scheduler.store.tables import LETTERS, SCHEDULES, Kind, Operation
from hyperscale.scheduler.store.types import Claim, Counts, JobFilter, Taken, passes
from hyperscale.scheduler.store.wakeups import Wakeups

T = TypeVar("T")


class _Sorted:
    """A sorted list without repeats; good for the sizes a memory store sees."""

    def __init__(self) -> None:
        self._items: list[Any] = []

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def add(self, item: Any) -> None:
        insort(self._items, item)

    def discard(self, item: Any) -> None:
        index = bisect_left(self._items, item)
        if index < len(self._items) and self._items[index] == item:
            del self._items[index]


class MemoryRecords:
    """The records and their indexes."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.tables: dict[str, dict[str, Any]] = defaultdict(dict)
        self.places: dict[str, Place] = {}
        self.watched: dict[Place, _Sorted] = {place: _Sorted() for place in Place}
        self.lanes: dict[str, _Sorted] = defaultdict(_Sorted)
        self.instances: dict[str, set[str]] = defaultdict(set)
        self._counter = 0
        self.changes = 0
        self.news = False

    def expect(self, job_ids: Sequence[str]) -> None:
        """All are at hand."""

    def job(self, job_id: str) -> Job | None:
        return self.jobs.get(job_id)

    def put_job(self, before: Job | None, job: Job, now: Instant) -> None:
        assert self.jobs.get(job.id) == before, "a step writes what it has read"
        if before is not None:
            self._unplace(before)
        self.jobs[job.id] = job
        self._place(job, place_of(job, now))
        self.changes += 1

    def drop_job(self, job: Job) -> None:
        self._unplace(job)
        del self.jobs[job.id]
        self.changes += 1

    def job_count(self) -> int:
        return len(self.jobs) - len(self.watched[Place.DONE])

    def live(self, schedule_id: str) -> list[Job]:
        found = [self.jobs[job_id] for job_id in self.instances.get(schedule_id, ())]
        return sorted(found, key=lambda job: (job.tick or 0, job.created_at, job.id))

    def get(self, kind: Kind[T], key: str) -> T | None:
        value: T | None = self.tables[kind.name].get(key)
        return value

    def put(self, kind: Kind[T], key: str, value: T) -> None:
        self.tables[kind.name][key] = value
        self.news = self.news or kind.name == SCHEDULES.name
        self.changes += 1

    def drop(self, kind: Kind[Any], key: str) -> None:
        del self.tables[kind.name][key]
        self.changes += 1

    def count(self, kind: Kind[Any]) -> int:
        return len(self.tables[kind.name])

    def token(self) -> int:
        self._counter += 1
        return self._counter

    def promote(self, now: Instant, limit: int) -> int:
        delayed = islice(self.watched[Place.DELAYED], limit)
        due = [job_id for at, job_id in delayed if at <= now]
        for job_id in due:
            job = self.jobs[job_id]
            self._unplace(job)
            self._place(job, Place.READY)
        return len(due)

    def ready(self, fits: Callable[[str], bool], limit: int) -> list[Job]:
        lanes = [orders for lane, orders in self.lanes.items() if fits(lane)]
        return [self.jobs[order[-1]] for order in islice(merge(*lanes), limit)]

    def _place(self, job: Job, place: Place) -> None:
        self.places[job.id] = place
        at = watch_at(job, place)
        if at is not None:
            self.watched[place].add((at, job.id))
        if place is Place.READY:
            self.lanes[lane_of(job)].add(claim_order(job))
        if job.schedule_id and place is not Place.DONE:
            self.instances[job.schedule_id].add(job.id)
        self.news = self.news or place in (Place.READY, Place.DELAYED)

    def _unplace(self, job: Job) -> None:
        place = self.places.pop(job.id)
        at = watch_at(job, place)
        if at is not None:
            self.watched[place].discard((at, job.id))
        if place is Place.READY:
            lane = self.lanes[lane_of(job)]
            lane.discard(claim_order(job))
            if not lane:
                del self.lanes[lane_of(job)]
        if job.schedule_id and place is not Place.DONE:
            self.instances[job.schedule_id].discard(job.id)
            if not self.instances[job.schedule_id]:
                del self.instances[job.schedule_id]


class MemoryGround:
    def __init__(self) -> None:
        self.wakeups = Wakeups()
        self._records = MemoryRecords()

    async def close(self) -> None:
        """Nothing to give back."""

    async def time(self) -> None:
        """Everybody who uses it is on this machine."""

    async def take(self, claim: Claim, now: Instant, promote_max: int) -> Taken:
        taken = take(self._records, claim, now, promote_max)
        self._tell()
        return taken

    async def counts(self) -> Counts:
        records = self._records
        states = Counter(job.state for job in records.jobs.values())
        places = Counter(records.places.values())
        return Counts(
            states={state: states[state] for state in JobState},
            ready=places[Place.READY],
            delayed=places[Place.DELAYED],
            waiting=places[Place.WAITING],
            schedules=records.count(SCHEDULES),
            letters=records.count(LETTERS),
        )

    async def sizes(self, indexes: Sequence[Kind[Any] | Place]) -> list[int]:
        records = self._records
        return [
            len(records.watched[index]) if isinstance(index, Place) else records.count(index)
            for index in indexes
        ]

    async def step(self, step: Operation[T], job_ids: Sequence[str] = ()) -> T:
        (outcome,) = accepted(await self.write((step,)))
        return outcome

    async def write(
        self, steps: Sequence[Operation[T]], job_ids: Sequence[str] = ()
    ) -> list[T | SchedulerError]:
        outcomes: list[T | SchedulerError] = []
        for step in steps:
            changes = self._records.changes
            try:
                outcomes.append(step(self._records))
            except SchedulerError as refusal:
                assert self._records.changes == changes, "a step refuses before it writes"
                outcomes.append(refusal)
        self._tell()
        return outcomes

    def _tell(self) -> None:
        if self._records.news:
            self._records.news = False
            self.wakeups.wake()

    async def get(self, kind: Kind[T], keys: Sequence[str]) -> list[T | None]:
        return [self._records.get(kind, key) for key in keys]

    async def page(self, kind: Kind[T], prefix: str, behind: str, limit: int) -> list[T]:
        table = self._records.tables[kind.name]
        keys = sorted(key for key in table if key.startswith(prefix) and key > behind)
        return [table[key] for key in keys[:limit]]

    async def due(
        self, index: Kind[Any] | Place, until: Instant | None, limit: int
    ) -> list[tuple[Instant, str]]:
        if isinstance(index, Place):
            found: Iterable[tuple[Instant, str]] = self._records.watched[index]
        else:
            found = sorted(self._index(index))
        if until is not None:
            found = takewhile(lambda due: due[0] <= until, found)
        return list(islice(found, limit))

    def _index(self, kind: Kind[Any]) -> Iterator[tuple[Instant, str]]:
        assert kind.at is not None
        for key, value in self._records.tables[kind.name].items():
            at = kind.at(value)
            if at is not None:
                yield at, key

    async def jobs(self, job_ids: Sequence[str]) -> list[Job | None]:
        return [self._records.job(job_id) for job_id in job_ids]

    async def held_by(self, worker_id: str, limit: int) -> list[str]:
        held = sorted(
            job.id for job in self._records.jobs.values() if job.held and job.worker == worker_id
        )
        return held[:limit]

    async def find(
        self, job_filter: JobFilter, behind: tuple[Instant, str] | None, limit: int
    ) -> list[Job]:
        found = [
            job
            for job in self._records.jobs.values()
            if passes(job, job_filter) and (behind is None or (job.created_at, job.id) < behind)
        ]
        found.sort(key=lambda job: (job.created_at, job.id), reverse=True)
        return found[:limit]
