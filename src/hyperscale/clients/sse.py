"""Server-Sent Events: a stream that a virtual user subscribes to, and its events one by one."""

from __future__ import annotations

import asyncio
import codecs
import socket
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

from hyperscale.clients.contract import Call, ProtocolClient
from hyperscale.clients.http.head import Head
from hyperscale.clients.http.reader import Heads, ResponseReader
from hyperscale.clients.http.request import Request
from hyperscale.clients.http_stream import HTTPStream, HTTPStreamPool
from hyperscale.clients.net.failures import Failure
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.replies import SSEResponse
from hyperscale.workload.results import Outcome
from hyperscale.workload.scope import CURRENT, Label
from hyperscale.workload.texts import shown

EVENT_BYTES = 200  # what an event that nobody received takes beside its data, about


class Event(NamedTuple):
    kind: str
    data: str
    id: str
    size: int


class EventReader:
    """Events of a stream in pieces (WHATWG HTML, 9.2), without any I/O; `error` when one is longer
    than `most` bytes."""

    __slots__ = ("_data", "_decode", "_id", "_kind", "_line", "_most", "_size", "_skips", "error")

    def __init__(self, most: int) -> None:
        self._most = most
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._line = ""
        self._skips = False  # the line feed behind a carriage return that ended the last piece
        self._kind = self._id = ""
        self._data: list[str] = []
        self._size = 0
        self.error = ""

    def feed(self, piece: bytes) -> list[Event]:
        text = self._decode(piece)
        if self._skips and text:
            text = text.removeprefix("\n")
            self._skips = False
        if text.endswith("\r"):
            self._skips = True
        lines = (self._line + text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
        self._line = lines.pop()
        events = []
        for line in lines:
            event = self._read(line)
            if event is not None:
                events.append(event)
        if self._size + len(self._line) > self._most:
            self.error = f"sent an event of more than {self._most} bytes"
        return events

    def _read(self, line: str) -> Event | None:
        self._size += len(line) + 1
        if not line:
            kind, size, data = self._kind or "message", self._size, self._data
            self._kind, self._size, self._data = "", 0, []
            return Event(kind, "\n".join(data), self._id, size) if data else None
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._kind = value
        elif field == "id" and "\0" not in value:
            self._id = value
        return None


class SSEPool(HTTPStreamPool):
    kind = "sse"
    schemes: ClassVar = {"sse": "http", "sses": "https", "http": "http", "https": "https"}
    asks_for: ClassVar = {"Accept": "text/event-stream", "Cache-Control": "no-store"}

    def client(self) -> SSEClient:
        return SSEClient(self)


class SSEClient(ProtocolClient[SSEPool]):
    def __init__(self, pool: SSEPool) -> None:
        super().__init__(pool)
        self._streams: dict[str, Stream] = {}
        self._last_ids: dict[str, str] = {}
        self._opening = asyncio.Lock()

    async def subscribe(
        self,
        url: str | URL,
        *,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        timeout: Any = None,
        name: str | None = None,
    ) -> SSEResponse:
        """Open the stream anew, behind the last event seen; `next` opens it by itself."""
        pool = self._pool
        request = pool.request(url, "GET", params, headers, cookies, auth, name)
        asked = request.wire
        last_id = self._last_ids.get(str(url))
        if last_id:
            asked = b"%bLast-Event-ID: %b\r\n\r\n" % (asked[:-2], last_id.encode())
        self.unsubscribe(url)

        async def talk(call: Call, answer: SSEResponse) -> None:
            sock, call.connect = await pool.open(request)
            stream = Stream(pool, request, sock)
            try:
                call.begin()
                await stream.transmit(call, asked)
                head = await stream.answered()
                call.got(stream.head_bytes, stream.head_at, stream.head_at)
                answer.status, answer.headers = head.status, head.headers
                stream.accept(head)
            except BaseException:
                stream.shut()
                raise
            self.unsubscribe(url)
            self._streams[str(url)] = stream

        make = partial(_response, request.route.authority, asked)
        return await self.call("SUBSCRIBE", request.label.name, make, talk, timeout)

    async def next(
        self,
        url: str | URL,
        event: str | Callable[[SSEResponse], Any] | None = None,
        *,
        timeout: Any = None,
        name: str | None = None,
    ) -> SSEResponse:
        """The next event; with the name of one, or a function, the next such event."""
        if not (event is None or isinstance(event, str) or callable(event)):
            raise BadInput(f"event is {shown(event)} but must be a name or a function")
        key = str(url)
        stream = self._streams.get(key)
        if stream is None:
            async with self._opening:
                if key not in self._streams:
                    opened = await self.subscribe(url, timeout=timeout, name=name)
                    if not opened.ok:
                        return opened
                stream = self._streams[key]

        async def talk(call: Call, answer: SSEResponse) -> None:
            call.begin()
            while True:
                found = await stream.next(call)
                answer.event, answer.id, answer.content = found.kind, found.id, found.data.encode()
                if found.id:
                    self._last_ids[key] = found.id
                if event is None or (
                    event == found.kind if isinstance(event, str) else event(answer)
                ):
                    return

        make = partial(_response, stream.where, b"")
        answer = await self.call("NEXT", name or stream.name, make, talk, timeout)
        if not answer.ok and answer.outcome is not Outcome.TIMEOUT:
            self.unsubscribe(url)
        return answer

    def unsubscribe(self, url: str | URL) -> None:
        """Close the stream, if there is one."""
        stream = self._streams.pop(str(url), None)
        if stream is not None:
            stream.shut()

    def close(self) -> None:
        for url in list(self._streams):
            self.unsubscribe(url)


def _response(target: str, sent: bytes, label: Label) -> SSEResponse:
    made = SSEResponse(label, target)
    made.request_bytes = sent
    return made


class Stream(HTTPStream):
    __slots__ = ("_body", "_events", "_most", "_now", "_reader", "_scope", "_unread", "name")

    def __init__(self, pool: SSEPool, request: Request, sock: socket.socket) -> None:
        self.name = request.label.name
        self._scope = CURRENT.get()
        self._most = pool.options.max_response_bytes
        self._reader = EventReader(self._most)
        self._body: ResponseReader | None = None
        self._events: deque[tuple[Event, float]] = deque()
        self._unread = 0
        self._now = 0.0
        self.start(pool, request, sock)

    def accept(self, head: Head) -> None:
        """Raises Failure if that is no stream of events."""
        if head.status != 200:
            said = f"{head.status} {head.reason}".strip()
            raise Failure(Outcome.STATUS, f"{said} instead of a stream of events")
        kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "text/event-stream":
            raise Failure(
                Outcome.PROTOCOL, f"{self.where} answered with {kind or 'nothing'}, not with events"
            )

    def after_head(self, data: bytes, now: float) -> None:
        body = self._body
        if body is None:
            # The reader of HTTP knows where a body ends, chunks and all; it wants the head first.
            assert self.head is not None
            body = self._body = ResponseReader(Heads(self._most), sink=self._piece)
            body.feed(self.head.start)
        self._now = now
        body.feed(data)
        if body.error:
            self.over(Outcome.PROTOCOL, body.error)
        elif body.done:
            self.over(Outcome.RESET, "ended the stream")
        elif self._reader.error:
            self.over(Outcome.PROTOCOL, self._reader.error)
        elif self._unread > self._most:
            self.over(Outcome.PROTOCOL, f"sent {self._most} bytes and more unread")
        self.wake()

    def _piece(self, data: bytes) -> None:
        events = self._reader.feed(data)
        for event in events:
            self._events.append((event, self._now))
            self._unread += event.size + EVENT_BYTES
        if events:
            self._scope.measure("sse_events_received", "count", len(events))

    @property
    def has_answer(self) -> bool:
        return self.head is not None

    async def next(self, call: Call) -> Event:
        while not self._events:
            if self.end is not None:
                raise self.end
            await self.change()
        event, at = self._events.popleft()
        self._unread -= event.size + EVENT_BYTES
        call.got(event.size, at, at)
        return event
