"""A call of gRPC as a stream of HTTP/2: messages with five bytes before each, a status behind."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from hyperscale.clients.grpc.methods import Method
from hyperscale.clients.http.route import Route
from hyperscale.clients.http2.call import StreamCall
from hyperscale.clients.net import failures
from hyperscale.clients.net.failures import Failure
from hyperscale.http2 import frames
from hyperscale.http2.hpack import Block, Field
from hyperscale.http2.stream import CLOSED, LOCAL_ENDED
from hyperscale.workload.grpc_response import GRPCResponse, status_name
from hyperscale.workload.responses import ResponseHeaders
from hyperscale.workload.results import Outcome
from hyperscale.workload.scope import Label

if TYPE_CHECKING:
    from hyperscale.clients.http2.connection import Connection

PREFIX_BYTES = 5
_GZIP = 16 + zlib.MAX_WBITS
_COMPRESS_LEVEL = 6


class UsualReply(NamedTuple):
    """The shape of an answer of three frames: how they, and the message, begin."""

    size: int
    splits: tuple[int, int]  # where the second and the third begin
    starts: tuple[bytes, bytes, bytes]
    prefix: bytes

    @classmethod
    def of(cls, data: bytes) -> UsualReply | None:
        """None: the data is something else."""
        ends: list[int] = []
        kinds: list[tuple[int, int]] = []
        at = 0
        while at + frames.HEAD_BYTES <= len(data) and len(ends) < 4:
            size, flags, _ = frames.read_head(data, at)
            at += frames.HEAD_BYTES + (size >> 8)
            kinds.append((size & 0xFF, flags))
            ends.append(at)
        if kinds != _USUAL or at != len(data):
            return None
        first, second, _ = ends
        prefix = data[first + 9 : first + 14]
        if int.from_bytes(prefix, "big") != second - first - 14:
            return None  # compressed, or in pieces
        starts = data[:5], data[first : first + 5], data[second : second + 5]
        return cls(len(data), (first, second), starts, prefix)


_USUAL = [
    (frames.HEADERS, frames.END_HEADERS),
    (frames.DATA, 0),
    (frames.HEADERS, frames.END_HEADERS | frames.END_STREAM),
]


class Request:
    """What calls with the same arguments have in common. `head` stands for the fields."""

    __slots__ = (
        "answer",
        "compress",
        "head",
        "label",
        "metadata",
        "method",
        "route",
        "target",
        "timeout",
    )

    def __init__(
        self,
        method: Method,
        route: Route,
        head: bytes,
        label: Label,
        metadata: tuple[tuple[str, str], ...],
        timeout: float,
        compress: bool,
    ) -> None:
        self.answer: UsualReply | None = None
        self.method = method
        self.route = route
        self.head = head
        self.label = label
        self.metadata = metadata
        self.timeout = timeout
        self.compress = compress
        self.target = f"{route.authority}{method.path}"

    def framed(self, message: bytes) -> bytes:
        if self.compress:
            message = gzip.compress(message, _COMPRESS_LEVEL, mtime=0)
            return b"\1" + len(message).to_bytes(4, "big") + message
        return len(message).to_bytes(PREFIX_BYTES, "big") + message


def fields_of(head: bytes) -> Iterator[Field]:
    for line in head.split(b"\r\n"):
        if line:
            name, _, value = line.partition(b": ")
            yield name.lower(), value


class Meaning:
    """A block of fields as gRPC reads it; equal blocks share one. `code` is None without one."""

    __slots__ = ("code", "encoding", "fields", "problem", "text")

    def __init__(self, block: Block) -> None:
        values = dict(block.fields)
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in block.fields]
        self.fields = ResponseHeaders([pair for pair in pairs if not pair[0].startswith(":")])
        self.encoding = values.get(b"grpc-encoding", b"identity")
        code = values.get(b"grpc-status")
        self.code = int(code) if code is not None and code.isdigit() and len(code) < 5 else None
        self.text = unquote(values.get(b"grpc-message", b"").decode("latin-1"))
        self.problem = ""
        status = values.get(b":status")
        kind = values.get(b"content-type", b"")
        if status is not None and self.code is None:
            if status != b"200":
                self.problem = f"answered with HTTP {status.decode('latin-1')}, not in gRPC"
            elif not kind.startswith(b"application/grpc"):
                self.problem = f"answered with {kind.decode('latin-1')!r}, not in gRPC"


class GRPCCall(StreamCall):
    """`messages` are those that came and nobody has taken; `response` is there when it is over."""

    __slots__ = (
        "_encoding",
        "_is_headed",
        "_rest",
        "_room",
        "_size",
        "_waiter",
        "answer",
        "messages",
        "payload",
        "request",
    )

    def __init__(self, connection: Connection, request: Request, payload: bytes, end: bool) -> None:
        super().__init__(connection)
        self.request = request
        self.timeout = request.timeout
        self.payload = payload
        self.ends = end
        self.messages: list[bytes] = []
        self.answer = GRPCResponse(request.label, request.target, request.method)
        self._encoding = b"identity"
        self._is_headed = False
        self._rest = b""
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None

    def begin(self, now: float) -> None:
        self.started = self.moved = now
        if self.payload:
            self.outbox = memoryview(self.payload)
        self.connection.http.open(self, self.request.head, fields_of)

    async def change(self) -> None:
        """Until a message has come, or the call is over."""
        self._waiter = self.connection.loop.create_future()
        await self._waiter

    def ask(self) -> asyncio.Future[None]:
        """Have it written with others; done when the call is over or a message came."""
        waiter: asyncio.Future[None] = self.connection.loop.create_future()
        self._waiter = waiter
        self.connection.submit(self)
        return waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- sending more than one message -------------------------------------------------------------

    async def send(self, message: bytes, end: bool, now: float) -> None:
        """Returns when the server has taken it, as far as its windows tell."""
        connection = self.connection
        if self.is_over:
            return
        if not self.started:  # it goes with the beginning of the call
            self.payload += message
            self.ends = end
            return
        connection.http.send(self, message, end)
        connection.flush(now)
        while not self.is_over and (self.outbox is not None or connection.unsent is not None):
            self._room = connection.loop.create_future()
            await self._room

    def on_room(self, now: float) -> None:
        super().on_room(now)
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    # -- receiving ---------------------------------------------------------------------------------

    def recognise(self, data: bytes, now: float) -> bool:
        """As an answer of HTTP/2 is: headers, one message, trailers, all in one piece."""
        usual = self.request.answer
        if usual is None or len(data) != usual.size:
            return False
        first, second = usual.splits
        if (
            self.state != LOCAL_ENDED
            or self._is_headed
            or data[:5] != usual.starts[0]
            or data[first : first + 5] != usual.starts[1]
            or data[second : second + 5] != usual.starts[2]
            or not data[5:9] == data[first + 5 : first + 9] == data[second + 5 : second + 9]
            or data[first + 9 : first + 14] != usual.prefix
        ):
            return False
        connection = self.connection
        head = connection.http.known_block(data[9:first])
        tail = None if head is None else head.after.decoded.get(data[second + 9 :])
        if head is None or tail is None or head.meaning is None or tail.meaning is None:
            return False
        began: Meaning = head.meaning
        ended: Meaning = tail.meaning
        if began.problem or began.code is not None or ended.code != 0:
            return False
        connection.http.answered(self, tail, second - first - 9)
        self.received += usual.size
        self.messages.append(data[first + 14 : second])
        answer = self.answer
        answer.metadata, answer.trailers = began.fields, ended.fields
        self.first_byte = now
        self._settle(now)
        return True

    def learn(self, data: bytes) -> None:
        method = self.request.method
        if self.is_over and self.answer.ok and not method.streams_out and len(self.messages) == 1:
            self.request.answer = UsualReply.of(data)

    def on_headers(self, block: Block, now: float) -> None:
        meaning: Meaning = block.meaning
        if meaning is None:
            meaning = block.meaning = Meaning(block)
        self.moved = now
        if not self.first_byte:
            self.first_byte = now
        if meaning.problem:
            self.give_up(frames.CANCEL, Outcome.PROTOCOL, meaning.problem, now)
            return
        answer = self.answer
        if not self._is_headed and meaning.code is None:
            self._is_headed = True
            self._encoding = meaning.encoding
            answer.metadata = meaning.fields
            return
        answer.trailers = meaning.fields
        if meaning.code is None:
            self.give_up(frames.CANCEL, Outcome.PROTOCOL, "ended a call without a status", now)
            return
        answer.status = meaning.code
        if meaning.code:
            name = status_name(meaning.code)
            answer.outcome = Outcome.STATUS
            answer.error = f"{name}: {meaning.text}" if meaning.text else name

    def on_data(self, data: bytes, now: float) -> None:
        self.moved = now
        if not self._is_headed:
            text = "sent a message before its headers"
            self.give_up(frames.PROTOCOL_ERROR, Outcome.PROTOCOL, text, now)
            return
        if self._rest:
            data = self._rest + data
            self._rest = b""
        limit = self.connection.pool.heads.max_body_bytes
        at, end = 0, len(data)
        while end - at >= PREFIX_BYTES:
            size = int.from_bytes(data[at + 1 : at + PREFIX_BYTES], "big")
            start = at + PREFIX_BYTES
            if size + self._size > limit:
                text = f"sent more than {limit} bytes of messages (max_response_bytes)"
                self.give_up(frames.CANCEL, Outcome.PROTOCOL, text, now)
                return
            if start + size > end:
                break
            message = data[start : start + size]
            if data[at]:
                problem, message = self._unpacked(message, limit - self._size)
                if problem:
                    self.give_up(frames.CANCEL, Outcome.PROTOCOL, problem, now)
                    return
            self._size += len(message)
            self.messages.append(message)
            at = start + size
        self._rest = data[at:]
        if self.messages and (self.request.method.streams_out or self.request.method.streams_in):
            self._wake()

    def _unpacked(self, message: bytes, room: int) -> tuple[str, bytes]:
        """What was wrong, and the message."""
        if self._encoding != b"gzip":
            name = self._encoding.decode("latin-1")[:40]
            return f"sent a message that is compressed as {name!r}", b""
        unzip = zlib.decompressobj(_GZIP)
        try:
            data = unzip.decompress(message, room + 1)
        except zlib.error:
            return "sent a message that is not gzip", b""
        if len(data) > room:
            return f"sent more than {room} bytes of messages (max_response_bytes)", b""
        return ("" if unzip.eof else "sent a message whose gzip is cut short"), data

    def take(self) -> bytes | None:
        """The next message that came."""
        if not self.messages:
            return None
        message = self.messages.pop(0)
        self._size -= len(message)
        return message

    def on_end(self, now: float) -> None:
        answer = self.answer
        if self._rest and answer.outcome is Outcome.OK:
            self.give_up(frames.CANCEL, Outcome.PROTOCOL, "ended in half a message", now)
            return
        if not answer.trailers:
            self.give_up(frames.CANCEL, Outcome.PROTOCOL, "ended a call without a status", now)
            return
        method = self.request.method
        if answer.outcome is Outcome.OK and not method.streams_out and len(self.messages) != 1:
            count = len(self.messages)
            text = f"sent {count} messages as the answer to a call that has one"
            self.give_up(frames.CANCEL, Outcome.PROTOCOL, text, now)
            return
        if self.state != CLOSED:
            self.connection.http.reset(self, frames.CANCEL)
            self.connection.flush_soon()
        self._settle(now)

    def fail(self, outcome: Outcome, error: str, now: float) -> None:
        answer = self.answer
        answer.outcome, answer.error = outcome, error
        self._settle(now)

    def abort_call(self, failure: Failure | None = None) -> None:
        """End it if it has not ended: nobody wants the rest."""
        if not self.is_over:
            cut = failure or failures.given_up()
            self.connection.http.reset(self, frames.CANCEL)
            self.connection.flush_soon()
            self.fail(cut.outcome, cut.error, perf_counter())

    def _settle(self, now: float) -> None:
        """Times and sizes into the response, and whoever waits goes on."""
        if self.is_over:
            return
        answer = self.answer
        answer.started = self.started or now
        answer.ended = max(now, answer.started)
        answer.first_byte = self.first_byte or answer.ended
        answer.sent = min(self.sent or answer.first_byte, answer.first_byte)
        answer.bytes_in, answer.bytes_out = self.received, self.written
        self.finish()
        self._wake()
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
