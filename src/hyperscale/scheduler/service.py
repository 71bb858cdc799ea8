"""The scheduler in one process: store, election, coordinator and, unless told otherwise, a worker.

The API and the command line stand on this. What changes schedules lives here because it needs their
ticks; everything else a caller wants is the store's own method.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from hyperscale.runtime.etcd import EtcdAccess
from hyperscale.runtime.host import Host
from hyperscale.runtime.real import RealHost
from hyperscale.runtime.tasks import ended
from hyperscale.scheduler.instants import Instant, instants_of
from hyperscale.scheduler.leader.coordinator import Coordinator
from hyperscale.scheduler.leader.election import Leader
from hyperscale.scheduler.leader.opening import election_of, open_election
from hyperscale.scheduler.leader.settings import CoordinatorSettings
from hyperscale.scheduler.queue import emergency_stop as emergency
from hyperscale.scheduler.queue.identity import (
    WINDOW_S_DEFAULT,
    content_digest,
    dedup_key,
    time_ordered_id,
)
from hyperscale.scheduler.queue.job import new_job
from hyperscale.scheduler.queue.spec import JobSpec, check_spec
from hyperscale.scheduler.schedules import editing as schedules
from hyperscale.scheduler.schedules.schedule import Fired, Schedule, ScheduleDefinition
from hyperscale.scheduler.settings import SchedulerSettings
from hyperscale.scheduler.store.claim_guard import Emergency
from hyperscale.scheduler.store.clock import StoreClock
from hyperscale.scheduler.store.opening import open_store
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Dedup, StoreLimits, Submission, Submitted
from hyperscale.scheduler.telemetry.hook import NO_TELEMETRY, Telemetry
from hyperscale.scheduler.worker.executors.registry import open_executors
from hyperscale.scheduler.worker.registration import SUSPECT_SHARE
from hyperscale.scheduler.worker.service import WorkerService
from hyperscale.scheduler.worker.settings import (
    WorkerSettings,
    new_worker_id,
    spool_of,
    state_directory,
)


def limits_of(settings: SchedulerSettings) -> StoreLimits:
    return StoreLimits(suspect_after_s=settings.dead_after_s * SUSPECT_SHARE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    node: str
    leading: bool
    epoch: int
    lease_remaining_s: float
    degraded: str
    """Why not everything works now; empty: it does."""
    started_at: Instant
    lateness_s: float
    """Of the ticks fired last, if that was within a minute."""
    fired: int
    expired: int
    recovered: int
    suspects: tuple[str, ...]
    worker: str
    """Id of the embedded one."""


class Scheduler:
    def __init__(
        self,
        settings: SchedulerSettings,
        *,
        store: Store | None = None,
        host: Host | None = None,
        now: Callable[[], Instant] | None = None,
        node: str = "",
        telemetry: Telemetry = NO_TELEMETRY,
    ) -> None:
        """A store that is given stays open at the end; otherwise `start` opens the settings'. `now`
        is the store's clock unless another one is given."""
        self.settings = settings
        self.node = node or settings.node or new_worker_id()
        self._host = host or RealHost(self.node, state_directory())
        self._clock_given = now is not None
        self.now = now or instants_of(self._host.clock)
        self._following: asyncio.Task[None] | None = None
        self._telemetry = telemetry
        self.worker: WorkerService | None = None
        self.kinds: tuple[str, ...] = ()
        self._given = store
        self._store = store
        self._coordinator: Coordinator | None = None
        self._started_at = self.now()

    @property
    def store(self) -> Store:
        assert self._store is not None, "start() opens the store"
        return self._store

    @property
    def coordinator(self) -> Coordinator:
        assert self._coordinator is not None, "start() makes the coordinator"
        return self._coordinator

    async def start(self) -> None:
        settings = self.settings
        if self._store is None:
            self._store = await open_store(settings.store, limits_of(settings), self._telemetry)
        if not self._clock_given:
            self.now, self._following = await _followed_clock(self._host, self._store)
        self._election = open_election(
            self._host,
            election_of(settings.election, settings.store),
            self._store,
            self.node,
            settings.address,
            settings.election_ttl_s,
            EtcdAccess(
                user=settings.etcd_user,
                password=settings.etcd_password,
                ca=settings.etcd_ca,
                cert=settings.etcd_cert,
                key=settings.etcd_key,
            ),
            self._telemetry,
        )
        numbers = CoordinatorSettings(
            suspect_after_s=limits_of(settings).suspect_after_s,
            dead_after_s=settings.dead_after_s,
            scan_s=min(10.0, settings.dead_after_s / 4),
            grace_s=settings.grace_s,
            keep=settings.keep,
        )
        self._coordinator = Coordinator(self._host, self._store, self._election, numbers, self.now)
        self._coordinator.start()
        if settings.worker:
            worker_id = new_worker_id(settings.node)
            worker = _worker(
                self._host, settings, self._store, worker_id, self.now, self._telemetry
            )
            await worker.start()
            self.worker = worker
            self.kinds = worker.kinds

    async def stop(self) -> None:
        if self.worker is not None:
            await self.worker.stop()
            self.worker = None
        if self._coordinator is not None:
            await self._coordinator.stop()
            self._coordinator = None
        if self._following is not None:
            await ended([self._following])
            self._following = None
        if self._store is not None and self._given is None:
            await self._store.close()
            self._store = None

    async def __aenter__(self) -> Scheduler:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def leading(self) -> bool:
        return self._coordinator is not None and self._coordinator.leading

    @property
    def epoch(self) -> int:
        return 0 if self._coordinator is None else self._coordinator.epoch

    async def leader(self) -> Leader | None:
        """Raises ElectionUnavailable."""
        return await self._election.leader()

    def status(self) -> Status:
        figures = self.coordinator.figures
        return Status(
            node=self.node,
            leading=self.leading,
            epoch=self.epoch,
            lease_remaining_s=self.coordinator.lease_remaining_s,
            degraded=figures.degraded or self._election.trouble,
            started_at=self._started_at,
            lateness_s=figures.lateness_s,
            fired=figures.fired,
            expired=figures.expired,
            recovered=figures.recovered,
            suspects=figures.suspects,
            worker="" if self.worker is None else self.worker.id,
        )

    # Emergency stop.

    async def emergency(self) -> Emergency | None:
        return await emergency.current(self.store)

    async def emergency_stop(
        self, actor: str, reason: str = "", cancel_running: bool = False
    ) -> Emergency:
        """Until resumed no worker gets a job, and no tick fires: afterwards the misfire policy of
        each schedule judges what was missed. Raises InvalidJob, StoreUnavailable."""
        now = self.now()
        stopped = await emergency.stop(self.store, actor, reason, cancel_running, now)
        if stopped.cancel_running:
            await emergency.cancel_held(self.store, now)
        return stopped

    async def emergency_resume(self) -> Emergency | None:
        """What has ended; None when nothing was stopped."""
        return await emergency.resume(self.store)

    # Schedules.

    async def add_schedule(self, schedule_id: str, definition: ScheduleDefinition) -> Schedule:
        return await schedules.add(self.store, schedule_id, definition, self.now())

    async def change_schedule(
        self, schedule_id: str, version: int, definition: ScheduleDefinition
    ) -> Schedule:
        return await schedules.change(self.store, schedule_id, version, definition, self.now())

    async def pause(self, schedule_id: str) -> Schedule:
        return await schedules.set_paused(self.store, schedule_id, True, self.now())

    async def resume(self, schedule_id: str) -> Schedule:
        return await schedules.set_paused(self.store, schedule_id, False, self.now())

    async def trigger(self, schedule_id: str) -> Fired:
        return await schedules.trigger(self.store, schedule_id, self.now())

    async def backfill(self, schedule_id: str, start: Instant, end: Instant) -> Fired:
        return await schedules.backfill(self.store, schedule_id, start, end, self.now())

    # Jobs.

    def new_id(self) -> str:
        return time_ordered_id(self.now(), self._host.random)

    async def submit(
        self,
        spec: JobSpec,
        *,
        due_at: Instant | None = None,
        job_id: str = "",
        key: str | None = None,
        by_content: bool = False,
        window_s: float = WINDOW_S_DEFAULT,
        correlation_id: str = "",
    ) -> Submitted:
        """Raises InvalidJob, AlreadyExists, DedupConflict, StoreFull, StoreUnavailable."""
        now = self.now()
        name = job_id or time_ordered_id(now, self._host.random)
        job = new_job(
            name, check_spec(spec), now, due_at=due_at, correlation_id=correlation_id or name
        )
        dedup = None
        if key is not None or by_content:
            digest = content_digest(spec, due_at)
            dedup = Dedup(key=dedup_key(key, digest), digest=digest, window_s=window_s)
        return await self.store.submit(Submission(job=job, dedup=dedup), now)


async def _followed_clock(host: Host, store: Store) -> tuple[StoreClock, asyncio.Task[None]]:
    clock = StoreClock(host.clock, store)
    await clock.look()
    return clock, host.tasks.spawn("clock of the store", clock.follow()).asyncio_task


def _worker(
    host: Host,
    settings: SchedulerSettings,
    store: Store,
    worker_id: str,
    now: Callable[[], Instant],
    telemetry: Telemetry,
) -> WorkerService:
    spool = Path(settings.spool) if settings.spool else spool_of(settings.store)
    numbers = WorkerSettings(
        id=worker_id,
        address=settings.address,
        slots=settings.slots,
        capabilities=settings.capabilities,
        spool=spool,
        beat_s=settings.beat_s,
        dead_after_s=settings.dead_after_s,
        job_beat_s=min(3.0, settings.lease_s / 3),
        lease_s=settings.lease_s,
        shutdown_timeout_s=settings.shutdown_timeout_s,
    )
    executors = open_executors(
        settings.python_allow,
        settings.command,
        telemetry,
        loadtest_dir=settings.loadtest_dir,
        http_allow=settings.http_allow,
        processes=numbers.processes,
    )
    return WorkerService(host, store, numbers, executors, now)


@asynccontextmanager
async def open_worker(
    settings: SchedulerSettings,
    *,
    host: Host | None = None,
    store: Store | None = None,
    worker_id: str = "",
    telemetry: Telemetry = NO_TELEMETRY,
) -> AsyncIterator[WorkerService]:
    """A worker without a coordinator, on the same store. One that is given stays open."""
    used = store or await open_store(settings.store, limits_of(settings), telemetry)
    try:
        name = worker_id or new_worker_id(settings.node)
        host = host or RealHost(name, state_directory())
        now, following = await _followed_clock(host, used)
        try:
            worker = _worker(host, settings, used, name, now, telemetry)
            await worker.start()
            try:
                yield worker
            finally:
                await worker.stop()
        finally:
            await ended([following])
    finally:
        if store is None:
            await used.close()
