"""What a worker without a scheduler tells of itself: health for whoever restarts it, metrics for
Prometheus. It takes no orders here; those come through the store.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request, Response
from pydantic import BaseModel

from hyperscale._version import __version__
from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.http import problems
from hyperscale.scheduler.http.access import Access
from hyperscale.scheduler.http.middleware import Gate
from hyperscale.scheduler.http.operations import READY_WITHIN_S, Alive
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.telemetry.metrics import CONTENT_TYPE, Metrics, WorkerGauges
from hyperscale.scheduler.worker.service import WorkerService


class WorkerHealth(BaseModel):
    status: str
    worker: str
    jobs: int
    slots: int
    kinds: list[str]
    version: str


def create_worker_app(
    worker: WorkerService, slots: int, store: Store, access: Access, metrics: Metrics
) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    gauges = WorkerGauges(metrics)

    def health(status: str) -> WorkerHealth:
        return WorkerHealth(
            status=status,
            worker=worker.id,
            jobs=worker.running,
            slots=slots,
            kinds=sorted(worker.kinds),
            version=__version__,
        )

    def known(request: Request) -> None:
        authorization = request.headers.get("authorization")
        if not access.may_look(authorization):
            raise problems.unknown_caller(authorization)

    def shown(request: Request, status: str, asked_for: str = "") -> WorkerHealth | Alive:
        if access.may_look(request.headers.get("authorization")):
            return health(status)
        return Alive(status=status, worker=asked_for if asked_for == worker.id else "")

    @app.get("/health/live")
    async def live(
        request: Request, asked: Annotated[str, Query(alias="worker", max_length=63)] = ""
    ) -> WorkerHealth | Alive:
        return shown(request, "alive", asked)

    @app.get("/health/ready")
    async def ready(request: Request, response: Response) -> WorkerHealth | Alive:
        status = "draining" if worker.draining else "ready"
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                await store.epoch()
        except (TimeoutError, StoreUnavailable):
            status = "store unavailable"
        if status != "ready":
            response.status_code = 503
        return shown(request, status)

    @app.get("/metrics", dependencies=[Depends(known)])
    async def page() -> Response:
        gauges.observe(slots, worker.running, worker.draining)
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    problems.install(app)
    app.add_middleware(Gate, access=access, node=worker.id)
    return app
