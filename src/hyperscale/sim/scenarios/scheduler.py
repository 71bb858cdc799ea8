"""The scheduler: real coordinators and workers on a store behind a bad network.

Users submit jobs, cancel some, run schedules by hand, drain workers and take them back, while
processes crash, stand still, lose the store and have wrong clocks. Each tick is one job, no
acknowledged job is lost, and whatever was taken away from somebody is nobody else's to report.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from hyperscale.scheduler.errors import SchedulerError, StoreUnavailable
from hyperscale.scheduler.instants import SECOND, instants_of
from hyperscale.scheduler.leader.coordinator import Coordinator
from hyperscale.scheduler.leader.opening import open_election
from hyperscale.scheduler.leader.settings import CoordinatorSettings
from hyperscale.scheduler.queue.job import Failure, new_job
from hyperscale.scheduler.queue.reports import Completed, Failed
from hyperscale.scheduler.queue.spec import JobSpec, RetryPolicy
from hyperscale.scheduler.schedules import editing
from hyperscale.scheduler.schedules.schedule import (
    Misfire,
    MisfirePolicy,
    Overlap,
    ScheduleDefinition,
)
from hyperscale.scheduler.store.clock import StoreClock
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.tables import SCHEDULES
from hyperscale.scheduler.store.types import StoreLimits, Submission
from hyperscale.scheduler.worker.executors.executor import Broken, Done, Result, Task
from hyperscale.scheduler.worker.executors.registry import Executors
from hyperscale.scheduler.worker.registration import WorkerEvent
from hyperscale.scheduler.worker.service import WorkerService
from hyperscale.scheduler.worker.settings import WorkerSettings
from hyperscale.sim.checkers import Checker
from hyperscale.sim.faults import ORDINARY_FAULTS, Limits
from hyperscale.sim.host import SimHost
from hyperscale.sim.scenario import Scenario
from hyperscale.sim.scenarios.scheduler_bugs import DATABASES, PLANTED_BUGS, hasty
from hyperscale.sim.scenarios.scheduler_checkers import all_checkers
from hyperscale.sim.scenarios.scheduler_store import DATABASE, Database, RemoteGround
from hyperscale.sim.world import World

TICK_S: Final = 4
TTL_S: Final = 3.0
DEAD_S: Final = 5.0
LEASE_S: Final = 5.0
BEHIND_S_MAX: Final = 3 * TICK_S
JOB_S_MAX: Final = 60.0
"""So long an instance may take in a whole world: late, lost twice, and behind others."""
SCHEDULE: Final = {
    "allow": Overlap.ALLOW,
    "queue": Overlap.QUEUE,
}
RETRY: Final = RetryPolicy(max_retries=50, initial_s=0.2, max_s=1.0)
USER: Final = "u1"
COORDINATOR: Final = CoordinatorSettings(
    scan_s=1.0, tidy_s=2.0, suspect_after_s=DEAD_S * 2 / 3, dead_after_s=DEAD_S, grace_s=DEAD_S
)


class Stopped(Exception):
    """A process ended as it should; its supervisor starts another."""


def job_spec(seconds: float) -> JobSpec:
    return JobSpec(name="nap", kind="nap", payload={"s": f"{seconds:.3f}"}, retry=RETRY)


class Spools:
    """Disks of workers, as far as their reports are concerned."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], Completed | Failed] = {}

    full = False

    async def read(self) -> list[Completed | Failed]:
        return list(self._kept.values())

    def keep(self, report: Completed | Failed) -> None:
        self._kept[report.job_id, report.token] = report

    def forget(self, report: Completed | Failed) -> None:
        self._kept.pop((report.job_id, report.token), None)


class Naps:
    """An executor that tells what runs."""

    def __init__(self, world: World, host: SimHost) -> None:
        self._world = world
        self._host = host

    async def run(self, task: Task) -> Result:
        facts: dict[str, Any] = {"node": self._host.name, "job": task.job_id, "token": task.token}
        self._world.observe("began", **facts)
        try:
            await self._host.clock.sleep(float(task.payload["s"]))
        finally:
            self._world.observe("over", **facts)
        if self._host.random.random() < 0.1:
            return Broken(failure=Failure.ERROR, error="chance")
        return Done()

    async def close(self) -> None:
        """Nothing is open."""


class _Executors(Executors):
    async def close(self) -> None:
        """No process of the system stands behind these."""


class SchedulerScenario(Scenario):
    name = "scheduler"
    summary = "coordinators and workers on one store: each tick once, no job lost or doubled"
    nodes_default = 3  # workers
    planted_bugs = PLANTED_BUGS
    faults = ORDINARY_FAULTS
    safety_s = 45.0
    liveness_s = 120.0
    steady_s = 4.0
    limits = Limits(
        loss_max=0.2,
        tail_max_s=3.0,
        pause_max_s=25.0,
        cut_max_s=12.0,
        down_max_s=10.0,
        gap_s_min=2.0,
        gap_s_max=12.0,
        wall_step_max_s=120.0,
    )

    def __init__(self, nodes: int | None = None, planted_bug: str = "") -> None:
        super().__init__(nodes, planted_bug)
        self._users_busy = True
        self._spools: dict[str, Spools] = {}

    async def setup(self, world: World) -> None:
        self.database = DATABASES.get(self.planted_bug, Database)(world)
        world.add(DATABASE, _waits)
        for number in range(1, world.random.randint(2, 3) + 1):
            world.add(f"c{number}", partial(self._coordinator, world))
        for number in range(1, self.nodes + 1):
            self._spools[f"w{number}"] = Spools()
            world.add(f"w{number}", partial(self._worker, world))
        world.add(USER, partial(self._user, world))

    def victims(self, world: World) -> list[str]:
        return [name for name in world.machines if name != USER]

    def checkers(self) -> list[Checker]:
        return all_checkers(lambda: self.database.records, TICK_S)

    def _store(self, world: World, host: SimHost) -> Store:
        limits = StoreLimits(suspect_after_s=DEAD_S * 2 / 3)
        return Store(RemoteGround(world, host, self.database), limits)

    async def _opened(self, world: World, host: SimHost) -> tuple[Store, StoreClock]:
        """As a process begins: on the store's clock."""
        store = self._store(world, host)
        clock = StoreClock(host.clock, store)
        await clock.look()
        host.tasks.spawn("clock of the store", clock.follow())
        return store, clock

    async def _coordinator(self, world: World, host: SimHost) -> None:
        store, clock = await self._opened(world, host)
        election = open_election(host, "local", store, host.name, ttl_s=TTL_S)
        coordinator = Coordinator(host, store, election, COORDINATOR, clock)
        coordinator.start()
        await host.clock.sleep(host.random.uniform(10.0, 60.0))
        await coordinator.stop()
        raise Stopped

    async def _worker(self, world: World, host: SimHost) -> None:
        store, clock = await self._opened(world, host)
        spool = self._spools[host.name]
        kind = _worker_on(spool)
        settings = WorkerSettings(
            id=f"{host.name}-{host.generation}",
            slots=2,
            spool=Path("unused"),
            beat_s=1.5,
            dead_after_s=DEAD_S,
            job_beat_s=1.0,
            lease_s=LEASE_S,
            shutdown_timeout_s=1.0,
        )
        executors = _Executors({"nap": Naps(world, host)})
        if self.planted_bug == "released-while-it-runs":
            kind = hasty(kind)
        worker = kind(host, store, settings, executors, clock)
        await worker.start()
        await host.clock.sleep(host.random.uniform(8.0, 40.0))
        await worker.stop()
        raise Stopped

    async def _user(self, world: World, host: SimHost) -> None:
        store, clock = self._store(world, host), instants_of(host.clock)
        user = User(world, host, store, clock, early=self.planted_bug == "ack-before-write")
        await user.run(self.safety_s)
        self._users_busy = False

    def goal(self, world: World) -> str:
        records = self.database.records
        behind = round((world.wall() - BEHIND_S_MAX) * SECOND)
        late = [s.id for s in records.tables[SCHEDULES.name].values() if s.cursor < behind]
        if self._users_busy:
            return "a user waits for an answer"
        if late:
            return f"no ticks of {', '.join(late)}"
        old = round((world.wall() - JOB_S_MAX) * SECOND)
        left = [
            job.id
            for job in records.jobs.values()
            if not job.ended and (not job.schedule_id or job.created_at < old)
        ]
        return f"{len(left)} jobs have not ended: {', '.join(left[:3])}" if left else ""

    def forgives(self, task: str, error: BaseException) -> bool:
        if task in ("main", "late write") and isinstance(error, SchedulerError | Stopped):
            return True
        return super().forgives(task, error)


async def _waits(host: SimHost) -> None:
    await asyncio.Event().wait()


def _worker_on(spool: Any) -> type[WorkerService]:
    class Worker(WorkerService):
        async def _left_behind(self) -> Any:
            return spool

    return Worker


class User:
    """Somebody who asks until the store answers."""

    def __init__(
        self,
        world: World,
        host: SimHost,
        store: Store,
        clock: Callable[[], int],
        early: bool,
    ) -> None:
        self._world = world
        self._host = host
        self._store = store
        self._now = clock
        self._dice: Random = host.random
        self._early = early
        self._jobs: list[str] = []

    async def run(self, busy_s: float) -> None:
        for name, overlap in SCHEDULE.items():
            definition = ScheduleDefinition(
                name=name,
                cron=f"*/{TICK_S} * * * * *",
                job=job_spec(1.5),
                overlap=overlap,
                misfire=MisfirePolicy(kind=Misfire.RUN_ALL, cap=1000, grace_s=3600),
            )
            await self._surely(partial(self._add, name, definition))
        until = self._host.clock.now() + busy_s
        acts = (self._submit, self._submit, self._cancel, self._drain, self._trigger)
        while self._host.clock.now() < until:
            await self._host.clock.sleep(self._dice.expovariate(1.0))
            await self._dice.choice(acts)()

    async def _add(self, name: str, definition: ScheduleDefinition) -> None:
        await editing.add(self._store, name, definition, self._now())

    async def _surely(self, act: Callable[[], Awaitable[Any]]) -> Any:
        while True:
            try:
                return await act()
            except StoreUnavailable:
                await self._host.clock.sleep(0.5)
            except SchedulerError:
                return None  # there already, by a try whose answer was lost; or too late

    async def _submit(self) -> None:
        job_id = f"job-{len(self._jobs)}"
        self._jobs.append(job_id)
        due_at = self._now() + self._dice.choice((0, 0, 3)) * SECOND
        job = new_job(job_id, job_spec(self._dice.uniform(0.1, 12.0)), self._now(), due_at=due_at)
        submission = Submission(job=job)
        if self._early:
            self._host.tasks.spawn("late write", self._store.submit(submission, self._now()))
        else:
            await self._surely(lambda: self._store.submit(submission, self._now()))
        self._world.observe("acked", job=job_id)

    async def _cancel(self) -> None:
        if self._jobs and self._dice.random() < 0.3:
            job_id = self._dice.choice(self._jobs)
            await self._surely(lambda: self._store.cancel(job_id, self._now()))

    async def _trigger(self) -> None:
        name = self._dice.choice(list(SCHEDULE))
        await self._surely(lambda: editing.trigger(self._store, name, self._now() + 1))

    async def _drain(self) -> None:
        workers = await self._surely(lambda: self._store.workers())
        if not workers:
            return
        chosen = self._dice.choice(workers).id
        await self._surely(lambda: self._store.move_worker(chosen, WorkerEvent.DRAIN))
        self._host.tasks.spawn(f"take back {chosen}", self._take_back(chosen))

    async def _take_back(self, worker: str) -> None:
        await self._host.clock.sleep(self._dice.uniform(1.0, 15.0))
        await self._surely(lambda: self._store.move_worker(worker, WorkerEvent.UNDRAIN))
