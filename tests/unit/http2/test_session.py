"""The rules of a session, one by one."""

from __future__ import annotations

import re

import hpack
import pytest

from hyperscale.http2 import frames
from hyperscale.http2.frames import END_HEADERS, END_STREAM, frame
from hyperscale.http2.hpack import Tables
from hyperscale.http2.session import (
    CONNECTION_WINDOW,
    IDLE_FRAMES_MAX,
    STREAM_WINDOW,
    Session,
)
from tests.property.test_http2_session import FIELDS, Heard, taken

GREETING = frames.settings({})
OK = hpack.Encoder().encode([(":status", "200")])


def opened(body: bytes = b"", greeting: bytes = GREETING) -> tuple[Session, Heard]:
    session, stream = Session(Tables(20_000)), Heard(body)
    session.open(stream, b"", lambda key: FIELDS)
    session.receive(greeting, 0.0)
    taken(session)
    return session, stream


def headers(stream: int, flags: int = END_HEADERS, block: bytes = OK) -> bytes:
    return frame(frames.HEADERS, flags, stream, block)


def test_it_begins_with_the_preface_and_its_settings() -> None:
    data = taken(Session(Tables(20_000)))
    assert data.startswith(frames.PREFACE)
    (setting, *_) = frames.read_settings(data[24 + 9 : 24 + 9 + 18])
    assert setting == (frames.ENABLE_PUSH, 0)


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        (headers(2), "stream 2, which is not"),
        (headers(3), "stream 3, which is not"),
        (headers(0), "stream 0, which is not"),
        (frame(frames.DATA, 0, 7, b"x"), "stream 7, which is not"),
        (headers(1, 0) + frame(frames.PING, 0, 0, bytes(8)), "broke a header block off"),
        (headers(1, 0) + frame(frames.CONTINUATION, 4, 3, OK), "broke a header block off"),
        (frame(frames.CONTINUATION, END_HEADERS, 1, OK), "was not begun"),
        (headers(1, block=b"\xff\xff"), "a header block that cannot be read"),
        (frame(frames.PUSH_PROMISE, END_HEADERS, 1, bytes(4) + OK), "sent a push"),
        (frame(frames.PING, 0, 0, bytes(7)), "a ping that cannot be read"),
        (frame(frames.SETTINGS, 0, 0, bytes(5)), "settings that cannot be read"),
        (frames.settings({frames.MAX_FRAME_SIZE: 1}), "allows frames of 1 bytes"),
        (frames.settings({frames.INITIAL_WINDOW_SIZE: 2**31}), "gives a window of"),
        (frames.window_update(0, 0), "too large or empty"),
        (frames.window_update(0, 2**31 - 1), "too large or empty"),
        (frame(frames.DATA, frames.PADDED, 1, b"\x05abc"), "more padding than"),
        (frame(frames.GOAWAY, 0, 0, b"x"), "a farewell that cannot be read"),
        (frames.goaway(1, frames.ENHANCE_YOUR_CALM), r"ended the connection \(ENHANCE_YOUR_CALM"),
        (b"\x7f\xff\xff\x00\x00\x00\x00\x00\x01", "a frame of 8388607 bytes"),
        (frame(frames.PING, 0, 0, bytes(8)) * (IDLE_FRAMES_MAX + 1), "frames that say nothing"),
        (frame(frames.DATA, 0, 1) * (IDLE_FRAMES_MAX + 1), "frames that say nothing"),
        (frames.window_update(1, 1) * (IDLE_FRAMES_MAX + 1), "frames that say nothing"),
        (headers(1, 0) + frame(frames.CONTINUATION, 0, 1) * 70, "in more than 64 frames"),
        (
            headers(1, 0) + frame(frames.CONTINUATION, 0, 1, bytes(16000)) * 2,
            "headers of more than 20000 bytes",
        ),
    ],
)
def test_what_ends_the_connection(sent: bytes, fault: str) -> None:
    session, _ = opened()
    session.receive(sent, 0.0)
    assert re.search(fault, session.fault), session.fault
    assert frames.frame(frames.GOAWAY, 0, 0)[3:4] in taken(session)
    session.receive(sent, 0.0)  # nothing is read any more
    assert not session.out


def test_a_server_has_to_begin_with_its_settings() -> None:
    session, _ = opened(greeting=frame(frames.PING, 0, 0, bytes(8)))
    assert session.fault == "did not begin with its settings"


@pytest.mark.parametrize(
    ("sent", "how"),
    [
        (frames.rst_stream(1, frames.REFUSED_STREAM), "reset"),
        (frames.goaway(0, frames.NO_ERROR), "refused"),
        (frames.window_update(1, 0), "fault"),
        (frames.window_update(1, 2**31 - 1), "fault"),
        (headers(1) + frame(frames.DATA, END_STREAM, 1, b"x"), "ended"),
        (headers(1, END_HEADERS | END_STREAM), "ended"),
        (headers(1, END_HEADERS | END_STREAM) + headers(1), "ended"),  # the rest is passed over
        (headers(1) + frame(frames.DATA, 0, 1, bytes(16384)) * 300, ""),  # windows are given
    ],
)
def test_what_ends_a_stream(sent: bytes, how: str) -> None:
    session, stream = opened()
    session.receive(sent, 0.0)
    assert (stream.how, session.fault) == (how, "")


def test_more_than_the_window_of_a_stream_is_refused() -> None:
    session, stream = opened()
    stream.taken = STREAM_WINDOW - 10
    session.receive(headers(1) + frame(frames.DATA, 0, 1, bytes(11)), 0.0)
    assert stream.how == "fault"
    session, stream = opened()
    session._taken = CONNECTION_WINDOW - 10
    session.receive(headers(1) + frame(frames.DATA, 0, 1, bytes(11)), 0.0)
    assert session.fault == "sent more than its window allows"


def test_a_body_waits_for_both_windows() -> None:
    session, stream = opened(bytes(100_000))
    assert stream.outbox is not None
    assert len(stream.outbox) == 100_000 - 65_535
    session.receive(frames.window_update(1, 100_000), 0.0)
    assert not session.out  # that of the connection is empty
    session.receive(frames.window_update(0, 34_465), 0.0)
    assert stream.outbox is None
    assert taken(session).endswith(bytes(1))


def test_a_window_may_become_negative() -> None:
    session, stream = opened(bytes(65_535))
    session.receive(frames.settings({frames.INITIAL_WINDOW_SIZE: 0}), 0.0)
    assert stream.send_window == -65_535


def test_the_table_of_the_peer_is_kept_to() -> None:
    decoder = hpack.Decoder()
    session, _ = opened()
    session.receive(frames.settings({frames.HEADER_TABLE_SIZE: 0}), 0.0)
    taken(session)
    session.open(Heard(), b"", lambda key: FIELDS)
    data = taken(session)
    decoder.max_allowed_table_size = 0
    assert len(decoder.decode(data[9:])) == 4
    assert decoder.header_table_size == 0


def test_long_headers_are_cut() -> None:
    session, _ = opened()
    many = [*FIELDS, (b"x", b"\xff" * 20_000)]
    session.open(Heard(), b"many", lambda key: many)
    data = taken(session)
    size, flags, _ = frames.read_head(data)
    assert (size & 0xFF, flags & END_HEADERS) == (frames.HEADERS, 0)
    size, flags, _ = frames.read_head(data, 9 + (size >> 8))
    assert (size & 0xFF, flags & END_HEADERS) == (frames.CONTINUATION, END_HEADERS)


def test_no_more_streams_than_there_are_numbers() -> None:
    session, _ = opened()
    session.next_id = 2**31 - 1
    session.open(Heard(), b"", lambda key: FIELDS)
    assert not session.has_room
