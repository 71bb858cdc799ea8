"""What every request handler is given: the scheduler, who asks, and the audit book.

A store that does not answer is asked again (`retrying`) before the client is told so. Only for
calls that may be repeated; each wait is spread so that callers do not come back at once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

import msgspec
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException

from hyperscale.cluster.overload.backoff import Backoff
from hyperscale.errors import HyperscaleError
from hyperscale.runtime.logs import logger
from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.http.access import Access, Actor, Right, holders
from hyperscale.scheduler.http.problems import unknown_caller
from hyperscale.scheduler.service import Scheduler
from hyperscale.scheduler.store.audit import Audit
from hyperscale.scheduler.telemetry import events
from hyperscale.scheduler.telemetry.metrics import Metrics, QueueGauges
from hyperscale.scheduler.telemetry.spans import TRACEPARENT, is_traceparent

TRIES: Final = 5
BACKOFF: Final = Backoff(base_delay_s=0.08, delay_max_s=1.0)
"""Together under a second and a quarter: a failover of Redis behind a proxy is
over by then, and the client's own patience (10 s) is not."""
GIVE_UP_S: Final = 5.0
"""No further try once so much time is gone: a store that hangs takes seconds for one."""

T = TypeVar("T")
_dice = random.Random()


async def retrying(call: Callable[[], Awaitable[T]]) -> T:
    """Raises StoreUnavailable when the last try failed too."""
    loop = asyncio.get_running_loop()
    until = loop.time() + GIVE_UP_S
    for tries in range(TRIES - 1):
        try:
            return await call()
        except StoreUnavailable:
            if loop.time() >= until:
                raise
        await asyncio.sleep(BACKOFF.delay_s(tries, _dice))
    return await call()


_log = logger("scheduler.api")
_bearer = HTTPBearer(auto_error=False, description="needed when tokens are configured")


@dataclass(frozen=True)
class Context:
    service: Scheduler
    access: Access
    metrics: Metrics
    gauges: QueueGauges


@dataclass(frozen=True)
class Asked:
    """One request of somebody who may make it."""

    context: Context
    actor: Actor
    source: str
    correlation_id: str
    traceparent: str
    """Of the caller (W3C), when it sent a good one."""

    @asynccontextmanager
    async def recorded(self, action: str, target: str, detail: str = "") -> AsyncIterator[None]:
        """The act inside goes into the audit book twice: before it, because nothing is done that
        the book does not know of, and with how it ended. Raises StoreUnavailable before the act
        when the book cannot be written."""
        await self._write(self._row(action, target, "asked", detail))
        try:
            yield
        except StoreUnavailable:
            raise  # whether it was done is not known; that it was asked for is written
        except HyperscaleError as error:
            await self._record(action, target, "refused", error.message)
            raise
        await self._record(action, target, "done", detail)

    async def _record(self, action: str, target: str, outcome: str, detail: str) -> None:
        """What was done is done, and is answered so: a 503 would deny a job that exists. A row that
        is missing behind an "asked" tells of the gap, and the log has it."""
        row = self._row(action, target, outcome, detail)
        try:
            await self._write(row)
        except StoreUnavailable:
            _log.error(events.AUDIT_LOST, **msgspec.structs.asdict(row))

    async def _write(self, row: Audit) -> None:
        await retrying(lambda: self.context.service.store.audit(row))

    def _row(self, action: str, target: str, outcome: str, detail: str) -> Audit:
        return Audit(
            at=self.context.service.now(),
            actor=self.actor.name,
            role=str(self.actor.role),
            action=action,
            target=target,
            outcome=outcome,
            source=self.source,
            detail=detail,
        )


def context_of(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


def _allowed(right: Right) -> Callable[..., object]:
    async def check(
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    ) -> Asked:
        context = context_of(request)
        authorization = request.headers.get("authorization")
        actor = context.access.actor(authorization)
        if actor is None:
            raise unknown_caller(authorization)
        source = request.client.host if request.client else ""
        parent = request.headers.get(TRACEPARENT, "")
        asked = Asked(
            context,
            actor,
            source,
            correlation_id=request.scope.get("correlation_id", ""),
            traceparent=parent if is_traceparent(parent) else "",
        )
        if not actor.may(right):
            await asked._record(f"{request.method} denied", request.url.path, "denied", "")
            raise HTTPException(403, f"{actor.name} is {actor.role}; this needs {holders(right)}")
        return asked

    return check


WorkingFor = Annotated[Asked, Depends(_allowed(Right.WORK))]
Viewer = Annotated[Asked, Depends(_allowed(Right.LOOK))]
Auditor = Annotated[Asked, Depends(_allowed(Right.AUDIT))]
Operator = Annotated[Asked, Depends(_allowed(Right.OPERATE))]
Admin = Annotated[Asked, Depends(_allowed(Right.ADMINISTER))]
