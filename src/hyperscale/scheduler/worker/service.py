"""A worker: claims what it has room for, runs it, and says what became of it.

Three tasks live apart from the jobs: heartbeats of the worker, heartbeats of its jobs, and the
reporter. Stopping keeps this order: no more claims, a heartbeat that says so, what
runs may finish while heartbeats go on, the rest is released, reports are sent, goodbye.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from hyperscale.runtime.host import Host
from hyperscale.runtime.logs import logger
from hyperscale.runtime.tasks import ended
from hyperscale.scheduler.errors import NotFound, StaleSession, StoreUnavailable
from hyperscale.scheduler.instants import Instant, after
from hyperscale.scheduler.queue.job import Failure, Job
from hyperscale.scheduler.queue.reports import Beat, Refused, Released
from hyperscale.scheduler.queue.spec import normal_capabilities
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Claim
from hyperscale.scheduler.telemetry import events
from hyperscale.scheduler.worker.executors.executor import Broken, Done, Result, TurnedAway
from hyperscale.scheduler.worker.executors.orphans import end_orphans
from hyperscale.scheduler.worker.executors.registry import Executors
from hyperscale.scheduler.worker.registration import Worker, WorkerBeat, WorkerState, check_worker
from hyperscale.scheduler.worker.reporter import Reporter, Spool
from hyperscale.scheduler.worker.running import CANCELLED_BY_ASKING, Running, report_of
from hyperscale.scheduler.worker.settings import WorkerSettings
from hyperscale.scheduler.worker.slots import AHEAD_S, CLAIM_MAX, Prefetch, Slots

RETRY_S: Final = 1.0
WAIT_S: Final = 1.0
"""So long a job claimed ahead waits for a slot: ten times what was meant. Its timeout runs already,
and another worker may be idle."""


class WorkerService:
    def __init__(
        self,
        host: Host,
        store: Store,
        settings: WorkerSettings,
        executors: Executors,
        now: Callable[[], Instant],
    ) -> None:
        self.id = settings.id
        self._store = store
        self._settings = settings
        self._executors = executors
        self._now = now
        self._instance = f"{host.random.getrandbits(128):032x}"
        self._started_at = now()
        self._session = 0
        self._sequence = 0
        self._held: dict[str, Running] = {}
        self._slots = Slots(host, settings.slots, executors, self._over)
        self._prefetch = Prefetch(settings.slots)
        self._host = host
        self._tasks: list[asyncio.Task[Any]] = []
        self._room = asyncio.Event()
        self._leaving = False
        """It stops. The store gives nothing to one that a person drained."""
        self._drained = False
        self._empty = asyncio.Event()
        """Drained, and nothing of its own left to do."""
        self._ended = asyncio.Event()
        self._log: Any = logger("scheduler.worker")

    @property
    def running(self) -> int:
        return len(self._held)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self._executors)

    @property
    def draining(self) -> bool:
        return self._leaving or self._drained

    async def start(self) -> None:
        """Raises StaleSession when another live process has this id."""
        self._spool = await self._left_behind()
        self._reporter = Reporter(self._store, self._spool, self._now)
        await self._register()
        self._spawn("worker reports", self._reporter.run)
        await self._reporter.send_left()
        self._spawn("worker heartbeat", self._beat_forever)
        self._spawn("job heartbeats", self._beat_jobs_forever)
        self._claiming = self._spawn("worker claims", self._claim_forever)

    async def _left_behind(self) -> Spool:
        """By an earlier process: its reports; what it had started is ended."""
        spool = await asyncio.to_thread(Spool, self._settings.spool)
        await asyncio.to_thread(end_orphans, self._settings.processes)
        return spool

    def _spawn(self, name: str, loop: Callable[[], Awaitable[None]]) -> asyncio.Task[Any]:
        task = self._host.tasks.spawn(name, self._tireless(loop)).asyncio_task
        self._tasks.append(task)
        return task

    def drain(self) -> None:
        """Finish what runs, take nothing more."""
        self._leaving = True
        self._room.set()

    async def drained(self) -> None:
        """Until a person has drained it and its last job is over."""
        await self._empty.wait()

    async def wait(self) -> None:
        """Until the worker has ended: stopped, or replaced under its id."""
        await self._ended.wait()

    async def stop(self) -> None:
        if self._ended.is_set():
            return
        self.drain()
        await self._try_beat()
        await self._claiming
        for running in self._slots.not_begun():
            self._give_back(running)
        await self._slots.idle(self._settings.shutdown_timeout_s)
        for running in list(self._held.values()):
            self._give_back(running)
        await self._slots.idle()
        try:
            async with asyncio.timeout(self._settings.dead_after_s):
                await self._reporter.flushed()
        except TimeoutError:
            self._log.warning("reports stay in the spool", count=self._reporter.unanswered)
        await self._try_beat(leaving=True)
        await self._end()

    async def _end(self) -> None:
        await self._slots.idle()
        me = asyncio.current_task()  # one of them, when another process took the id
        await ended([task for task in self._tasks if task is not me])
        await self._executors.close()
        self._ended.set()

    async def _tireless(self, loop: Callable[[], Awaitable[None]]) -> None:
        """What nobody expected ends one turn only: a worker that beats and claims nothing looks
        healthy, and one that claims and does not beat or report loses its jobs."""
        while True:
            try:
                return await loop()
            except Exception as error:  # noqa: BLE001
                self._log.error("a turn of the worker failed", error=str(error), exc_info=error)
                await asyncio.sleep(RETRY_S)

    # The worker itself.

    async def _register(self) -> None:
        worker = Worker(
            id=self.id,
            instance=self._instance,
            address=self._settings.address,
            capacity=self._settings.slots,
            capabilities=normal_capabilities(self._settings.capabilities),
            metadata={**self._settings.metadata, "kinds": ",".join(self._executors)},
            running=len(self._held),
            started_at=self._started_at,
            seen_at=self._now(),
        )
        check_worker(worker)
        known = await self._store.register(worker, self._now(), self._settings.dead_after_s)
        self._session, self._sequence = known.session, known.sequence

    async def _beat_forever(self) -> None:
        while True:
            await asyncio.sleep(self._settings.beat_s)
            try:
                await self._beat()
            except StoreUnavailable as error:
                self._log.warning(events.HEARTBEAT_LOST, error=str(error))
            except StaleSession:
                self._log.error(events.REPLACED, worker=self.id)
                self._replaced()
                return

    async def _beat(self, leaving: bool = False) -> None:
        self._sequence += 1
        beat = WorkerBeat(
            worker_id=self.id,
            session=self._session,
            sequence=self._sequence,
            running=len(self._held),
            draining=self._leaving,
            leaving=leaving,
        )
        try:
            worker = await self._store.beat(beat, self._now())
        except NotFound:
            await self._register()
            return
        drained = worker.state is WorkerState.DRAINING and not self._leaving
        if drained != self._drained:
            self._log.info("asked to drain" if drained else "drains no more", worker=self.id)
        self._drained = drained
        self._see_empty()

    def _see_empty(self) -> None:
        if self._drained and not self._held:
            self._empty.set()
        else:
            self._empty.clear()

    async def _try_beat(self, leaving: bool = False) -> None:
        try:
            await self._beat(leaving)
        except (StoreUnavailable, StaleSession) as error:
            self._log.warning(events.HEARTBEAT_LOST, error=str(error))

    def _replaced(self) -> None:
        self.drain()
        for running in list(self._held.values()):
            self._disown(running)
        self._host.tasks.spawn("end of a replaced worker", self._end())

    # Its jobs.

    async def _claim_forever(self) -> None:
        while not self._leaving:
            self._room.clear()
            unanswered = self._reporter.unanswered
            wanted = self._prefetch.wanted(len(self._held), self._slots.quick(AHEAD_S))
            if wanted == 0 or unanswered > 2 * CLAIM_MAX or self._spool.full:
                await self._wait_for_room()
                continue
            mark = self._store.mark()
            try:
                jobs = await self._claim(wanted)
                if not jobs:
                    await self._store.changed(mark, self._settings.poll_s)
            except StoreUnavailable as error:
                self._log.warning(events.CLAIMS_WAIT, error=str(error))
                await asyncio.sleep(RETRY_S)

    async def _wait_for_room(self) -> None:
        try:
            async with asyncio.timeout(self._settings.poll_s):
                await self._room.wait()
        except TimeoutError:
            return

    async def _claim(self, limit: int) -> list[Job]:
        claim = Claim(
            worker=self.id,
            kinds=self.kinds,
            capabilities=normal_capabilities(self._settings.capabilities),
            limit=limit,
            lease_s=self._settings.lease_s,
            start=True,
        )
        jobs = await self._store.claim(claim, self._now())
        if self._leaving:
            for job in jobs:
                self._release(job)
            return jobs
        taken = [
            Running(job, partial(self._store.last_good, job.schedule_id))
            if job.schedule_id
            else Running(job)
            for job in jobs
        ]
        self._held.update((running.job.id, running) for running in taken)
        self._slots.add(taken)
        return jobs

    def _over(self, running: Running, result: Result | TurnedAway, ran_s: float) -> None:
        self._forget(running)
        if not isinstance(result, TurnedAway):
            self._prefetch.ran(ran_s)
        if running.disowned:
            return
        if running.given_back and not isinstance(result, Done):
            self._release(running.job)
        elif isinstance(result, TurnedAway):
            self._release(running.job, result.delay_s, result.error)
        else:
            self._reporter.finished(report_of(running.job, self.id, result), ran_s)

    def _forget(self, running: Running) -> None:
        if self._held.get(running.job.id) is running:
            del self._held[running.job.id]
        self._room.set()
        self._see_empty()

    def _disown(self, running: Running) -> None:
        running.disowned = True
        if self._slots.stop(running):
            self._forget(running)

    def _give_back(self, running: Running) -> None:
        """Unharmed, free of charge. What runs is released in `_over`, when it is dead: whoever
        claims it next would run it beside what is left of it here."""
        running.given_back = True
        if self._slots.stop(running):
            self._forget(running)
            self._release(running.job)

    def _give_back_waiting(self) -> None:
        if len(self._held) <= self._settings.slots:
            return
        since = after(self._now(), -WAIT_S)
        for running in self._slots.not_begun():
            claimed_at = running.job.claimed_at
            if claimed_at is not None and claimed_at < since:
                self._give_back(running)

    def _release(self, job: Job, delay_s: float = 0.0, reason: str = "") -> None:
        self._reporter.tell(
            Released(job_id=job.id, worker=self.id, token=job.token, delay_s=delay_s, reason=reason)
        )

    async def _beat_jobs_forever(self) -> None:
        while True:
            await asyncio.sleep(self._settings.job_beat_s)
            self._give_back_waiting()
            held = sorted(self._held.values(), key=lambda running: running.job.id)
            if held:
                await asyncio.gather(*(self._beat_job(running) for running in held))

    async def _beat_job(self, running: Running) -> None:
        job = running.job
        if self._held.get(job.id) is not running:
            return
        moved, running.moved = running.moved, False
        beat = Beat(
            job_id=job.id,
            worker=self.id,
            token=job.token,
            lease_s=self._settings.lease_s,
            progress=running.progress,
            moved=moved,
        )
        answer = await self._reporter.ask(beat)
        if self._held.get(job.id) is not running:
            return
        if isinstance(answer, Refused):
            self._disown(running)
        elif answer.stop:
            self._stop_as_asked(running)

    def _stop_as_asked(self, running: Running) -> None:
        if self._slots.stop(running):
            self._forget(running)
            result = Broken(failure=Failure.CANCELLED, error=CANCELLED_BY_ASKING)
            self._reporter.finished(report_of(running.job, self.id, result), 0.0)
