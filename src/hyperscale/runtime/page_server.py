"""The HTTP/1.1 server for what a process says of itself: metrics, health, pages for debugging.

It answers once per connection and keeps no state of its readers. Slow readers cost little: a
connection that has not said what it wants gives way to a newer one, and few may be slow to take an
answer. Health is answered all the same: it fits into what the kernel takes at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import msgspec

from hyperscale.runtime.host import Address, Host, Listener, Stream, is_loopback
from hyperscale.runtime.newcomers import Newcomers, source_of

METRICS = "text/plain; version=0.0.4; charset=utf-8"
JSON = "application/json"
REQUEST_BYTES_MAX = 8 * 1024
# To say what is wanted, which comes with the connection, and to take the answer.
HEAD_TIMEOUT_S = 1.0
ANSWER_TIMEOUT_S = 5.0
# Those who have not said yet what they want: when there are more, the oldest has to go.
READERS_MAX = 256
READERS_OF_SOURCE_MAX = 64
# Those who are slow to take an answer.
ANSWERS_MAX = 16


class Health(msgspec.Struct, frozen=True):
    """200 when it is well, 503 when it is not; the reason may also be a remark."""

    ok: bool
    reason: str = ""


class PageServer:
    """Serves `/metrics` as text, and what `pages` and `checks` give by their path as JSON."""

    def __init__(
        self,
        host: Host,
        metrics: Callable[[], bytes],
        pages: Mapping[str, Callable[[], object]] | None = None,
        checks: Mapping[str, Callable[[], Health]] | None = None,
    ) -> None:
        self._host = host
        self._metrics = metrics
        self._pages = dict(pages or {})
        self._checks = dict(checks or {})
        self._listener: Listener | None = None
        self._asking: Newcomers[Stream] = Newcomers(host.clock.now, lambda stream: stream.close())
        self._answering = 0

    async def start(self, address: Address) -> Address:
        self._listener = await self._host.network.listen(address, self._serve)
        return self._listener.address

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()

    async def _serve(self, stream: Stream) -> None:
        try:
            stream.write(self._answer(await self._head(stream)))
            self._answering += 1
            try:
                async with asyncio.timeout(ANSWER_TIMEOUT_S):
                    await stream.drain()
            finally:
                self._answering -= 1
        except (OSError, TimeoutError):
            return  # a reader that does not read gets nothing

    async def _head(self, stream: Stream) -> str:
        """Empty when it was too long, cut short, or had to go for somebody newer: whoever asks in
        earnest is answered in the moment it comes."""
        source = source_of(stream.peer.host)
        self._asking.room_for(source, READERS_OF_SOURCE_MAX, 0.0)
        self._asking.room(READERS_MAX, 0.0)
        self._asking.add(stream, source)
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                return await _read_head(stream)
        finally:
            self._asking.discard(stream)

    def _answer(self, head: str) -> bytes:
        words = head.partition("\r\n")[0].split()
        if len(words) != 3 or words[0] not in ("GET", "HEAD"):
            return _response("405 Method Not Allowed", "text/plain", b"only GET\n")
        path, head_only = words[1].partition("?")[0], words[0] == "HEAD"
        if path in self._checks:
            health = self._checks[path]()
            status = "200 OK" if health.ok else "503 Service Unavailable"
            return _response(status, JSON, msgspec.json.encode(health), head_only)
        if self._answering >= ANSWERS_MAX:
            return _response("503 Service Unavailable", "text/plain", b"too many readers\n")
        if path == "/metrics":
            return _response("200 OK", METRICS, self._metrics(), head_only)
        page = self._pages.get(path)
        if page is None:
            known = "\n".join(["see /metrics", *sorted({**self._checks, **self._pages})]) + "\n"
            return _response("404 Not Found", "text/plain", known.encode())
        if not is_loopback(_host_named(head)):
            return _response("403 Forbidden", "text/plain", b"ask for it by a loopback address\n")
        return _response("200 OK", JSON, msgspec.json.encode(page()), head_only)


async def _read_head(stream: Stream) -> str:
    head = b""
    while b"\r\n\r\n" not in head:
        data = await stream.read(REQUEST_BYTES_MAX)
        head += data
        if not data or len(head) > REQUEST_BYTES_MAX:
            return ""
    return head.decode("latin-1")


def _host_named(head: str) -> str:
    """Whom the reader believes to be speaking to. A browser that was led here by another's page
    names that one's host: its name server says that it is here."""
    for line in head.split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "host":
            try:
                return urlsplit(f"//{value.strip()}").hostname or ""
            except ValueError:
                return ""
    return ""


def _response(status: str, content_type: str, body: bytes, head_only: bool = False) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() if head_only else head.encode() + body
