"""The page's server on a real socket: what strangers may cost, what a slow reader misses, and that
nothing of a browser gets past the door."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec

from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost
from hyperscale.ui.web.beside_run import RunPage
from hyperscale.ui.web.door import Door
from hyperscale.ui.web.http import BODY_BYTES_MAX, CONNECTIONS_MAX, HEAD_BYTES_MAX, WebServer
from hyperscale.ui.web.hub import BEHIND_MAX, READERS_MAX
from hyperscale.ui.web.patches import Patch
from hyperscale.ui.web.site import Site
from tests.unit.ui.fake_run import FakeRun

Talk = Callable[[bytes], Awaitable[bytes]]


class Served:
    def __init__(self, page: RunPage, address: Address) -> None:
        self.page = page
        self.address = address

    async def ask(self, request: bytes) -> bytes:
        reader, writer = await self.open(request)
        answer = await reader.read()
        writer.close()
        return answer

    async def open(self, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(request)
        return reader, writer


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    page = RunPage("127.0.0.1:0")
    async with RealHost("test", os.devnull) as host, asyncio.timeout(60):
        server = WebServer(host, Site(Door("127.0.0.1"), page))
        yield Served(page, await server.start(Address("127.0.0.1", 0)))


def get(path: str, host: str = "localhost") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def post(path: str, body: bytes, *lines: str) -> bytes:
    given = "".join(f"{line}\r\n" for line in lines)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{given}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def test_the_page_and_all_it_asks_for_is_served_under_a_policy() -> None:
    async def scenario() -> None:
        async with served() as web:
            page = await web.ask(get("/"))
            assert status(page) == 200
            assert b"default-src 'none'; script-src 'self'" in page
            assert b"frame-ancestors 'none'" in page
            for name in ("app.css", "report.css", "charts.js", "app.js", "parts.js", "draw.js"):
                assert status(await web.ask(get(f"/{name}"))) == 200
            assert status(await web.ask(get("/api/report"))) == 404
            browsed = get("/api/report").replace(b"\r\n\r\n", b"\r\nAccept: text/html\r\n\r\n")
            assert (await web.ask(browsed)).endswith(
                b"the run is not over yet\nits report is made at its end"
            )
            assert status(await web.ask(get("/../pyproject.toml"))) == 404
            assert status(await web.ask(get("/api/compare?run=a&run=b"))) == 404
            head = await web.ask(get("/").replace(b"GET", b"HEAD"))
            assert head.endswith(b"\r\n\r\n")

    asyncio.run(scenario())


def test_a_page_of_somebody_else_steers_nothing() -> None:
    async def scenario() -> None:
        async with served() as web:
            run = FakeRun()
            web.page._source = run
            stop = b'{"action": "stop"}'
            foreign = "Origin: http://evil.example"
            assert status(await web.ask(post("/api/steer", stop, foreign))) == 403
            rebound = post("/api/steer", stop).replace(b"localhost", b"evil.example")
            assert status(await web.ask(rebound)) == 403
            form = post("/api/steer", stop).replace(b"application/json", b"text/plain")
            assert status(await web.ask(form)) == 415
            twice = post("/api/steer", stop, "Host: evil.example")
            assert status(await web.ask(twice)) == 403
            assert run.calls == []
            assert status(await web.ask(post("/api/steer", stop))) == 200
            assert run.calls == ["stop"]
            assert status(await web.ask(post("/api/steer", b'{"action": "explode"}'))) == 400

    asyncio.run(scenario())


def test_what_is_too_much_is_refused() -> None:
    async def scenario() -> None:
        async with served() as web:
            long = b"GET / HTTP/1.1\r\nX: " + b"a" * (2 * HEAD_BYTES_MAX)
            assert status(await web.ask(long)) == 431
            large = post("/api/steer", b"x" * (BODY_BYTES_MAX + 1))
            assert status(await web.ask(large)) == 413
            chunked = b"POST /api/steer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            assert status(await web.ask(chunked)) == 411
            assert status(await web.ask(b"\x16\x03\x01 this is TLS\r\n\r\n")) == 400
            assert status(await web.ask(get("/").replace(b"GET", b"PATCH"))) == 405

    asyncio.run(scenario())


def test_silent_connections_keep_nobody_out() -> None:
    async def scenario() -> None:
        async with served() as web:
            silent = [await web.open(b"GET /") for _ in range(CONNECTIONS_MAX + 10)]
            assert status(await web.ask(get("/"))) == 200
            for _, writer in silent:
                writer.close()

    asyncio.run(scenario())


def test_a_slow_reader_is_told_everything_again_and_a_quick_one_what_changes() -> None:
    async def scenario() -> None:
        async with served() as web:
            hub = web.page.hub
            hub.publish(Patch(fresh=True, set={"run": msgspec.Raw(b"0")}))
            reader, writer = await web.open(get("/api/events"))
            assert b"text/event-stream" in await reader.readuntil(b"\r\n\r\n")
            assert (await told(reader))["fresh"]
            hub.publish(Patch(set={"run": msgspec.Raw(b"1")}))
            assert await told(reader) == {"set": {"run": 1}}
            for number in range(BEHIND_MAX + 2):  # without a turn of the loop: it cannot follow
                hub.publish(
                    Patch(set={"run": msgspec.Raw(b"%d" % number), "more": msgspec.Raw(b"2")})
                )
            whole = await told(reader)
            assert whole == {"fresh": True, "set": {"run": BEHIND_MAX + 1, "more": 2}}
            writer.close()
            while hub.readers:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)

    asyncio.run(scenario())


def test_readers_are_counted() -> None:
    async def scenario() -> None:
        async with served() as web:
            several = [await web.open(get("/api/events")) for _ in range(READERS_MAX)]
            for reader, _ in several:
                await reader.readuntil(b"retry: 1000\n\n")
            assert status(await web.ask(get("/api/events"))) == 503
            for _, writer in several:
                writer.close()

    asyncio.run(scenario())


async def told(reader: asyncio.StreamReader) -> dict[str, object]:
    while not (line := await reader.readuntil(b"\n\n")).startswith(b"data: "):
        pass
    found: dict[str, object] = msgspec.json.decode(line.removeprefix(b"data: "))
    return found
