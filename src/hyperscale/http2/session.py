"""One side of a connection, without any I/O: bytes in, calls of the streams and bytes out.

`receive` never raises for what the peer sends: `fault` says what was wrong, and completes "the
peer ...". What is to be written is in `out`. A peer cannot make it grow: frames that bring nothing
forward are counted, header blocks and frames have a limit, and so has what is to be answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hyperscale.http2 import frames
from hyperscale.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEAD_BYTES,
    HEADERS,
    PADDED,
    PRIORITIZED,
    WINDOW_BYTES,
    WINDOW_BYTES_MAX,
    head_of,
    read_head,
)
from hyperscale.http2.hpack import TABLE_BYTES, BadBlock, Field, Tables, size_update
from hyperscale.http2.stream import (
    AFTER_LOCAL_END,
    AFTER_REMOTE_END,
    CLOSED,
    REMOTE_ENDED,
    Stream,
)

# What a peer may send ahead of us. Answers are read as they come, so this bounds no memory; it is
# large so that a distant server need not wait for leave to go on.
STREAM_WINDOW = 4 * 1024 * 1024
CONNECTION_WINDOW = 16 * 1024 * 1024
# That a peer allows until it has said how many. Most clients assume a hundred, and a server that
# allows fewer may end the connection; the wait is for one round trip, and for other calls only.
STREAMS_ASSUMED = 1
# Frames in a row that end nothing and bring no data: pings, settings, empty ones, resets of streams
# that nobody waits for. A decent server sends a handful.
IDLE_FRAMES_MAX = 10_000
# An empty one costs nothing to send, so the bytes of a block are not the only limit.
CONTINUATIONS_MAX = 64


class Fault(Exception):
    """Ends the connection."""

    def __init__(self, code: int, fault: str) -> None:
        super().__init__(fault)
        self.code = code
        self.fault = fault


class Session:
    """`accept` makes the streams that the peer opens, of a server; a client has none.

    `streams_max` is how many may be open at once, by the peer's word. `is_closing`: no more streams
    may be opened. `is_greeted`: the peer has sent its settings, so it speaks HTTP/2.
    """

    __slots__ = (
        "_accept",
        "_decoder",
        "_encoder",
        "_frame_bytes_max",
        "_idle_frames",
        "_initial_window",
        "_last_accepted",
        "_partial",
        "_resize",
        "_rest",
        "_send_window",
        "_tables",
        "_taken",
        "_waiting",
        "fault",
        "is_closing",
        "is_greeted",
        "next_id",
        "out",
        "streams",
        "streams_max",
    )

    def __init__(self, tables: Tables, accept: Callable[[], Stream] | None = None) -> None:
        self._tables = tables
        self._accept = accept
        self._decoder = self._encoder = tables.table()
        self._resize = b""  # to be said before the next block
        self._rest = b""  # the beginning of a frame
        self._partial: _Partial | None = None
        self._frame_bytes_max = frames.FRAME_BYTES
        self._initial_window = self._send_window = WINDOW_BYTES
        self._taken = 0  # bytes of DATA that the peer was not allowed again yet
        self._idle_frames = 0
        self._last_accepted = 0
        self._waiting: dict[int, Stream] = {}  # for the peer to allow more
        self.next_id = 1
        self.streams: dict[int, Stream] = {}
        self.streams_max = STREAMS_ASSUMED
        self.is_greeted = self.is_closing = False
        self.fault = ""
        wanted = {
            frames.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            frames.MAX_HEADER_LIST_SIZE: tables.list_bytes_max,
        }
        if accept is None:
            wanted = {frames.ENABLE_PUSH: 0, **wanted}
        preface = frames.PREFACE if accept is None else b""
        more = frames.window_update(0, CONNECTION_WINDOW - WINDOW_BYTES)
        self.out: list[bytes] = [preface + frames.settings(wanted) + more]

    @property
    def has_room(self) -> bool:
        """For one more stream."""
        return len(self.streams) < self.streams_max and not self.is_closing

    # -- sending -----------------------------------------------------------------------------------

    def open(self, stream: Stream, key: bytes, fields: Callable[[bytes], Iterable[Field]]) -> None:
        """Begin a stream with the fields that the key stands for; the body follows by `send`,
        unless the stream ends here."""
        stream.id = number = self.next_id
        self.next_id = number + 2
        if self.next_id > frames.STREAM_MAX:
            self.is_closing = True
        stream.send_window = self._initial_window
        self.streams[number] = stream
        known = self._encoder.encoded.get(key)
        if known is None:
            known = self._tables.encode(self._encoder, fields(key), key)
        block, self._encoder = known
        self._write_block(stream, block, stream.ends and stream.outbox is None)
        if stream.outbox is not None:
            self._pump(stream)

    def send_fields(self, stream: Stream, fields: Iterable[Field], end: bool = False) -> None:
        """A head of a server, or trailers."""
        block, self._encoder = self._tables.encode(self._encoder, fields)
        self._write_block(stream, block, end)

    def _write_block(self, stream: Stream, block: bytes, end: bool) -> None:
        if self._resize:
            block, self._resize = self._resize + block, b""
        flags = END_STREAM if end else 0
        size = len(block)
        if size <= self._frame_bytes_max:
            self.out.append(head_of(size << 8 | HEADERS, flags | END_HEADERS, stream.id) + block)
            stream.sent_bytes += size + HEAD_BYTES
        else:
            most = self._frame_bytes_max
            for at in range(0, size, most):
                piece = block[at : at + most]
                last = END_HEADERS if at + most >= size else 0
                kind = CONTINUATION if at else HEADERS
                self.out.append(frames.frame(kind, last | (0 if at else flags), stream.id, piece))
                stream.sent_bytes += len(piece) + HEAD_BYTES
        if end:
            self._sent_end(stream)

    def send(self, stream: Stream, data: bytes, end: bool) -> None:
        """Data behind what was given before; what the peer does not allow yet goes later."""
        stream.ends = end
        if stream.outbox is not None:
            stream.outbox = memoryview(bytes(stream.outbox) + data)
        elif data or end:
            stream.outbox = memoryview(data)
        if stream.outbox is not None:
            self._pump(stream)

    def _pump(self, stream: Stream) -> None:
        rest = stream.outbox
        assert rest is not None
        while True:
            size = len(rest)
            room = min(self._send_window, stream.send_window, self._frame_bytes_max)
            if size > room and size:
                if room <= 0:
                    stream.outbox = rest
                    self._waiting[stream.id] = stream
                    return
                piece, rest, flags = rest[:room], rest[room:], 0
                size = room
            else:
                piece, flags = rest, END_STREAM if stream.ends else 0
                stream.outbox = None
            self.out.append(b"".join((head_of(size << 8 | DATA, flags, stream.id), piece)))
            stream.sent_bytes += size + HEAD_BYTES
            stream.send_window -= size
            self._send_window -= size
            self._idle_frames = 0  # the peer has reason to answer with windows
            if stream.outbox is None:
                if flags:
                    self._sent_end(stream)
                return

    def _sent_end(self, stream: Stream) -> None:
        stream.state = AFTER_LOCAL_END[stream.state]
        if stream.state == CLOSED:
            self._forget(stream)

    def reset(self, stream: Stream, code: int) -> None:
        """Give a stream up; what still comes of it is passed over."""
        if stream.id in self.streams:
            self.out.append(frames.rst_stream(stream.id, code))
            stream.sent_bytes += HEAD_BYTES + 4
            self._forget(stream)

    def _forget(self, stream: Stream) -> None:
        stream.state = CLOSED
        stream.outbox = None
        self.streams.pop(stream.id, None)
        self._waiting.pop(stream.id, None)

    def close(self, code: int = frames.NO_ERROR) -> None:
        """Say that the connection ends."""
        self.is_closing = True
        self.out.append(frames.goaway(self._last_accepted, code))

    # -- receiving ---------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> None:
        if self.fault:
            return
        if self._rest:
            data = self._rest + data
            self._rest = b""
        try:
            self._read(data, now)
        except Fault as fault:
            self.fault = fault.fault
            self.close(fault.code)

    def _read(self, data: bytes, now: float) -> None:
        at, end = 0, len(data)
        streams = self.streams
        while end - at >= HEAD_BYTES:
            size, flags, number = read_head(data, at)
            kind = size & 0xFF
            size >>= 8
            start = at + HEAD_BYTES
            at = start + size
            if size > frames.FRAME_BYTES:
                raise Fault(frames.FRAME_SIZE_ERROR, f"sent a frame of {size} bytes")
            if at > end:
                at = start - HEAD_BYTES
                break
            if not self.is_greeted and kind != frames.SETTINGS:
                raise Fault(frames.PROTOCOL_ERROR, "did not begin with its settings")
            if self._partial is not None:
                self._continue(self._partial, kind, flags, number, data[start:at], now)
                continue
            stream = streams.get(number)
            if stream is None or kind > HEADERS or flags & (PADDED | PRIORITIZED):
                self._read_other(kind, flags, number, data[start:at], now)
            elif kind == DATA:
                self._on_data(stream, flags, data[start:at], size, now)
            elif flags & END_HEADERS:
                stream.received += size + HEAD_BYTES
                self._on_block(stream, data[start:at], flags, now)
            else:
                self._begin_block(stream, number, flags, data[start:at])
        if at < end:
            self._rest = data[at:]

    def _on_data(self, stream: Stream, flags: int, data: bytes, size: int, now: float) -> None:
        """`size`: of the payload with its padding, which counts as well."""
        stream.received += size + HEAD_BYTES
        self._take(size)
        stream.taken += size
        if stream.taken > STREAM_WINDOW:
            self._break(stream, frames.FLOW_CONTROL_ERROR, "sent more than its window allows", now)
            return
        if stream.state >= REMOTE_ENDED:
            self._break(stream, frames.STREAM_CLOSED, "went on after the end of a stream", now)
            return
        if data:
            self._idle_frames = 0
            stream.on_data(data, now)
        elif not flags & END_STREAM:
            self._idle()
        if flags & END_STREAM:
            self._on_end(stream, now)
        elif stream.taken > STREAM_WINDOW // 2 and stream.state != CLOSED:
            self.out.append(frames.window_update(stream.id, stream.taken))
            stream.sent_bytes += HEAD_BYTES + 4
            stream.taken = 0

    def _take(self, size: int) -> None:
        self._taken += size
        if self._taken > CONNECTION_WINDOW // 2:
            if self._taken > CONNECTION_WINDOW:
                raise Fault(frames.FLOW_CONTROL_ERROR, "sent more than its window allows")
            self.out.append(frames.window_update(0, self._taken))
            self._taken = 0

    def _on_block(self, stream: Stream | None, data: bytes, flags: int, now: float) -> None:
        """All of a header block. That of a stream nobody waits for changes the table as well."""
        block = self._decoder.decoded.get(data)
        if block is None:
            try:
                block = self._tables.decode(self._decoder, data)
            except BadBlock as error:
                raise Fault(frames.COMPRESSION_ERROR, f"sent {error}") from None
        self._decoder = block.after
        if stream is None or stream.state == CLOSED:
            self._idle()
            return
        if stream.state >= REMOTE_ENDED:
            self._break(stream, frames.STREAM_CLOSED, "went on after the end of a stream", now)
            return
        stream.on_headers(block, now)
        if flags & END_STREAM:
            self._on_end(stream, now)

    def _on_end(self, stream: Stream, now: float) -> None:
        self._idle_frames = 0
        if stream.state == CLOSED:  # what came was reason enough to give it up
            return
        stream.state = AFTER_REMOTE_END[stream.state]
        if stream.state == CLOSED:
            self._forget(stream)
        stream.on_end(now)

    def _break(self, stream: Stream, code: int, fault: str, now: float) -> None:
        self.reset(stream, code)
        stream.on_fault(code, fault, now)

    def _idle(self) -> None:
        self._idle_frames += 1
        if self._idle_frames > IDLE_FRAMES_MAX:
            raise Fault(frames.ENHANCE_YOUR_CALM, f"sent {IDLE_FRAMES_MAX} frames that say nothing")

    # -- what comes seldom -------------------------------------------------------------------------

    def _read_other(self, kind: int, flags: int, number: int, data: bytes, now: float) -> None:
        number &= frames.STREAM_MAX
        if kind in (DATA, HEADERS):
            self._read_padded(kind, flags, number, data, now)
            return
        read = _READERS.get(kind)
        if kind != frames.WINDOW_UPDATE:
            self._idle()
        if read is not None:  # one of a kind that is not known is passed over
            read(self, flags, number, data, now)

    def _read_padded(self, kind: int, flags: int, number: int, data: bytes, now: float) -> None:
        """HEADERS or DATA with padding, with a priority, of a new or of a forgotten stream."""
        size = len(data)
        if flags & PADDED:
            if not data or data[0] >= len(data):
                raise Fault(frames.PROTOCOL_ERROR, "sent more padding than the frame holds")
            data = data[1 : len(data) - data[0]]
        stream = self._stream_of(kind, number)
        if kind == DATA:
            if stream is None:
                self._take(size)
                self._idle()
            else:
                self._on_data(stream, flags, data, size, now)
            return
        if flags & PRIORITIZED:
            if len(data) < 5:
                raise Fault(frames.FRAME_SIZE_ERROR, "sent a priority that is cut short")
            data = data[5:]
        if stream is not None:
            stream.received += size + HEAD_BYTES
        if flags & END_HEADERS:
            self._on_block(stream, data, flags, now)
        else:
            self._begin_block(stream, number, flags, data)

    def _stream_of(self, kind: int, number: int) -> Stream | None:
        """The one with that number, a new one of the peer's, or None for a forgotten one."""
        stream = self.streams.get(number)
        if stream is not None:
            return stream
        if self._accept is None:
            if not number or number % 2 == 0 or number >= self.next_id:
                raise Fault(frames.PROTOCOL_ERROR, f"sent a frame of stream {number}, which is not")
            return None
        if number % 2 == 0 or (kind == DATA and number > self._last_accepted):
            raise Fault(frames.PROTOCOL_ERROR, f"sent a frame of stream {number}, which is not")
        if number <= self._last_accepted or self.is_closing:
            return None
        self._last_accepted = number
        stream = self._accept()
        stream.id = number
        stream.send_window = self._initial_window
        self.streams[number] = stream
        return stream

    def _begin_block(self, stream: Stream | None, number: int, flags: int, data: bytes) -> None:
        self._partial = _Partial(stream, number, flags, data)
        self._check_block(self._partial)

    def _continue(
        self, partial: _Partial, kind: int, flags: int, number: int, data: bytes, now: float
    ) -> None:
        if kind != CONTINUATION or number & frames.STREAM_MAX != partial.number:
            raise Fault(frames.PROTOCOL_ERROR, "broke a header block off")
        partial.data += data
        partial.count += 1
        self._check_block(partial)
        if partial.stream is not None:
            partial.stream.received += len(data) + HEAD_BYTES
        if flags & END_HEADERS:
            self._partial = None
            self._on_block(partial.stream, bytes(partial.data), partial.flags, now)

    def _check_block(self, partial: _Partial) -> None:
        most = self._tables.list_bytes_max
        if len(partial.data) > most:
            fault = f"sent headers of more than {most} bytes (max_header_bytes)"
            raise Fault(frames.ENHANCE_YOUR_CALM, fault)
        if partial.count > CONTINUATIONS_MAX:
            fault = f"sent headers in more than {CONTINUATIONS_MAX} frames"
            raise Fault(frames.ENHANCE_YOUR_CALM, fault)

    def _on_settings(self, flags: int, number: int, data: bytes, now: float) -> None:
        if number or len(data) % 6 or (flags & ACK and data):
            raise Fault(frames.FRAME_SIZE_ERROR, "sent settings that cannot be read")
        if flags & ACK:
            return
        if not self.is_greeted:
            self.is_greeted = True
            self.streams_max = STREAMS_UNLIMITED
        for name, value in frames.read_settings(data):
            match name:
                case frames.HEADER_TABLE_SIZE:
                    self._resize_table(min(value, TABLE_BYTES))
                case frames.MAX_CONCURRENT_STREAMS:
                    self.streams_max = value
                case frames.INITIAL_WINDOW_SIZE:
                    self._move_windows(value)
                case frames.MAX_FRAME_SIZE:
                    if not frames.FRAME_BYTES <= value <= frames.FRAME_BYTES_MAX:
                        raise Fault(frames.PROTOCOL_ERROR, f"allows frames of {value} bytes")
                    self._frame_bytes_max = min(value, SENT_FRAME_BYTES_MAX)
        self.out.append(frames.frame(frames.SETTINGS, ACK, 0))
        self._pump_waiting(now)

    def _resize_table(self, limit: int) -> None:
        if limit != self._encoder.limit:
            self._encoder = self._tables.resized(self._encoder, limit)
            self._resize = size_update(limit)

    def _move_windows(self, size: int) -> None:
        if size > WINDOW_BYTES_MAX:
            raise Fault(frames.FLOW_CONTROL_ERROR, f"gives a window of {size} bytes")
        for stream in self.streams.values():
            stream.send_window += size - self._initial_window
            if stream.send_window > WINDOW_BYTES_MAX:
                raise Fault(frames.FLOW_CONTROL_ERROR, "gives a window that is too large")
        self._initial_window = size

    def _on_window_update(self, flags: int, number: int, data: bytes, now: float) -> None:
        if len(data) != 4:
            raise Fault(frames.FRAME_SIZE_ERROR, "sent a window that cannot be read")
        size = frames.read_number(data) & WINDOW_BYTES_MAX
        if not self._waiting:  # it allows what nobody waits for
            self._idle()
        stream = self.streams.get(number)
        if number == 0:
            self._send_window += size
            if not size or self._send_window > WINDOW_BYTES_MAX:
                raise Fault(frames.FLOW_CONTROL_ERROR, "gives a window that is too large or empty")
            self._pump_waiting(now)
        elif stream is None:
            self._stream_of(DATA, number)
        else:
            stream.received += HEAD_BYTES + 4
            stream.send_window += size
            if not size or stream.send_window > WINDOW_BYTES_MAX:
                fault = "gives a window that is too large or empty"
                self._break(stream, frames.FLOW_CONTROL_ERROR, fault, now)
            else:
                self._pump_waiting(now)

    def _pump_waiting(self, now: float) -> None:
        for stream in list(self._waiting.values()):
            if self._send_window <= 0:
                return
            del self._waiting[stream.id]
            self._pump(stream)
            if stream.outbox is None:
                stream.on_room(now)

    def _on_rst_stream(self, flags: int, number: int, data: bytes, now: float) -> None:
        if len(data) != 4:
            raise Fault(frames.FRAME_SIZE_ERROR, "sent a reset that cannot be read")
        stream = self.streams.get(number) or self._stream_of(DATA, number)
        if stream is not None:
            stream.received += HEAD_BYTES + 4
            self._forget(stream)
            stream.on_reset(frames.read_number(data), now)

    def _on_ping(self, flags: int, number: int, data: bytes, now: float) -> None:
        if number or len(data) != 8:
            raise Fault(frames.FRAME_SIZE_ERROR, "sent a ping that cannot be read")
        if not flags & ACK:
            self.out.append(frames.frame(frames.PING, ACK, 0, data))

    def _on_goaway(self, flags: int, number: int, data: bytes, now: float) -> None:
        if number or len(data) < 8:
            raise Fault(frames.FRAME_SIZE_ERROR, "sent a farewell that cannot be read")
        last, code, said = frames.read_goaway(data)
        self.is_closing = True
        for stream in [one for one in self.streams.values() if one.id > last]:
            self._forget(stream)
            stream.on_refused(now)
        if code != frames.NO_ERROR:
            text = f": {said[:200].decode('utf-8', 'replace')}" if said else ""
            raise Fault(frames.NO_ERROR, f"ended the connection ({frames.error_name(code)}){text}")

    def _on_push(self, flags: int, number: int, data: bytes, now: float) -> None:
        raise Fault(frames.PROTOCOL_ERROR, "sent a push, which it was told not to")

    def _on_stray(self, flags: int, number: int, data: bytes, now: float) -> None:
        raise Fault(frames.PROTOCOL_ERROR, "went on with a header block that was not begun")


STREAMS_UNLIMITED = 2**31
SENT_FRAME_BYTES_MAX = 256 * 1024  # longer ones would keep other streams waiting


class _Partial:
    """A header block that is not all there yet."""

    __slots__ = ("count", "data", "flags", "number", "stream")

    def __init__(self, stream: Stream | None, number: int, flags: int, data: bytes) -> None:
        self.stream = stream
        self.number = number
        self.flags = flags
        self.data = bytearray(data)
        self.count = 0


_READERS = {
    frames.RST_STREAM: Session._on_rst_stream,
    frames.SETTINGS: Session._on_settings,
    frames.PUSH_PROMISE: Session._on_push,
    frames.PING: Session._on_ping,
    frames.GOAWAY: Session._on_goaway,
    frames.WINDOW_UPDATE: Session._on_window_update,
    frames.CONTINUATION: Session._on_stray,
}
