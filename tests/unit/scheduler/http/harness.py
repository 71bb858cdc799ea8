"""The whole HTTP side on a memory store, called without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx
from fastapi import FastAPI

from hyperscale.scheduler.http.access import Access, Actor, Role, digest_of
from hyperscale.scheduler.http.app import create_app
from hyperscale.scheduler.service import Scheduler
from hyperscale.scheduler.settings import SchedulerSettings
from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.telemetry.recording import Recording

T = TypeVar("T")

TOKENS = {role: f"token-of-the-{role}-for-tests" for role in Role}
WORK = {"kind": "http", "payload": {"url": "http://127.0.0.1:1/"}}


def tokens() -> Access:
    return Access({digest_of(token): Actor(str(role), role) for role, token in TOKENS.items()})


class Api:
    def __init__(self, app: FastAPI, scheduler: Scheduler, store: Store) -> None:
        self.app = app
        self.scheduler = scheduler
        self.store = store
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False),
            base_url="http://localhost",
        )

    async def call(
        self, method: str, path: str, body: Any = None, role: Role | None = None, **headers: str
    ) -> httpx.Response:
        if role is not None:
            headers["authorization"] = f"Bearer {TOKENS[role]}"
        return await self.client.request(
            method,
            path,
            json=body,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )

    async def get(self, path: str) -> Any:
        answer = await self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, path: str, body: Any = None, expect: int = 201) -> Any:
        answer = await self.call("POST", path, body)
        assert answer.status_code == expect, answer.text
        return answer.json()


def with_api(
    test: Callable[[Api], Awaitable[T]], access: Access | None = None, worker: bool = False
) -> T:
    async def work() -> T:
        telemetry = Recording()
        store = Store(MemoryGround(), telemetry=telemetry)
        settings = SchedulerSettings(worker=worker, node="node-1", address="http://localhost")
        async with Scheduler(settings, store=store, telemetry=telemetry) as scheduler:
            app = create_app(scheduler, access or Access(), telemetry.metrics)
            api = Api(app, scheduler, store)
            async with api.client:
                return await asyncio.wait_for(test(api), 30)

    return asyncio.run(work())
