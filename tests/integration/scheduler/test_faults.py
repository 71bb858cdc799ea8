"""Three coordinators, five workers, and somebody who kills and pauses them at random, leaders above
all. On Redis with etcd also Redis is killed and started again (append-only file), and etcd loses
members that come back.

Afterwards: every acknowledged job has ended, each tick has exactly one instance and none is
missing, no stale report was accepted, and the history says what the jobs themselves say.
`TESTS_SOAK_S` makes the bad time longer (`make soak`: 600).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hyperscale.scheduler.errors import StaleLeader, StoreUnavailable
from hyperscale.scheduler.leader.election import ElectionUnavailable
from hyperscale.scheduler.leader.opening import open_election
from hyperscale.scheduler.queue.history import Outcome
from hyperscale.scheduler.queue.job import JobState, new_job
from hyperscale.scheduler.queue.reports import Completed, Refused
from hyperscale.scheduler.queue.spec import JobSpec, RetryPolicy
from hyperscale.scheduler.schedules import editing as schedules
from hyperscale.scheduler.schedules.schedule import Misfire, MisfirePolicy, ScheduleDefinition
from hyperscale.scheduler.store.opening import open_store
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import JobFilter, Submission
from tests.integration.clients.postgres_server import restart
from tests.integration.scheduler.cast import Cast, cast_of
from tests.integration.scheduler.etcd_cluster import etcd_cluster
from tests.integration.scheduler.fault_process import TTL_S
from tests.integration.scheduler.postgres_store import postgres
from tests.integration.scheduler.redis_server import redis_server
from tests.integration.scheduler.truth import check_jobs, check_ticks
from tests.integration.scheduler.waiting import until
from tests.unit.scheduler.worlds import host_of, wall_clock

BAD_TIME_S = float(os.environ.get("TESTS_SOAK_S", "30"))
SQLITE_SHARE = 0.4
"""Its faults are a part of the other's: nobody there to be restarted or cut off."""
JOBS_PER_S = 100 / 60
NAP_S = 1.0
"""Some four jobs run at any moment: whoever kills a worker hits one more often than not."""
SLOTS = (1, 1, 2, 3, 4)
COORDINATORS = 3
LEADER_SHARE = 0.3
"""Of the misfortunes: aimed at whoever leads."""
RETRY = RetryPolicy(max_retries=50, initial_s=0.2, max_s=1.0)
NAMES = ("one", "two")
STILL_OPEN = (JobState.PENDING, JobState.CLAIMED, JobState.EXECUTING)
Misfortune = Callable[[random.Random], Awaitable[None]]


def job_spec(journal: Path) -> JobSpec:
    payload = {
        "call": "tests.integration.scheduler.nap:nap",
        "args": json.dumps([str(journal), NAP_S]),
    }
    return JobSpec(name="nap", kind="python", payload=payload, retry=RETRY)


class Play:
    def __init__(
        self, store: Store, address: str, election: str, directory: Path, bad_time_s: float
    ) -> None:
        self.store = store
        self.address = address
        self.election = open_election(host_of(), election, store, "observer")
        self.journal = directory / "journal"
        self.spec = job_spec(self.journal)
        self.until_s = time.monotonic() + bad_time_s
        self.bad_time_s = bad_time_s
        self.stale_refused = 0

    @property
    def over(self) -> bool:
        """Not before an attempt was lost, unless that takes far too long."""
        late_s = time.monotonic() - self.until_s
        return late_s > 0 and (self.stale_refused > 0 or late_s > 3 * self.bad_time_s)

    async def run(self, cast: Cast, misfortunes: list[tuple[float, Misfortune]]) -> None:
        """Each misfortune with how often it comes, in seconds."""
        for name in NAMES:
            definition = ScheduleDefinition(
                name=name,
                cron="* * * * * *",
                job=self.spec,
                misfire=MisfirePolicy(kind=Misfire.RUN_ALL, cap=1000, grace_s=60),
            )
            await schedules.add(self.store, name, definition, wall_clock())
        acknowledged, *_ = await asyncio.gather(
            self.customers(),
            self.trouble(cast),
            self.liar(),
            *(self.regularly(every_s, act) for every_s, act in misfortunes),
        )
        for name in NAMES:
            await schedules.set_paused(self.store, name, True, wall_clock())
        await until(self.all_ended, deadline_s=90 + self.bad_time_s)
        jobs = await check_jobs(self.store, acknowledged, self.journal)
        for job_id in jobs:
            await self.lie(job_id)
        for name in NAMES:
            await check_ticks(self.store, name, jobs, at_least=int(self.bad_time_s / 2))
        assert len(acknowledged) >= self.bad_time_s * JOBS_PER_S / 2
        assert self.stale_refused > 0, "nothing was lost: the test tested nothing"

    async def all_ended(self) -> bool:
        states = (await self.store.counts()).states
        return not any(states[state] for state in STILL_OPEN)

    async def customers(self) -> list[str]:
        acknowledged: list[str] = []
        began = wall_clock()
        while not self.over:
            job = new_job(f"job-{len(acknowledged):05}", self.spec, began)
            try:
                await self.store.submit(Submission(job=job), wall_clock())
                acknowledged.append(job.id)
            except StoreUnavailable:
                pass  # whether it happened is unknown: the same id is tried again
            await asyncio.sleep(1 / JOBS_PER_S)
        return acknowledged

    async def trouble(self, cast: Cast) -> None:
        dice = random.Random(2024)
        while not self.over:
            player = dice.choice(cast.playing)
            if dice.random() < LEADER_SHARE:
                player = cast.named(await self.leader()) or player
            if dice.random() < 0.5:
                await asyncio.to_thread(cast.kill, player)
            else:
                player.process.send_signal(signal.SIGSTOP)
                await asyncio.sleep(dice.uniform(0.5, TTL_S * 1.5))
                player.process.send_signal(signal.SIGCONT)
            await asyncio.sleep(dice.uniform(0.2, 1.0))

    async def leader(self) -> str:
        try:
            leader = await self.election.leader()
        except ElectionUnavailable:
            return ""
        return "" if leader is None else leader.node

    async def liar(self) -> None:
        """Says "done" for attempts that are over: nobody may believe it."""
        while not self.over:
            await asyncio.sleep(1.0)
            try:
                for job in (await self.store.jobs(JobFilter(), limit=50)).jobs:
                    await self.lie(job.id)
            except StoreUnavailable:
                continue

    async def lie(self, job_id: str) -> None:
        for attempt in await self.store.attempts(job_id):
            if attempt.outcome is not Outcome.COMPLETED:
                said = Completed(job_id=job_id, worker=attempt.worker, token=attempt.token)
                answer = await self.store.report(said, wall_clock())
                assert isinstance(answer, Refused), attempt
                self.stale_refused += 1

    async def regularly(self, every_s: float, act: Misfortune) -> None:
        dice = random.Random(every_s)
        at_s = time.monotonic() + every_s
        while at_s < self.until_s:
            await asyncio.sleep(at_s - time.monotonic())
            await act(dice)
            at_s += every_s


def test_through_kills_and_pauses_on_sqlite(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'jobs.db'}"

    async def run(cast: Cast) -> None:
        store = await open_store(address)
        play = Play(store, address, "local", tmp_path, BAD_TIME_S * SQLITE_SHARE)
        await play.run(cast, [])
        await store.close()

    with cast_of(address, "local", tmp_path, COORDINATORS, SLOTS) as cast:
        asyncio.run(run(cast))
        assert set(cast.stop()) == {0}


def test_through_loss_of_everything_on_redis_and_etcd(tmp_path: Path) -> None:
    with (
        redis_server(tmp_path) as server,
        etcd_cluster(tmp_path, 3) as etcd,
        cast_of(server.url, etcd.address, tmp_path, COORDINATORS, SLOTS) as cast,
    ):

        async def redis_restarts(_: random.Random) -> None:
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)

        async def etcd_loses_a_member(dice: random.Random) -> None:
            member = dice.randrange(len(etcd.hosts))
            await asyncio.to_thread(etcd.kill, member)
            await asyncio.sleep(2 * TTL_S)
            await asyncio.to_thread(etcd.heal, member)

        async def run() -> None:
            store = await open_store(server.url)
            play = Play(store, server.url, etcd.address, tmp_path, BAD_TIME_S)
            await play.run(cast, [(12.0, redis_restarts), (9.0, etcd_loses_a_member)])
            await play.election.close()
            await store.close()

        asyncio.run(run())
        assert set(cast.stop()) == {0}


def test_through_crashes_of_postgres_which_is_store_and_election(tmp_path: Path) -> None:
    with postgres() as server:
        address = server.fresh()

        async def crash(_: random.Random) -> None:
            await asyncio.to_thread(restart, server.folder)

        async def run(cast: Cast) -> None:
            store = await open_store(address)
            play = Play(store, address, address, tmp_path, BAD_TIME_S * SQLITE_SHARE)
            await play.run(cast, [(5.0, crash)])
            await play.election.close()
            await store.close()

        with cast_of(address, "local", tmp_path, COORDINATORS, SLOTS) as cast:
            asyncio.run(run(cast))
            assert set(cast.stop()) == {0}


def test_a_leader_that_slept_past_its_lease_leads_no_more(tmp_path: Path) -> None:
    """Cut off from etcd, the store and time itself. When it wakes up, ticks that came meanwhile are
    its successor's; the store refuses its token, which is above etcd's revision, for good."""
    address = f"sqlite:{tmp_path / 'jobs.db'}"

    async def run(cast: Cast, election: str) -> None:
        store = await open_store(address)
        play = Play(store, address, election, tmp_path, 0)
        definition = ScheduleDefinition(name="one", cron="* * * * * *", job=play.spec)
        await schedules.add(store, "one", definition, wall_clock())

        async def led_by_another(than: str) -> bool:
            return await play.leader() not in ("", than)

        async def epoch_above(epoch: int) -> bool:
            return await store.epoch() > epoch

        async def fired(count: int) -> bool:
            known = await store.schedule("one")
            return known is not None and known.fired >= count

        await until(lambda: fired(2))
        first, first_epoch = await play.leader(), await store.epoch()
        sleeper = cast.named(first)
        assert sleeper is not None
        sleeper.process.send_signal(signal.SIGSTOP)
        await until(lambda: led_by_another(first))
        await until(lambda: epoch_above(first_epoch))
        known = await store.schedule("one")
        assert known is not None
        await until(lambda: fired(known.fired + 2))
        sleeper.process.send_signal(signal.SIGCONT)
        await until(lambda: fired(known.fired + 5))
        with pytest.raises(StaleLeader):
            await store.promote(wall_clock(), epoch=first_epoch)
        assert await play.leader() != first
        assert sleeper.process.poll() is None, "it waits in line again"
        await schedules.set_paused(store, "one", True, wall_clock())
        await until(play.all_ended)
        jobs = await check_jobs(store, [], play.journal)
        await check_ticks(store, "one", jobs, at_least=7)
        await play.election.close()
        await store.close()

    with (
        etcd_cluster(tmp_path, 1) as etcd,
        cast_of(address, etcd.address, tmp_path, coordinators=2, slots=(2,)) as cast,
    ):
        asyncio.run(run(cast, etcd.address))
        assert set(cast.stop()) == {0}
