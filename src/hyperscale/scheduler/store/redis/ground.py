"""A ground on Redis: decisions in Python on a copy, committed by script if it is still true;
claims, where everybody wants the same jobs, wholly by script.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from redis.exceptions import RedisClusterException

from hyperscale.errors import BadInput
from hyperscale.scheduler.addresses import plain_address
from hyperscale.scheduler.errors import SchedulerError, StaleLeader, StoreUnavailable
from hyperscale.scheduler.instants import SECOND, Instant, after
from hyperscale.scheduler.queue.job import HEAD_FIELDS, RUN_FIELDS, Job, JobState
from hyperscale.scheduler.queue.lifecycle import AVOID_S, KILL_GRACE_S
from hyperscale.scheduler.queue.operations import AVOID_SCAN
from hyperscale.scheduler.queue.placement import BOOST_AGE, BOOST_POINTS, Place
from hyperscale.scheduler.store import codec
from hyperscale.scheduler.store.ground import accepted
from hyperscale.scheduler.store.redis import keys
from hyperscale.scheduler.store.redis.committing import Committer
from hyperscale.scheduler.store.redis.connecting import Client, connect
from hyperscale.scheduler.store.redis.copy import Recent
from hyperscale.scheduler.store.redis.scripts import CLAIM, TIME, Scripts
from hyperscale.scheduler.store.tables import EPOCHS, LETTERS, SCHEDULES, WORKERS, Kind, Operation
from hyperscale.scheduler.store.types import BATCH_MAX, Claim, Counts, JobFilter, Taken, passes
from hyperscale.scheduler.store.wakeups import Wakeups
from hyperscale.scheduler.worker.registration import CLOSED

T = TypeVar("T")

FIND_CHUNK: Final = 200
_FIELD_NUMBERS: Final = {name: number for number, name in enumerate(RUN_FIELDS, start=1)}
_INDEXES: Final = {
    Place.DELAYED: keys.DELAYED,
    Place.READY: keys.AGEING,
    Place.HELD: keys.HELD,
    Place.DONE: keys.DONE,
}
_CLAIM_KEYS: Final = (
    keys.COUNTERS,
    keys.table(EPOCHS),
    keys.DELAYED,
    keys.READY,
    keys.AGEING,
    keys.HELD,
    keys.HOLDERS,
    keys.STATES,
    keys.HEADS,
    keys.RUNS,
    keys.table(WORKERS),
)


class RedisGround:
    def __init__(self, client: Client, prefix: str = "hyperscale") -> None:
        """`client` answers bytes, and repeats nothing by itself; it is closed with the ground."""
        self.wakeups = Wakeups(self._sign)
        self._client = client
        self._scripts = Scripts(client, prefix)
        self._recent = Recent()
        self._committer = Committer(self._scripts, self._recent, self.wakeups.wake)

    @classmethod
    async def open(cls, url: str, prefix: str = "hyperscale") -> RedisGround:
        """`redis://`, `rediss://`, `unix://` or `redis+cluster://`. Raises BadInput when nobody
        answers there: better not to start than to start blind."""
        client = connect(url)
        ground = cls(client, prefix)
        try:
            await ground._sign()
        except (StoreUnavailable, RedisClusterException) as error:
            await client.aclose()
            raise BadInput(str(error), f"is there a redis at {plain_address(url)}?") from error
        return ground

    async def close(self) -> None:
        await self._client.aclose()

    async def time(self) -> Instant:
        answer = await self._scripts.call(TIME, self._scripts.keys((keys.COUNTERS,)), ())
        seconds, microseconds = answer
        return int(seconds) * SECOND + int(microseconds)

    async def take(self, claim: Claim, now: Instant, promote_max: int) -> Taken:
        argument = {
            "now": now,
            "epoch": claim.epoch,
            "promote_max": promote_max,
            "boost_age": BOOST_AGE,
            "boost_points": BOOST_POINTS,
            "worker": claim.worker,
            "closed": sorted(CLOSED),
            "kinds": claim.kinds,
            "capabilities": claim.capabilities,
            "limit": min(claim.limit, BATCH_MAX),
            "scan": AVOID_SCAN,
            "lease_until": after(now, claim.lease_s),
            "avoid_age": after(0, AVOID_S),
            "start": claim.start,
            "kill_grace_s": KILL_GRACE_S,
            "spec": HEAD_FIELDS.index("spec") + 1,
            "fields": _FIELD_NUMBERS,
            "field_count": len(RUN_FIELDS),
        }
        used = self._scripts.keys(_CLAIM_KEYS)
        answer = await self._scripts.call(CLAIM, used, argument)
        if answer[0] == 0:
            raise StaleLeader(claim.epoch, answer[1])
        _, promoted, sign, *found = answer
        if sign:
            self.wakeups.wake(sign)
        jobs: list[Job] = []
        for head, run in zip(found[::2], found[1::2], strict=True):
            job = codec.decode_job(head, run)
            self._recent.put(job.id, head, run)
            jobs.append(job)
        return Taken(promoted, jobs)

    async def counts(self) -> Counts:
        states = [("ZLEXCOUNT", keys.STATES, *keys.under_all(state)) for state in JobState]
        answers = await self._scripts.fetch(
            [
                *states,
                ("ZCARD", keys.READY),
                ("ZCARD", keys.DELAYED),
                ("HLEN", keys.table(SCHEDULES)),
                ("HLEN", keys.table(LETTERS)),
            ]
        )
        by_state = dict(zip(JobState, answers[: len(states)], strict=True))
        ready, delayed, schedules, letters = answers[len(states) :]
        return Counts(
            states=by_state,
            ready=ready,
            delayed=delayed,
            waiting=by_state[JobState.PENDING] - ready - delayed,
            schedules=schedules,
            letters=letters,
        )

    async def sizes(self, indexes: Sequence[Kind[Any] | Place]) -> list[int]:
        names = [_INDEXES[i] if isinstance(i, Place) else keys.index(i) for i in indexes]
        return list(await self._scripts.fetch([("ZCARD", name) for name in names]))

    async def step(self, step: Operation[T], job_ids: Sequence[str] = ()) -> T:
        (outcome,) = accepted(await self.write((step,)))
        return outcome

    async def write(
        self, steps: Sequence[Operation[T]], job_ids: Sequence[str] = ()
    ) -> list[T | SchedulerError]:
        return await self._committer.run(steps) if steps else []

    async def _one(self, *command: Any) -> Any:
        (answer,) = await self._scripts.fetch([command])
        return answer

    async def _sign(self) -> int:
        return int(await self._one("HGET", keys.COUNTERS, keys.NEWS) or 0)

    async def get(self, kind: Kind[T], wanted: Sequence[str]) -> list[T | None]:
        found = await self._one("HMGET", keys.table(kind), *wanted) if wanted else []
        return [None if data is None else codec.decode(kind, data) for data in found]

    async def page(self, kind: Kind[T], prefix: str, behind: str, limit: int) -> list[T]:
        first = f"({behind}" if behind >= prefix else f"[{prefix}"
        last = f"({prefix}{keys.LAST}"
        # The empty string is no key, so "(" alone begins at the very first.
        found = await self._one("ZRANGEBYLEX", keys.listing(kind), first, last, "LIMIT", 0, limit)
        values = await self.get(kind, [key.decode() for key in found])
        return [value for value in values if value is not None]

    async def due(
        self, index: Kind[Any] | Place, until: Instant | None, limit: int
    ) -> list[tuple[Instant, str]]:
        name = _INDEXES[index] if isinstance(index, Place) else keys.index(index)
        last = "+inf" if until is None else str(until)
        found = await self._one(
            "ZRANGEBYSCORE", name, "-inf", last, "WITHSCORES", "LIMIT", 0, limit
        )
        named = keys.queue_member_id if index is Place.READY else bytes.decode
        return [
            (int(at), named(member)) for member, at in zip(found[::2], found[1::2], strict=True)
        ]

    async def jobs(self, job_ids: Sequence[str]) -> list[Job | None]:
        if not job_ids:
            return []
        heads, runs = await self._scripts.fetch(
            [("HMGET", keys.HEADS, *job_ids), ("HMGET", keys.RUNS, *job_ids)]
        )
        return [
            None if run is None else codec.decode_job(head, run)
            for head, run in zip(heads, runs, strict=True)
        ]

    async def held_by(self, worker_id: str, limit: int) -> list[str]:
        found = await self._one(
            "ZRANGEBYLEX", keys.HOLDERS, *keys.under_all(worker_id), "LIMIT", 0, limit
        )
        return [member.decode().partition(keys.NUL)[2] for member in found]

    async def find(
        self, job_filter: JobFilter, behind: tuple[Instant, str] | None, limit: int
    ) -> list[Job]:
        name, prefix = keys.NEWEST, ""
        if job_filter.schedule_id:
            name, prefix = keys.BY_SCHEDULE, job_filter.schedule_id + keys.NUL
        elif job_filter.state is not None:
            name, prefix = keys.STATES, job_filter.state + keys.NUL
        first = f"[{prefix}"
        last = f"({prefix}{keys.LAST if behind is None else keys.time_member(*behind)}"
        found: list[Job] = []
        while len(found) < limit:
            members = await self._one("ZREVRANGEBYLEX", name, last, first, "LIMIT", 0, FIND_CHUNK)
            last = f"({members[-1].decode()}" if members else last
            ids = [keys.time_member_id(member.decode()[len(prefix) :]) for member in members]
            jobs = await self.jobs(ids)
            found += [job for job in jobs if job is not None and passes(job, job_filter)]
            if len(members) < FIND_CHUNK:
                break
        return found[:limit]
