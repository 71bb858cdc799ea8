"""What the page's addresses answer. A run that is under way and a folder of earlier ones are two
parts of one site; a command has either or both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final, Protocol

import msgspec

from hyperscale.errors import HyperscaleError
from hyperscale.metrics.results import Results, encode
from hyperscale.ui.html import render
from hyperscale.ui.html.comparison import render_comparison_report
from hyperscale.ui.web.door import LOGIN, Door
from hyperscale.ui.web.folder import Folder
from hyperscale.ui.web.http import (
    DOCUMENT_POLICY,
    HTML,
    JSON,
    TEXT,
    Request,
    Response,
    answer,
    refusal,
)
from hyperscale.ui.web.hub import READERS_MAX, Hub
from hyperscale.ui.web.steering import Command, decode

COMPARED_MAX: Final = 50
# What drawing raises for a results file that follows the schema and that no run has written.
_INCONSISTENT: Final = (
    ArithmeticError, AssertionError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
_SHARED: Final = "hyperscale.ui.html"
_ASSETS: Final = {
    "/": ("", "index.html", HTML),
    "/app.css": ("", "app.css", "text/css; charset=utf-8"),
    "/report.css": (_SHARED, "report.css", "text/css; charset=utf-8"),
    "/charts.js": (_SHARED, "charts.js", "text/javascript; charset=utf-8"),
    **{
        f"/{name}.js": ("", f"{name}.js", "text/javascript; charset=utf-8")
        for name in ("app", "parts", "draw", "live", "steps", "history", "spark", "start")
    },
}


class Run(Protocol):
    """The run that the page shows: of this process, or one that this process started."""

    @property
    def hub(self) -> Hub: ...

    async def steer(self, command: Command) -> str:
        """Raises BadInput."""
        ...

    def results(self) -> Results | None:
        """Once it is over and judged, where they are not in the folder."""
        ...


class Starter(Protocol):
    """Starts runs of the test files of a folder."""

    def tests(self) -> list[dict[str, Any]]: ...

    async def start(self, body: bytes) -> str:
        """Raises BadInput."""
        ...


class Site:
    def __init__(
        self,
        door: Door,
        run: Run,
        folder: Folder | None = None,
        starter: Starter | None = None,
        links: dict[str, str] | None = None,
    ) -> None:
        """`links` lead to pages of other servers, by their name: the scheduler's."""
        self._door = door
        self._run = run
        self._folder = folder
        self._starter = starter
        self._links = links or {}
        self._routes: dict[tuple[str, str], Callable[[Request], Any]] = {
            ("GET", "/api/site"): self._about,
            ("GET", "/api/events"): self._events,
            ("POST", "/api/steer"): self._steer,
            ("GET", "/api/runs"): self._runs,
            ("GET", "/api/report"): self._report,
            ("GET", "/api/results"): self._results,
            ("GET", "/api/compare"): self._compare,
            ("GET", "/api/tests"): self._tests,
            ("POST", "/api/start"): self._start,
        }

    async def __call__(self, request: Request) -> Response:
        given = await self._answer(request)
        if given.status < 400 or "text/html" not in request.headers.get("accept", ""):
            return given
        said = msgspec.json.decode(given.body)  # a person reads it, in a tab of its own
        words = "\n".join(filter(None, (said["message"], said["hint"])))
        return Response(words.encode(), TEXT, given.status)

    async def _answer(self, request: Request) -> Response:
        refused = self._door.refuses(request)
        if refused is not None:
            return refused
        method = "GET" if request.method == "HEAD" else request.method
        if request.path in _ASSETS and method == "GET":
            return _asset(*_ASSETS[request.path])
        if (method, request.path) == ("POST", LOGIN):
            return self._login(request)
        route = self._routes.get((method, request.path))
        if route is None:
            return refusal(404, f"there is nothing at {request.path}")
        try:
            found: Response = await route(request)
        except HyperscaleError as error:
            return refusal(400, error.message, error.hint)
        except _INCONSISTENT as error:
            return refusal(400, f"that cannot be shown: its numbers do not fit ({error!r})")
        return found

    def _login(self, request: Request) -> Response:
        try:
            token = msgspec.json.decode(request.body, type=str)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return refusal(400, "a token is a JSON string")
        return self._door.login(token)

    async def _about(self, _: Request) -> Response:
        return answer(
            {
                "folder": self._folder.name if self._folder is not None else None,
                "starts": self._starter is not None,
                "links": self._links,
            }
        )

    async def _events(self, _: Request) -> Response:
        if self._run.hub.readers >= READERS_MAX:
            return refusal(503, f"{READERS_MAX} pages show this run already", "close some")
        return Response(content_type="text/event-stream", events=self._run.hub.events())

    async def _steer(self, request: Request) -> Response:
        return answer({"said": await self._run.steer(decode(request.body))})

    async def _runs(self, _: Request) -> Response:
        if self._folder is None:
            return answer([])
        return answer(await asyncio.to_thread(self._folder.entries))

    async def _loaded(self, name: str) -> Results | None:
        if not name:
            return self._run.results()
        return None if self._folder is None else await asyncio.to_thread(self._folder.load, name)

    async def _report(self, request: Request) -> Response:
        name, results = await self._asked(request)
        if results is None:
            return _no_run(name)
        page = await asyncio.to_thread(render, results)
        return _document(page.encode(), HTML, request, f"{_stem(name, results)}.html")

    async def _results(self, request: Request) -> Response:
        name, results = await self._asked(request)
        if results is None:
            return _no_run(name)
        data = await asyncio.to_thread(encode, results)
        return _document(data, JSON, request, f"{_stem(name, results)}.json")

    async def _asked(self, request: Request) -> tuple[str, Results | None]:
        name = dict(request.query).get("run", "")
        return name, await self._loaded(name)

    async def _compare(self, request: Request) -> Response:
        names = [value for key, value in request.query if key == "run"][:COMPARED_MAX]
        runs: list[tuple[str, Results]] = []
        for name in names:
            results = await self._loaded(name)
            if results is None:
                return _no_run(name)
            runs.append((name, results))
        if len(runs) < 2:
            return refusal(400, "a comparison is of two runs or more")
        page = await asyncio.to_thread(render_comparison_report, runs)
        return _document(page.encode(), HTML, request, "comparison.html")

    async def _tests(self, _: Request) -> Response:
        if self._starter is None:
            return answer([])
        return answer(await asyncio.to_thread(self._starter.tests))

    async def _start(self, request: Request) -> Response:
        if self._starter is None:
            return refusal(404, "this page starts no runs", "hyperscale web FOLDER does")
        return answer({"said": await self._starter.start(request.body)})


def _no_run(name: str) -> Response:
    if name:
        return refusal(404, f"there is no run {name!r} in the folder")
    return refusal(404, "the run is not over yet", "its report is made at its end")


def _stem(name: str, results: Results) -> str:
    """As a file name: what else is in it came from a test."""
    words = name.rpartition("/")[2].partition(".")[0] or results.name or "run"
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in words)[:80]


def _document(body: bytes, content_type: str, request: Request, name: str) -> Response:
    headers = {"Content-Security-Policy": DOCUMENT_POLICY}
    if "download" in dict(request.query):
        headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return Response(body, content_type, headers=headers)


def _asset(package: str, name: str, content_type: str) -> Response:
    folder = files(package) if package else files(__package__) / "assets"
    return Response(folder.joinpath(name).read_bytes(), content_type)
