"""The whole HTTP side of a scheduler as one ASGI application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from fastapi.responses import FileResponse, JSONResponse
from fastapi.routing import APIRoute

from hyperscale._version import __version__
from hyperscale.scheduler.http import dead_letters as letters
from hyperscale.scheduler.http import emergency, jobs, operations, problems, schedules, workers
from hyperscale.scheduler.http.access import Access
from hyperscale.scheduler.http.context import Context, Viewer
from hyperscale.scheduler.http.middleware import Gate
from hyperscale.scheduler.service import Scheduler
from hyperscale.scheduler.telemetry.metrics import Metrics, QueueGauges

PAGE: Final = Path(__file__).parent / "page"
_FILES: Final = {
    "/": "index.html",
    **{f"/{name}": name for name in ("app.css", "app.js", "parts.js", "schedules.js")},
}


class _Documented(FastAPI):
    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        problems.describe(document)
        return document


def create_app(service: Scheduler, access: Access, metrics: Metrics | None = None) -> FastAPI:
    app = _Documented(
        title="Hyperscale scheduler",
        version=__version__,
        description="Jobs by the clock: schedules, a queue, workers.",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        openapi_url=None,  # ours asks for a token
        generate_unique_id_function=_operation_id,
        responses=problems.ANSWERS,
        redirect_slashes=False,
    )
    metrics = metrics or Metrics()
    app.state.context = Context(service, access, metrics, QueueGauges(metrics))
    for part in (jobs, schedules, workers, letters, emergency, operations):
        app.include_router(part.router)

    @app.get("/api/v1/openapi.json", include_in_schema=False)
    async def document(_: Viewer) -> JSONResponse:
        return JSONResponse(app.openapi())

    for path, name in _FILES.items():
        app.add_api_route(path, _sender(PAGE / name), include_in_schema=False)
    problems.install(app)
    app.add_middleware(Gate, access=access, node=service.node)
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name


def _sender(path: Path) -> Callable[[], Awaitable[FileResponse]]:
    async def send() -> FileResponse:
        return FileResponse(path, headers={"Cache-Control": "no-cache"})

    return send
