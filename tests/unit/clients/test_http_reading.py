"""What the reader makes of replies, whole and in pieces, and what it does not keep."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable

import pytest

from hyperscale.clients.http import head as head_module
from hyperscale.clients.http import reader as reader_module
from hyperscale.clients.http.head import BadHead, Head
from hyperscale.clients.http.reader import (
    DISCARD,
    MAX_KEPT_HEAD_BYTES,
    MAX_KEPT_HEADS,
    Heads,
    ResponseReader,
)
from tests.fixtures.http_replies import CHUNKS, FIVE, HELLO, OK, REPLIES, Reply, lf

LIMIT = 200_000_000


def read(
    parts: Iterable[bytes], heads: Heads | None = None, bodiless: bool = False
) -> ResponseReader:
    reader = ResponseReader(Heads(LIMIT) if heads is None else heads, bodiless)
    for part in parts:
        reader.feed(part)
    reader.end()
    assert reader.done
    return reader


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def check(reader: ResponseReader, reply: Reply) -> None:
    if reader.error or reply.error or not reader.head:
        assert reply.error in reader.error
        assert reader.error
        assert not reader.reusable
        return
    assert (reader.head.status, reader.body, reader.size) == (
        reply.status,
        reply.body,
        len(reply.body),
    )
    assert reader.extra == reply.extra
    if reply.headers:
        assert tuple(reader.head.headers.items()) == reply.headers


@pytest.mark.parametrize("name", REPLIES)
def test_replies(name: str) -> None:
    reply = REPLIES[name]
    check(read([reply.data], bodiless=reply.bodiless), reply)
    heads = Heads(LIMIT)
    for _ in range(2):  # the second time the head is known
        check(read([reply.data], heads, reply.bodiless), reply)


@pytest.mark.parametrize("name", REPLIES)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_replies_in_pieces(name: str, size: int) -> None:
    reply = REPLIES[name]
    whole = read([reply.data], bodiless=reply.bodiless)
    pieces = read(cut(reply.data, size), bodiless=reply.bodiless)
    assert bool(pieces.error) == bool(whole.error)
    if not whole.error:
        check(pieces, reply)
        assert dict(pieces.trailers) == dict(whole.trailers)


@pytest.mark.parametrize("name", REPLIES)
def test_a_body_in_a_sink_is_the_body_that_would_be_kept(name: str) -> None:
    reply = REPLIES[name]
    for size in (3, len(reply.data) or 1):
        for kept in ([], None):
            sink = DISCARD if kept is None else kept.append
            reader = ResponseReader(Heads(LIMIT), reply.bodiless, sink)
            for piece in cut(reply.data, size):
                reader.feed(piece)
            reader.end()
            assert reader.body == b""
            if not reply.error:
                assert reader.error == ""
                assert reader.size == len(reply.body)
                assert kept is None or b"".join(kept) == reply.body


@pytest.mark.parametrize(
    "data",
    [
        OK + b"Content-Length: 5000\r\n\r\n" + b"x" * 5000,
        OK + CHUNKS + b"1388\r\n" + b"x" * 5000 + b"\r\n0\r\n\r\n",
        OK + CHUNKS + b"1\r\nx\r\n" * 5000 + b"0\r\n\r\n",
        OK + b"\r\n" + b"x" * 5000,
    ],
)
@pytest.mark.parametrize("size", [100, 100_000])
def test_the_limit_is_for_bodies_that_are_kept(data: bytes, size: int) -> None:
    for limit, error in ((5000, ""), (4999, "sent a body of more than 4999 bytes")):
        assert read(cut(data, size), Heads(limit)).error.startswith(error)
        assert bool(read(cut(data, size), Heads(limit)).error) == bool(error)
        discarding = ResponseReader(Heads(limit), sink=DISCARD)
        for piece in cut(data, size):
            discarding.feed(piece)
        discarding.end()
        assert (discarding.error, discarding.size) == ("", 5000)


def test_discarded_bodies_are_not_copied() -> None:
    piece = b"x" * 1_000_000
    for head in (
        OK + b"Content-Length: 20000000\r\n\r\n",
        OK + b"\r\n",
        OK + CHUNKS + b"1312d00\r\n",
    ):
        reader = ResponseReader(Heads(LIMIT), sink=DISCARD)
        reader.feed(head)
        tracemalloc.start()
        for _ in range(20):
            reader.feed(piece)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert reader.size == 20_000_000
        assert peak < 100_000


def test_trailers() -> None:
    trailer = b"T: 1\r\nU:a\xa0\r\n b\nnot a field\r\n: nameless\nt: 2 \n\r\n"
    for size in (1, 1000):
        reader = read(cut(OK + CHUNKS + HELLO + b"0\r\n" + trailer, size))
        assert reader.error == ""
        assert dict(reader.trailers) == {"t": "1, 2", "u": "a\xa0 b"}
        assert reader.trailers.get_list("T") == ["1", "2"]
        assert "t" not in reader.head.headers
    assert dict(read([OK + CHUNKS + b"0\r\n\r\n"]).trailers) == {}
    assert dict(read([OK + FIVE]).trailers) == {}


@pytest.mark.parametrize("ends", [lambda data: data, lf])
@pytest.mark.parametrize("limit", [1000, 300_000])
def test_heads_up_to_the_limit(limit: int, ends: Callable[[bytes], bytes]) -> None:
    """To the byte, as if all lines ended with CRLF, in pieces as in one."""
    start = OK + b"X: "
    end = b"\r\nContent-Length: 5"
    for size, refused in ((limit, False), (limit + 1, True)):
        filled = start + b"x" * (size - len(start) - len(end)) + end
        for piece in (1_000_000, 997, limit + 1, limit + 3):
            reader = read(
                cut(ends(filled + b"\r\n\r\n") + b"hello", piece), Heads(LIMIT, True, limit)
            )
            assert ("a header of more than" in reader.error) == refused
            assert refused or reader.body == b"hello"
            assert not refused or "(max_header_bytes)" in reader.error


def test_long_heads_are_refused_before_they_are_split() -> None:
    with pytest.raises(BadHead, match="a header of more than 1000 bytes"):
        Heads(LIMIT, True, 1000).parse(OK + b"X: " + b"x" * 1000)


def test_a_head_that_drips_is_not_read_again_for_each_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    original = ResponseReader._read_head

    def counting(self: ResponseReader, data: bytes, at: int) -> int:
        nonlocal looked
        looked += 1
        return original(self, data, at)

    monkeypatch.setattr(reader_module, "_STEPS", (counting, *reader_module._STEPS[1:]))
    assert read(cut(OK + b"X: yyyyyyyyyy\r\n" * 1000 + FIVE, 1)).body == b"hello"
    assert looked < 20


def test_only_short_heads_are_kept() -> None:
    heads = Heads(LIMIT)
    for number in range(MAX_KEPT_HEADS * 2):
        heads.parse(OK + b"X: %d" % number)
        heads.parse(OK + b"X: %d" % number + b"y" * MAX_KEPT_HEAD_BYTES)
    assert 0 < len(heads) <= MAX_KEPT_HEADS
    assert max(map(len, heads)) <= MAX_KEPT_HEAD_BYTES


def test_what_servers_make_up_does_not_pile_up() -> None:
    heads = Heads(LIMIT)
    heads.parse(OK + b"X: y")
    tracemalloc.start()
    for number in range(3000):
        name = b"X-%d-" % number + b"x" * 10_000
        heads.parse(b"HTTP/1.1 200 " + name + b"\r\n" + name + b": y")
        Head(b"HTTP/1.1 200 Reason-%d\r\nName-%d: y" % (number, number), LIMIT)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 1_000_000
    assert len(head_module._names) <= head_module._MAX_KEPT


@pytest.mark.parametrize(
    ("field", "location"),
    [
        (b"Location: /caf\xe9", "/caf%E9"),
        ("Location: /é/日本".encode(), "/é/日本"),
        (b"Location: /\xe9/\xc3\xa9", "/%E9/%C3%A9"),
        (b"Location:\r\n /folded", "/folded"),
        (b"Location: /fol\r\n\tded", "/fol ded"),
        ("Location: /voilà".encode(), "/voilà"),
        (b"Location: \t/x \t", "/x"),
    ],
)
def test_locations(field: bytes, location: str) -> None:
    head = Head(b"HTTP/1.1 302 Found\r\n" + field + b"\r\nA: b", LIMIT)
    assert head.location == location
    assert head.is_redirect


@pytest.mark.parametrize("field", [b"Location:", b"Location: \t", b"Location:\r\n ", b"X: y"])
def test_a_location_that_names_nothing_is_not_followed(field: bytes) -> None:
    assert not Head(b"HTTP/1.1 302 Found\r\n" + field, LIMIT).is_redirect


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        (b"X: y", True),
        (b"Connection: close", False),
        (b"Connection: CLOSE", False),
        (b"Connection: x, close", False),
        (b"Connection:\r\n close", False),
        (b"Connection: close\r\nConnection: keep-alive", False),
        (b"Connection: keep-alive\r\nConnection: close", False),
        (b"Connection: keep-alive", True),
    ],
)
def test_whether_the_connection_is_kept(fields: bytes, kept: bool) -> None:
    reader = read([OK + fields + b"\r\n" + FIVE])
    assert reader.reusable == kept


def test_folded_cookies_and_codings_are_read_once() -> None:
    head = Head(
        OK + b"Set-Cookie: a=1;\r\n Path=/x\r\nSet-Cookie: b=2\r\nContent-Encoding:\r\n gzip", LIMIT
    )
    assert head.set_cookies == ("a=1; Path=/x", "b=2")
    assert head.encodings == ("gzip",)
