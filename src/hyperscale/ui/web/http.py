"""HTTP/1.1 for a page that one person looks at: a request a connection, small bodies, and answers
that go on while something happens.

What strangers may cost is bounded as at the other doors: bytes and seconds of a head and of a body,
connections in all, and those that have not said yet what they want give way to newer ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import httptools
import msgspec

from hyperscale.runtime.host import Address, Host, Listener, Stream
from hyperscale.runtime.newcomers import Newcomers, source_of

HEAD_BYTES_MAX: Final = 16 * 1024
BODY_BYTES_MAX: Final = 64 * 1024
HEAD_S: Final = 10.0
BODY_S: Final = 10.0
# For a report of some megabytes, and for one piece of an answer that goes on.
ANSWER_S: Final = 30.0
# A browser opens six; a dozen people may look at one run.
CONNECTIONS_MAX: Final = 96
ASKING_MAX: Final = 64
ASKING_OF_SOURCE_MAX: Final = 32

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"

_PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# A report carries a policy of its own inside. Its origin is not the page's, so nothing in it could
# steer a run.
DOCUMENT_POLICY: Final = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Content-Security-Policy": _PAGE_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    query: list[tuple[str, str]] = []
    headers: Mapping[str, str] = {}
    """By lower-case name; of one that came twice, both with a comma between."""
    body: bytes = b""


class Response(msgspec.Struct, frozen=True):
    body: bytes = b""
    content_type: str = JSON
    status: int = 200
    headers: Mapping[str, str] = {}
    events: AsyncGenerator[bytes, None] | None = None
    """Pieces that follow as they come, until the reader leaves."""


def answer(value: object) -> Response:
    return Response(msgspec.json.encode(value))


def refusal(status: int, message: str, hint: str = "") -> Response:
    said = {"message": message, "hint": hint}
    return Response(msgspec.json.encode(said), status=status)


Site = Callable[[Request], Awaitable[Response]]


class WebServer:
    def __init__(self, host: Host, site: Site) -> None:
        self._host = host
        self._site = site
        self._listener: Listener | None = None
        self._asking: Newcomers[Stream] = Newcomers(host.clock.now, lambda stream: stream.close())
        self._open = 0

    async def start(self, address: Address) -> Address:
        """Raises OSError."""
        self._listener = await self._host.network.listen(address, self._serve)
        return self._listener.address

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()

    async def _serve(self, stream: Stream) -> None:
        if self._open >= CONNECTIONS_MAX:
            return
        self._open += 1
        try:
            request = await self._request(stream)
            if isinstance(request, Response):
                await self._send(stream, request)
            elif request is not None:
                await self._send(stream, await self._site(request), request.method == "HEAD")
        except (OSError, TimeoutError):
            return  # who does not speak or read gets nothing
        finally:
            self._open -= 1

    async def _request(self, stream: Stream) -> Request | Response | None:
        reading = _Reading()
        source = source_of(stream.peer.host)
        self._asking.room_for(source, ASKING_OF_SOURCE_MAX, 0.0)
        self._asking.room(ASKING_MAX, 0.0)
        self._asking.add(stream, source)
        try:
            async with asyncio.timeout(HEAD_S):
                while not reading.head_complete and not reading.refused:
                    if not await _feed(stream, reading, HEAD_BYTES_MAX):
                        return None
        finally:
            self._asking.discard(stream)
        async with asyncio.timeout(BODY_S):
            while not reading.complete and not reading.refused:
                if not await _feed(stream, reading, BODY_BYTES_MAX):
                    return None
        return reading.refused or reading.request()

    async def _send(self, stream: Stream, response: Response, head_only: bool = False) -> None:
        headers = {**_HEADERS, "Content-Type": response.content_type, **response.headers}
        if response.events is None:
            headers["Content-Length"] = str(len(response.body))
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        phrase = HTTPStatus(response.status).phrase
        head = f"HTTP/1.1 {response.status} {phrase}\r\n{lines}\r\n".encode("latin-1")
        stream.write(head if head_only else head + response.body)
        await _drained(stream)
        if response.events is None or head_only:
            return
        async with aclosing(_until_gone(stream, response.events)) as pieces:
            async for piece in pieces:
                stream.write(piece)
                await _drained(stream)


async def _drained(stream: Stream) -> None:
    async with asyncio.timeout(ANSWER_S):
        await stream.drain()


async def _until_gone(
    stream: Stream, events: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Whoever leaves is noticed at once, not when the next piece is due."""
    leaving = asyncio.create_task(_gone(stream))
    try:
        while True:
            coming = asyncio.ensure_future(anext(events))
            try:
                await asyncio.wait({coming, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    return
                yield coming.result()
            except StopAsyncIteration:
                return
            finally:
                coming.cancel()
                await asyncio.wait({coming})
    finally:
        leaving.cancel()
        await asyncio.wait({leaving})
        await events.aclose()


async def _gone(stream: Stream) -> None:
    try:
        while await stream.read(1024):
            pass  # a reader of events has nothing more to say
    except OSError:
        return


class _Reading:
    """Callbacks of the parser, and what is refused while it reads."""

    def __init__(self) -> None:
        self.parser = httptools.HttpRequestParser(self)
        self.size = 0
        self.head_complete = False
        self.complete = False
        self.refused: Response | None = None
        self._url = b""
        self._headers: dict[str, str] = {}
        self._chunks: list[bytes] = []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        before = self._headers.get(key)
        self._headers[key] = text if before is None else f"{before},{text}"

    def on_headers_complete(self) -> None:
        self.head_complete = True
        self.size = 0
        length = self._headers.get("content-length", "0")
        if "transfer-encoding" in self._headers:
            self.refused = refusal(411, "a body has to tell its length")
        elif not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            self.refused = refusal(413, f"a body has at most {BODY_BYTES_MAX} bytes")

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)

    def on_message_complete(self) -> None:
        self.complete = True

    def request(self) -> Request | Response:
        try:
            parts = urlsplit(self._url.decode("ascii"))
            query = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=100)
        except ValueError:
            return refusal(400, "the address cannot be read")
        method = self.parser.get_method().decode("ascii")
        body = b"".join(self._chunks)
        return Request(method, unquote(parts.path), query, self._headers, body)


async def _feed(stream: Stream, reading: _Reading, most: int) -> bool:
    """False: nobody speaks any more, or says too much, or not HTTP."""
    data = await stream.read(most)
    reading.size += len(data)
    if not data:
        return False
    try:
        reading.parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        reading.refused = refusal(400, "there is nothing to upgrade to")
    except httptools.HttpParserError:
        reading.refused = refusal(400, "that was not HTTP/1.1")
    if reading.size > most and not reading.complete and reading.refused is None:
        reading.refused = refusal(431, f"a head has at most {most} bytes")
    return True
