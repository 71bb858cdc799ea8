"""What a server sends on an HTTP/2 connection or in a WebSocket, for property tests and the fuzzer.

Nothing may be raised, pieces are read as the whole is, and nothing outgrows its limit.
"""

from __future__ import annotations

from collections.abc import Iterable

import hpack

from hyperscale.http2 import frames
from hyperscale.http2.hpack import Block, Field, Tables
from hyperscale.http2.session import Session
from hyperscale.http2.stream import Stream
from hyperscale.websocket_frames import BINARY, COMPRESSED, PING, TEXT, Deflate, FrameReader, frame

LIMIT_BYTES = 4096
TABLES = Tables(LIMIT_BYTES)  # shared, as in a run: nothing in it may become wrong
STREAMS = 3


class Heard(Stream):
    """All that a stream was told, in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.ends = True
        self.told: list[object] = []

    def on_headers(self, block: Block, now: float) -> None:
        assert sum(len(name) + len(value) for name, value in block.fields) <= LIMIT_BYTES
        self.told.append(block.fields)

    def on_data(self, data: bytes, now: float) -> None:
        if self.told and isinstance(self.told[-1], bytes):
            data = self.told.pop() + data
        if data:
            self.told.append(data)

    def on_end(self, now: float) -> None:
        self.told.append("end")

    def on_reset(self, code: int, now: float) -> None:
        self.told.append(("reset", code))

    def on_refused(self, now: float) -> None:
        self.told.append("refused")

    def on_fault(self, code: int, fault: str, now: float) -> None:
        self.told.append(("fault", code))


def feed_http2(data: bytes) -> None:
    whole = heard_in_http2(data, len(data) or 1)
    for step in (1, 13):
        assert heard_in_http2(data, step) == whole


def heard_in_http2(data: bytes, step: int) -> tuple[object, ...]:
    session = Session(TABLES)
    streams = [Heard() for _ in range(STREAMS)]
    for number, stream in enumerate(streams):
        session.open(stream, b"GET /%d" % number, _asked)
    for at in range(0, len(data), step):
        session.receive(data[at : at + step], 0.0)
        assert sum(map(len, session.out)) <= 100 * len(data) + 10 * LIMIT_BYTES
    return session.fault, session.is_closing, *(stream.told for stream in streams)


def _asked(key: bytes) -> Iterable[Field]:
    return [(b":method", b"GET"), (b":scheme", b"http"), (b":path", key), (b":authority", b"a")]


def answers() -> list[bytes]:
    """Of a server, to begin with."""
    encoder = hpack.Encoder()
    block = encoder.encode([(":status", "200"), ("x-a", "b" * 40), ("content-length", "5")])
    again = encoder.encode([(":status", "200"), ("x-a", "b" * 40), ("content-length", "5")])
    start = frames.settings({frames.INITIAL_WINDOW_SIZE: 1000})
    head = frames.frame(frames.HEADERS, frames.END_HEADERS, 1, block)
    body = frames.frame(frames.DATA, frames.END_STREAM, 1, b"hello")
    split = frames.frame(frames.HEADERS, 0, 3, again[:2])
    rest = frames.frame(frames.CONTINUATION, frames.END_HEADERS, 3, again[2:])
    last = frames.frame(frames.DATA, frames.END_STREAM, 3, b"there")
    reset = frames.frame(frames.RST_STREAM, 0, 5, (8).to_bytes(4, "big"))
    ping = frames.frame(frames.PING, 0, 0, bytes(8))
    bye = frames.frame(frames.GOAWAY, 0, 0, (3).to_bytes(4, "big") + bytes(4))
    return [
        start + head + body,
        start + head + split + rest + body + last,
        start + ping + reset + head + frames.window_update(0, 5000) + bye + body,
    ]


def feed_websocket(data: bytes) -> None:
    for compressed in (False, True):
        whole = heard_in_websocket(data, len(data) or 1, compressed)
        for step in (1, 7):
            assert heard_in_websocket(data, step, compressed) == whole


def heard_in_websocket(data: bytes, step: int, compressed: bool) -> tuple[object, ...]:
    reader = FrameReader(False, LIMIT_BYTES, Deflate() if compressed else None)
    events = [
        event for at in range(0, len(data), step) for event in reader.feed(data[at : at + step])
    ]
    assert all(len(payload) <= LIMIT_BYTES for _, payload in events)
    return events, str(reader.error)


def messages() -> list[bytes]:
    packed = Deflate().compress(b"hello " * 50)
    return [
        frame(TEXT, b"hello", False) + frame(PING, b"x", False) + frame(BINARY, bytes(200), False),
        frame(TEXT | COMPRESSED, packed, False) + frame(TEXT, "gr\u00fc\u00dfe".encode(), False),
        b"\x01\x03one" + frame(PING, b"", False) + b"\x80\x03two",
    ]
