"""What every request handler is given: the scheduler, who asks, and the audit book."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException

from hyperscale.errors import HyperscaleError
from hyperscale.scheduler.api.access import Access, Actor, Role
from hyperscale.scheduler.api.contract import Service
from hyperscale.scheduler.model.records import Audit
from hyperscale.scheduler.observability.metrics import Metrics

_bearer = HTTPBearer(auto_error=False, description="needed when tokens are configured")


@dataclass(frozen=True)
class Desk:
    service: Service
    access: Access
    metrics: Metrics


@dataclass(frozen=True)
class Asked:
    """One request of somebody who may make it."""

    desk: Desk
    actor: Actor
    source: str
    correlation_id: str

    @asynccontextmanager
    async def recorded(self, action: str, target: str, detail: str = "") -> AsyncIterator[None]:
        """The act inside goes into the audit book, with how it ended."""
        try:
            yield
        except HyperscaleError as error:
            await self._record(action, target, "refused", error.message)
            raise
        await self._record(action, target, "done", detail)

    async def _record(self, action: str, target: str, outcome: str, detail: str) -> None:
        service = self.desk.service
        row = Audit(
            at=service.now(),
            actor=self.actor.name,
            role=str(self.actor.role),
            action=action,
            target=target,
            outcome=outcome,
            source=self.source,
            detail=detail,
        )
        await service.store.audit(row)


def desk_of(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def _allowed(role: Role) -> Callable[..., object]:
    async def check(
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    ) -> Asked:
        desk = desk_of(request)
        actor = desk.access.actor(request.headers.get("authorization"))
        if actor is None:
            raise HTTPException(
                401, "this needs a bearer token", headers={"WWW-Authenticate": "Bearer"}
            )
        source = request.client.host if request.client else ""
        asked = Asked(desk, actor, source, request.scope.get("correlation_id", ""))
        if not actor.may(role):
            await asked._record(f"{request.method} denied", request.url.path, "denied", "")
            raise HTTPException(403, f"{actor.name} is {actor.role}; this needs {role} or more")
        return asked

    return check


Viewer = Annotated[Asked, Depends(_allowed(Role.VIEWER))]
Operator = Annotated[Asked, Depends(_allowed(Role.OPERATOR))]
Admin = Annotated[Asked, Depends(_allowed(Role.ADMIN))]
