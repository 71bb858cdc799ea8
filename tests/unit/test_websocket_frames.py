"""What is not WebSocket is refused with the code that the standard names for it."""

from __future__ import annotations

import pytest

from hyperscale.websocket_frames import (
    BINARY,
    CLOSE,
    COMPRESSED,
    PING,
    TEXT,
    Deflate,
    FrameError,
    FrameReader,
    accept_of,
    closed_by,
    closing,
    frame,
)


def test_the_example_of_the_standard() -> None:
    assert accept_of(b"dGhlIHNhbXBsZSBub25jZQ==") == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize(
    ("data", "code", "what"),
    [
        (b"\x83\x00", 1002, "unknown kind 3"),
        (b"\x81\x80....", 1002, "with mask"),
        (b"\xc1\x00", 1002, "extension"),
        (b"\x09\x00", 1002, "in fragments"),
        (b"\x89\x7e\x00\x7e", 1002, "too long"),
        (b"\x80\x00", 1002, "out of their order"),
        (b"\x01\x00\x01\x00", 1002, "out of their order"),
        (b"\x82\x7e\x00\x05", 1002, "shortest"),
        (b"\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x05", 1002, "shortest"),
        (b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 1009, "more than 1000 bytes"),
        (b"\x02\x7e\x03\x00" + bytes(768) + b"\x80\x7e\x03\x00", 1009, "more than 1000 bytes"),
        (b"\x81\x02\xc3\x28", 1007, "not UTF-8"),
        (b"HTTP/1.1 400 Bad Request\r\n", 1002, "unknown kind|extension"),
    ],
)
def test_what_breaks_the_rules(data: bytes, code: int, what: str) -> None:
    reader = FrameReader(False, 1000)
    assert list(reader.feed(frame(TEXT, b"before", False) + data)) == [(TEXT, b"before")]
    assert reader.error is not None
    assert reader.error.code == code
    with pytest.raises(FrameError, match=what):
        raise reader.error
    assert reader.feed(frame(TEXT, b"after", False)) == ()


def test_control_frames_come_between_fragments() -> None:
    reader = FrameReader(False, 1000)
    data = b"\x01\x03abc" + frame(PING, b"?", False) + b"\x80\x03def"
    assert list(reader.feed(data)) == [(PING, b"?"), (TEXT, b"abcdef")]


def test_a_compressed_message_may_not_grow_beyond_the_limit() -> None:
    packed = Deflate().compress(bytes(10_000_000))
    assert len(packed) < 10_000
    reader = FrameReader(False, 100_000, Deflate())
    assert list(reader.feed(frame(BINARY | COMPRESSED, packed, False))) == []
    assert reader.error is not None
    assert reader.error.code == 1009


def test_what_is_not_compressed_though_it_says_so() -> None:
    reader = FrameReader(False, 100_000, Deflate())
    assert list(reader.feed(frame(BINARY | COMPRESSED, b"\xff\xff\xff", False))) == []
    assert str(reader.error) == "a message that cannot be decompressed"


@pytest.mark.parametrize("data", [b"\x03", b"\x00\x00", b"\x03\xed", b"\x03\xee", b"\x13\x88"])
def test_codes_that_nobody_may_close_by(data: bytes) -> None:
    with pytest.raises(FrameError, match="a close frame with the code"):
        closed_by(data)


def test_codes_and_reasons() -> None:
    assert closed_by(closing(1008, "no room")) == (1008, "no room")
    assert closed_by(b"") == (1005, "")
    assert len(closing(1000, "x" * 500)) == 125
    with pytest.raises(FrameError, match="not UTF-8"):
        closed_by(b"\x03\xe8\xff")
    assert frame(CLOSE, closing(1000), False) == b"\x88\x02\x03\xe8"
