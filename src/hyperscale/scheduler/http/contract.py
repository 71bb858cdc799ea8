"""What the HTTP side needs of a scheduler: its store, and the acts that need a timetable.

`scheduler.service.Scheduler` is one. Whatever is not here goes straight to the store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.emergency_stop import Emergency
from hyperscale.scheduler.queue.identity import WINDOW_S_DEFAULT
from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.schedules.schedule import Fired, Schedule, ScheduleDefinition
from hyperscale.scheduler.store.types import Store, Submitted


class LeaderLike(Protocol):
    @property
    def node(self) -> str: ...
    @property
    def address(self) -> str: ...


class StatusLike(Protocol):
    @property
    def node(self) -> str: ...
    @property
    def leading(self) -> bool: ...
    @property
    def epoch(self) -> int: ...
    @property
    def lease_remaining_s(self) -> float: ...
    @property
    def degraded(self) -> str: ...
    @property
    def started_at(self) -> Instant: ...
    @property
    def lateness_s(self) -> float: ...
    @property
    def worker(self) -> str: ...


class Service(Protocol):
    @property
    def node(self) -> str: ...
    @property
    def store(self) -> Store: ...
    @property
    def now(self) -> Callable[[], Instant]: ...

    def status(self) -> StatusLike: ...

    def new_id(self) -> str: ...

    async def leader(self) -> LeaderLike | None: ...

    async def emergency(self) -> Emergency | None: ...

    async def emergency_stop(
        self, actor: str, reason: str = "", cancel_running: bool = False
    ) -> Emergency: ...

    async def emergency_resume(self) -> Emergency | None: ...

    async def add_schedule(self, schedule_id: str, definition: ScheduleDefinition) -> Schedule: ...

    async def change_schedule(
        self, schedule_id: str, version: int, definition: ScheduleDefinition
    ) -> Schedule: ...

    async def pause(self, schedule_id: str) -> Schedule: ...

    async def resume(self, schedule_id: str) -> Schedule: ...

    async def trigger(self, schedule_id: str) -> Fired: ...

    async def backfill(self, schedule_id: str, start: Instant, end: Instant) -> Fired: ...

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
    ) -> Submitted: ...
