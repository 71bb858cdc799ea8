"""HTTP/3 with the face of `hyperscale.http2.session`: streams that hear of fields, data and ends.

QUIC, its frames and QPACK are those of `aioquic`; this says what a stream hears of them and counts
the bytes of each. Data that QUIC may not send yet waits in there; `room` tells the streams when it
has gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pylsqpack
from aioquic.h3.connection import ErrorCode, H3Connection, H3Stream
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import QuicEvent, StopSendingReceived, StreamDataReceived, StreamReset
from aioquic.tls import Epoch

from hyperscale.http2 import frames
from hyperscale.http2.hpack import Block, Field, Table
from hyperscale.http2.stream import AFTER_LOCAL_END, AFTER_REMOTE_END, CLOSED, LOCAL_ENDED, Stream

# What a stream says in the words of HTTP/2.
_CODES = {
    frames.NO_ERROR: ErrorCode.H3_NO_ERROR,
    frames.CANCEL: ErrorCode.H3_REQUEST_CANCELLED,
    frames.PROTOCOL_ERROR: ErrorCode.H3_MESSAGE_ERROR,
    frames.ENHANCE_YOUR_CALM: ErrorCode.H3_EXCESSIVE_LOAD,
}
_BLOCKS_MAX = 4096
_NO_TABLE = Table((), 0, 0)


def error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"code {code}"


def is_early(quic: QuicConnection) -> bool:
    """Whether requests may go with its handshake."""
    return quic._cryptos[Epoch.ZERO_RTT].send.is_valid()


class _Frames(H3Connection):
    def _init_connection(self) -> None:
        # Without a dynamic table a peer cannot send fields that unpack to a thousand times their
        # size, and no answer waits for the packet of another.
        self._max_table_capacity = self._blocked_streams = 0
        self._decoder = pylsqpack.Decoder(0, 0)
        super()._init_connection()

    def _check_content_length(self, stream: H3Stream) -> None:
        """Whoever reads an answer knows whether it has a body: that to HEAD has none."""


class Blocks:
    """What several sessions have met: equal fields are one block."""

    def __init__(self, list_bytes_max: int) -> None:
        self.list_bytes_max = list_bytes_max
        self._known: dict[tuple[Field, ...], Block] = {}
        self._asked: dict[bytes, list[Field]] = {}

    def block(self, fields: Sequence[Field]) -> Block:
        key = tuple(fields)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _BLOCKS_MAX:
                self._known.clear()
            known = self._known[key] = Block(key, _NO_TABLE)
        return known

    def asked(self, key: bytes, fields: Callable[[bytes], Iterable[Field]]) -> list[Field]:
        known = self._asked.get(key)
        if known is None:
            if len(self._asked) >= _BLOCKS_MAX:
                self._asked.clear()
            known = self._asked[key] = list(fields(key))
        return known


class Session:
    """`accept` makes the streams that the peer opens, of a server; a client has none."""

    __slots__ = (
        "_accept",
        "_blocks",
        "_http",
        "_quic",
        "_unsent",
        "is_closing",
        "is_greeted",
        "out",
        "streams",
    )

    def __init__(
        self, quic: QuicConnection, blocks: Blocks, accept: Callable[[], Stream] | None = None
    ) -> None:
        self._quic = quic
        self._blocks = blocks
        self._accept = accept
        self._http = _Frames(quic)
        self._unsent: dict[int, Stream] = {}
        self.streams: dict[int, Stream] = {}
        self.is_closing = False
        self.is_greeted = True  # QUIC is not there before both know what they speak
        self.out: list[bytes] = []  # QUIC writes by itself

    @property
    def streams_max(self) -> int:
        """How many may be open, with those that are."""
        quic = self._quic
        return (
            quic._remote_max_streams_bidi - quic._local_next_stream_id_bidi // 4 + len(self.streams)
        )

    # -- sending -----------------------------------------------------------------------------------

    def open(self, stream: Stream, key: bytes, fields: Callable[[bytes], Iterable[Field]]) -> None:
        stream.id = self._quic.get_next_available_stream_id()
        self.streams[stream.id] = stream
        body = stream.outbox
        self.send_fields(stream, self._blocks.asked(key, fields), stream.ends and body is None)
        if body is not None:
            self.send(stream, bytes(body), stream.ends)

    def send_fields(self, stream: Stream, fields: Iterable[Field], end: bool = False) -> None:
        if not isinstance(fields, list):
            fields = list(fields)
        self._http.send_headers(stream.id, fields, end)
        stream.sent_bytes = self._quic._streams[stream.id].sender._buffer_stop
        if end:
            self._sent_end(stream)

    def send(self, stream: Stream, data: bytes, end: bool) -> None:
        if stream.state in (LOCAL_ENDED, CLOSED):
            return
        self._http.send_data(stream.id, data, end)
        stream.sent_bytes = self._quic._streams[stream.id].sender._buffer_stop
        stream.ends = end
        stream.outbox = memoryview(data)
        self._unsent[stream.id] = stream
        if end:
            self._sent_end(stream)

    def room(self, now: float) -> None:
        """Datagrams were made: tell the streams of which nothing is left."""
        for number, stream in list(self._unsent.items()):
            known = self._quic._streams.get(number)
            if known is None or known.sender.buffer_is_empty:
                del self._unsent[number]
                stream.outbox = None
                stream.on_room(now)

    def _sent_end(self, stream: Stream) -> None:
        stream.state = AFTER_LOCAL_END[stream.state]
        if stream.state == CLOSED:
            self._forget(stream)

    def reset(self, stream: Stream, code: int) -> None:
        """Neither side need go on with it."""
        if not stream.id and stream.id not in self.streams:
            return
        known, held = self._quic._streams.get(stream.id), self._http._stream.get(stream.id)
        if held is not None:
            held.sending_ended = True  # or it would be kept for ever
        if known is not None and stream.state != CLOSED:
            said = _CODES.get(code, ErrorCode.H3_REQUEST_CANCELLED)
            self._quic.stop_stream(stream.id, said)
            self._quic.reset_stream(stream.id, said)
        stream.state = CLOSED
        self._forget(stream)

    def _forget(self, stream: Stream) -> None:
        self.streams.pop(stream.id, None)
        if self._unsent.pop(stream.id, None) is not None:
            stream.outbox = None

    def close(self) -> None:
        self._quic.close(ErrorCode.H3_NO_ERROR)

    # -- receiving ---------------------------------------------------------------------------------

    def handle(self, event: QuicEvent, now: float) -> None:
        """What QUIC has to say about streams."""
        if isinstance(event, StreamDataReceived):
            number = event.stream_id
            stream = self.streams.get(number)
            if stream is None and self._accept is not None and not number & 3:
                stream = self.streams[number] = self._accept()
                stream.id = number
            if stream is not None:
                stream.received += len(event.data)
            for told in self._http.handle_event(event):
                self._tell(told, now)
            if stream is not None and stream.state != CLOSED:
                self._bound(stream, now)
        elif isinstance(event, StreamReset):
            self._http.handle_event(event)
            stream = self.streams.get(event.stream_id)
            if stream is not None:
                stream.state = CLOSED
                self._forget(stream)
                if event.error_code == ErrorCode.H3_REQUEST_REJECTED:
                    stream.on_refused(now)
                else:
                    stream.on_reset(event.error_code, now)
        elif isinstance(event, StopSendingReceived):
            self._http.handle_event(event)
            stream = self.streams.get(event.stream_id)
            if stream is not None:  # its answer may still come
                self._unsent.pop(event.stream_id, None)
                stream.outbox = None
                self._sent_end(stream)
                stream.on_room(now)

    def _tell(self, told: Any, now: float) -> None:
        stream = self.streams.get(told.stream_id)
        if stream is None or getattr(told, "push_id", None) is not None:
            return
        if isinstance(told, HeadersReceived):
            fields = told.headers
            if sum(len(name) + len(value) for name, value in fields) > self._blocks.list_bytes_max:
                self._too_many_fields(stream, now)
                return
            stream.on_headers(self._blocks.block(fields), now)
        elif isinstance(told, DataReceived) and told.data:
            stream.on_data(told.data, now)
        if told.stream_ended and stream.state != CLOSED:
            stream.state = AFTER_REMOTE_END[stream.state]
            if stream.state == CLOSED:
                self._forget(stream)
            stream.on_end(now)

    def _bound(self, stream: Stream, now: float) -> None:
        """The fields of a frame are read when all of them are there."""
        held = self._http._stream.get(stream.id)
        if held is not None and len(held.buffer) > self._blocks.list_bytes_max:
            self._too_many_fields(stream, now)

    def _too_many_fields(self, stream: Stream, now: float) -> None:
        self.reset(stream, frames.ENHANCE_YOUR_CALM)
        limit = self._blocks.list_bytes_max
        fault = f"sent headers of more than {limit} bytes (max_header_bytes)"
        stream.on_fault(frames.ENHANCE_YOUR_CALM, fault, now)
