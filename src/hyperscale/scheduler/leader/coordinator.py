"""A coordinator: campaigns, leads while it may, and campaigns again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from hyperscale.runtime.logs import logger
from hyperscale.runtime.tasks import ended
from hyperscale.scheduler.errors import StaleLeader, StoreUnavailable
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.leader.duties import Duties, Figures
from hyperscale.scheduler.leader.election import Election, ElectionUnavailable, Term
from hyperscale.scheduler.leader.settings import CoordinatorSettings
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.telemetry import events

RETRY_S: Final = 1.0
RESIGNATION_S: Final = 10.0
"""An election service that does not answer is waited for this long, then the lease runs out."""


class Coordinator:
    def __init__(
        self,
        store: Store,
        election: Election,
        settings: CoordinatorSettings,
        now: Callable[[], Instant],
    ) -> None:
        self._store = store
        self._election = election
        self._settings = settings
        self._now = now
        self._term: Term | None = None
        self._task: asyncio.Task[None] | None = None
        self.figures = Figures()
        self.terms = 0
        self._log: Any = logger("scheduler.coordinator")

    @property
    def leading(self) -> bool:
        return self.lease_remaining_s > 0

    @property
    def epoch(self) -> int:
        return self._term.token if self._term is not None and self.leading else 0

    @property
    def lease_remaining_s(self) -> float:
        return 0.0 if self._term is None else self._term.remaining_s

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="coordinator")

    async def stop(self) -> None:
        if self._task is not None:
            await ended([self._task], RESIGNATION_S)
        await self._election.close()
        self._term = None

    async def _run(self) -> None:
        while True:
            try:
                await self._serve()
            except (StoreUnavailable, ElectionUnavailable) as error:
                self.figures.degraded = str(error)
                self._log.error(events.INTERRUPTED, error=str(error))
            except StaleLeader as error:
                self._log.warning("a newer coordinator leads", error=str(error))
            except Exception as error:  # noqa: BLE001  (whatever it is: no more ticks is worse)
                self.figures.degraded = f"{type(error).__name__}: {error}"
                self._log.error(events.TERM_BROKEN, error=str(error), exc_info=error)
            await asyncio.sleep(RETRY_S)

    async def _serve(self) -> None:
        try:
            await self._lead(await self._election.campaign(self._store.epoch))
        finally:
            self._term = None
            await self._election.resign()

    async def _lead(self, term: Term) -> None:
        # First of all, so that whoever led before is refused from here on.
        await self._store.raise_epoch(term.token)
        self.figures.degraded = ""
        self._term = term
        self.terms += 1
        self._log.info(events.LEADING, epoch=term.token)
        try:
            await Duties(self._store, term, self._settings, self._now, self.figures).run()
        finally:
            self._log.info("no longer leading", epoch=term.token)
