"""A job store behind a network: what one database does, and what clients see of it.

The operations are those of production on the store's memory ground. A request may be lost, late, or
done without an answer; one that a dead or paused process has sent still arrives. What is done is
told to checkers, with what was true before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any, Final, TypeVar

from hyperscale.scheduler.errors import SchedulerError, StoreUnavailable
from hyperscale.scheduler.instants import SECOND, Instant
from hyperscale.scheduler.queue import operations as queue
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.placement import Place
from hyperscale.scheduler.queue.reports import Accepted
from hyperscale.scheduler.schedules.schedule import Fired
from hyperscale.scheduler.store.ground import accepted
from hyperscale.scheduler.store.memory import MemoryGround, MemoryRecords
from hyperscale.scheduler.store.tables import EPOCHS, Kind, Operation
from hyperscale.scheduler.store.types import Claim, Counts, JobFilter, Taken
from hyperscale.scheduler.store.wakeups import Wakeups
from hyperscale.scheduler.worker import operations as workers
from hyperscale.sim.host import SimHost
from hyperscale.sim.process import Process
from hyperscale.sim.world import World

T = TypeVar("T")

DATABASE: Final = "db"
ANSWER_S: Final = 2.0
LATE_S_MAX: Final = 8.0
"""Its sender gave up long ago, and has asked again."""
LOOK_S: Final = 0.1
"""A database that stands still takes what came meanwhile when it goes on."""
REQUEST_BYTES: Final = 600

Request = Callable[[], Coroutine[Any, Any, Any]]


class Database:
    """One, in true time; it outlives every process."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ground = MemoryGround()
        self.late_share = world.random_stream("late").choice((0.0, 0.02, 0.1))
        self.listening: dict[Process, Wakeups] = {}
        self.ground.wakeups = _News(self._tell)

    @property
    def records(self) -> MemoryRecords:
        return self.ground._records

    @property
    def epoch(self) -> int:
        return self.records.get(EPOCHS, queue.EPOCH_KEY) or 0

    def _tell(self) -> None:
        self.listening = {p: wakeups for p, wakeups in self.listening.items() if not p.dead}
        for process, wakeups in self.listening.items():
            self.world.loop.post(process, wakeups.wake)

    def time(self) -> Instant:
        return round(self.world.wall() * SECOND)

    def take(self, claim: Claim, now: Instant, promote_max: int) -> Taken:
        current = self.epoch
        taken: Taken = at_once(self.ground.take(claim, now, promote_max))
        self._led("promote", claim.epoch, current)
        if taken.jobs:
            tokens = {job.id: job.token for job in taken.jobs}
            self.world.observe("taken", worker=claim.worker, jobs=tokens)
        return taken

    def write(self, steps: Sequence[Operation[Any]]) -> list[Any]:
        return [self.do(step) for step in steps]

    def do(self, step: Operation[Any]) -> Any:
        done = getattr(step, "func", None)
        given = getattr(step, "keywords", {})
        epoch, current = given.get("epoch", 0), self.epoch
        said = given.get("said")
        before = self.records.job(said.job_id) if done is queue.report and said else None
        (outcome,) = at_once(self.ground.write((step,)))
        if isinstance(outcome, SchedulerError):
            return outcome
        self._led(getattr(done, "__name__", "step"), epoch, current)
        if isinstance(outcome, Accepted) and not outcome.repeated:
            self.world.observe("accepted", said=said, before=before)
        elif isinstance(outcome, Fired):
            for job in outcome.jobs:
                self.world.observe("instance", schedule=job.schedule_id, tick=job.tick, job=job.id)
        elif done is workers.move:
            self.world.observe("moved", worker=given["worker_id"], event=given["event"].name)
        return outcome

    def _led(self, act: str, epoch: int, current: int) -> None:
        if epoch:
            self.world.observe("led", act=act, epoch=epoch, current=current)


def at_once(work: Any) -> Any:
    """The memory ground waits for nothing."""
    try:
        work.send(None)
    except StopIteration as over:
        return over.value
    raise AssertionError("a memory ground waited")


class _News(Wakeups):
    """Of the database: its clients are told, each in its own process."""

    def __init__(self, tell: Callable[[], None]) -> None:
        super().__init__()
        self._tell = tell

    def wake(self, sign: int | None = None) -> None:
        self._tell()


class RemoteGround:
    """The database as one process sees it."""

    def __init__(self, world: World, host: SimHost, database: Database) -> None:
        self.wakeups = Wakeups()
        self._world = world
        self._host = host
        self._database = database
        self._dice: Random = world.random_stream(f"store of {host.name}/{host.generation}")
        self._late_share = database.late_share
        database.listening[host.process] = self.wakeups

    async def close(self) -> None:
        """It ends with its process."""

    async def _ask(self, act: Callable[[], Any]) -> Any:
        loop = self._world.loop
        answer: asyncio.Future[Any] = loop.create_future()
        self._pass(self._host.name, DATABASE, self._arrived, act, answer)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await answer
        except TimeoutError:
            raise StoreUnavailable("the store did not answer") from None

    def _pass(self, source: str, target: str, arrived: Callable[..., None], *facts: Any) -> None:
        fabric, machines = self._world.network, self._world.machines
        link = fabric.link(source, target)
        if not fabric.passes(source, target, self._host.name) or self._dice.random() < link.loss:
            what = "answer" if source == DATABASE else "request"
            self._world.coverage[f"lost {what} of the store"] += 1
            return
        late_s = self._dice.uniform(0.5, LATE_S_MAX) if self._is_late() else 0.0
        delay_s = late_s + fabric.delay(machines[source], machines[target], REQUEST_BYTES)
        self._world.loop.after(delay_s, arrived, *facts)

    def _is_late(self) -> bool:
        late = not self._world.healed_at and self._dice.random() < self._late_share
        if late:
            self._world.coverage["late at the store, or from it"] += 1
        return late

    def _arrived(self, act: Callable[[], Any], answer: asyncio.Future[Any]) -> None:
        process = self._world.machines[DATABASE].process
        if process is None:
            return
        if not process.running:
            self._world.loop.after(LOOK_S, self._arrived, act, answer)
            return
        try:
            outcome = act()
        except SchedulerError as refusal:
            outcome = refusal
        self._pass(DATABASE, self._host.name, self._answered, answer, outcome)

    def _answered(self, answer: asyncio.Future[Any], outcome: Any) -> None:
        self._world.loop.post(self._host.process, _resolve, answer, outcome)

    async def _told(self, act: Callable[[], Any]) -> Any:
        """A refusal of the whole is raised."""
        outcome = await self._ask(act)
        if isinstance(outcome, SchedulerError):
            raise outcome
        return outcome

    async def time(self) -> Instant:
        return int(await self._told(self._database.time))

    async def step(self, step: Operation[T], job_ids: Sequence[str] = ()) -> T:
        (outcome,) = accepted(await self.write((step,)))
        return outcome

    async def write(
        self, steps: Sequence[Operation[T]], job_ids: Sequence[str] = ()
    ) -> list[T | SchedulerError]:
        return list(await self._told(lambda: self._database.write(steps)))

    async def take(self, claim: Claim, now: Instant, promote_max: int) -> Taken:
        taken: Taken = await self._told(lambda: self._database.take(claim, now, promote_max))
        return taken

    async def _look(self, question: Callable[[MemoryGround], Any]) -> Any:
        return await self._told(lambda: at_once(question(self._database.ground)))

    async def get(self, kind: Kind[T], keys: Sequence[str]) -> list[T | None]:
        return list(await self._look(lambda ground: ground.get(kind, keys)))

    async def page(self, kind: Kind[T], prefix: str, behind: str, limit: int) -> list[T]:
        return list(await self._look(lambda ground: ground.page(kind, prefix, behind, limit)))

    async def due(
        self, index: Kind[Any] | Place, until: Instant | None, limit: int
    ) -> list[tuple[Instant, str]]:
        return list(await self._look(lambda ground: ground.due(index, until, limit)))

    async def jobs(self, job_ids: Sequence[str]) -> list[Job | None]:
        return list(await self._look(lambda ground: ground.jobs(job_ids)))

    async def held_by(self, worker_id: str, limit: int) -> list[str]:
        return list(await self._look(lambda ground: ground.held_by(worker_id, limit)))

    async def find(
        self, job_filter: JobFilter, behind: tuple[Instant, str] | None, limit: int
    ) -> list[Job]:
        return list(await self._look(lambda ground: ground.find(job_filter, behind, limit)))

    async def counts(self) -> Counts:
        counts: Counts = await self._look(lambda ground: ground.counts())
        return counts

    async def sizes(self, indexes: Sequence[Kind[Any] | Place]) -> list[int]:
        return list(await self._look(lambda ground: ground.sizes(indexes)))


def _resolve(answer: asyncio.Future[Any], outcome: Any) -> None:
    if not answer.done():
        answer.set_result(outcome)
