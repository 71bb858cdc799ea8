from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.target.connection import BODY_BYTES_KEPT, HEADER_BYTES, PIPELINED_REQUESTS
from hyperscale.target.effects import Later
from hyperscale.target.routes import new_site
from hyperscale.target.site import REMEMBERED_BYTES, REQUESTS_REMEMBERED
from tests.unit.target.wire import Wire, get

PIPELINE = b"".join(
    [
        get("/"),
        get("/echo?a=1", method="POST", body=b"hello"),
        get("/json"),
        get("/bytes/300"),
        b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        get("/items/7", method="HEAD"),
        get("/status/404"),
    ]
)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges) if a < b]


@given(st.lists(st.integers(1, len(PIPELINE) - 1), max_size=20))
def test_answers_do_not_depend_on_how_the_bytes_arrive(cuts: list[int]) -> None:
    assert Wire().feed(*split(PIPELINE, cuts)) == Wire().feed(PIPELINE)


def test_one_byte_at_a_time() -> None:
    chunks = [bytes([byte]) for byte in PIPELINE]
    assert Wire().feed(*chunks) == Wire().feed(PIPELINE)


def test_a_repeated_request_is_answered_as_the_first_was() -> None:
    wire = Wire()
    answers = {wire.feed(get("/echo?x=1", "X-A: b")) for _ in range(3)}
    assert len(answers) == 1
    assert wire.connection.site.paths == {"/echo": 3}


def test_bytes_seen_before_are_no_request_inside_a_body() -> None:
    wire = Wire()
    inner = get("/json")
    wire.feed(inner)
    outer = get("/echo", method="POST", body=inner)
    answer = wire.feed(outer[: -len(inner)], inner)
    assert msgspec.json.decode(answer.split(b"\r\n\r\n", 1)[1])["body"] == inner.decode()
    assert wire.connection.site.paths == {"/json": 1, "/echo": 1}


def test_requests_behind_a_slow_one_wait_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: list[Later] = []
    monkeypatch.setattr(Later, "perform", lambda self, *args: waiting.append(self))
    wire = Wire()
    assert wire.feed(get("/delay/5"), get("/json"), get("/json")) == b""
    assert len(waiting) == 1
    wire.connection.done()
    assert wire.sent.count(b"HTTP/1.1 200 OK") == 2
    wire.feed(get("/delay/5"), get("/json") * (PIPELINED_REQUESTS + 1))
    assert not wire.reading
    wire.connection.done()
    assert wire.reading
    assert wire.sent.count(b"HTTP/1.1 200 OK") == 2 + PIPELINED_REQUESTS + 1


def test_a_slow_reader_gets_no_more_until_it_has_read() -> None:
    wire = Wire()
    wire.feed(get("/json"))
    wire.connection.pause_writing()
    assert not wire.reading
    assert wire.feed(get("/json")) == b""
    wire.connection.resume_writing()
    assert wire.reading
    assert wire.sent.count(b"HTTP/1.1 200 OK") == 2


@pytest.mark.parametrize(
    ("request_bytes", "header", "closes"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", None, False),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", b"Connection: close", True),
        (b"GET / HTTP/1.0\r\n\r\n", b"Connection: close", True),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"Connection: keep-alive", False),
        (b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", b"close", True),
    ],
)
def test_keep_alive(request_bytes: bytes, header: bytes | None, closes: bool) -> None:
    wire = Wire()
    for _ in range(1 if closes else 2):
        answer = wire.feed(request_bytes)
        assert (b"Connection:" in answer) == (header is not None)
        assert header is None or header in answer
    assert wire.closed == closes


def test_nothing_is_answered_after_the_last_request() -> None:
    wire = Wire()
    answer = wire.feed(get("/", "Connection: close") + get("/json"), get("/json"))
    assert answer.count(b"HTTP/1.1 ") == 1


def test_head_has_the_head_of_get() -> None:
    wire = Wire()
    whole = wire.feed(get("/bytes/1000"))
    assert wire.feed(get("/bytes/1000", method="HEAD")) == whole[:-1000]


@pytest.mark.parametrize(
    "data",
    [b"\x16\x03\x01\x02\x00\x01\x00", b"hello\r\n\r\n", get("x y"), b"GET / HTTP/9.9\r\n\r\n"],
)
def test_what_is_not_http_is_refused_and_the_connection_closed(data: bytes) -> None:
    wire = Wire()
    assert wire.feed(get("/"), data).count(b"HTTP/1.1 400 Bad Request") == 1
    assert wire.closed


def test_connect_is_refused() -> None:
    wire = Wire()
    assert wire.feed(get("a:80", method="CONNECT")).startswith(b"HTTP/1.1 400")
    assert wire.closed


def test_a_header_without_end_is_refused() -> None:
    wire = Wire()
    wire.feed(b"GET / HTTP/1.1\r\nX: ")
    for _ in range(HEADER_BYTES // 1000 + 2):
        wire.feed(b"a" * 1000)
    assert wire.sent.startswith(b"HTTP/1.1 431")
    assert wire.closed


def test_a_long_body_is_counted_to_its_end_and_kept_to_the_limit() -> None:
    wire = Wire()
    length = BODY_BYTES_KEPT * 3
    head = f"POST /echo HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode()
    answer = wire.feed(head, *[b"b" * 65_536] * (length // 65_536))
    echoed = msgspec.json.decode(answer.split(b"\r\n\r\n", 1)[1])
    assert echoed["body_bytes"] == length
    assert len(echoed["body"]) == BODY_BYTES_KEPT


def test_a_client_that_asks_before_sending_is_told_to_go_on() -> None:
    wire = Wire()
    head = b"POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    assert wire.feed(head) == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert wire.feed(b"ok").startswith(b"HTTP/1.1 200 OK")


def test_the_memory_of_requests_is_bounded() -> None:
    site = new_site()
    wire = Wire(site)
    for number in range(REQUESTS_REMEMBERED + 10):
        wire.feed(get(f"/?{number}"))
    wire.feed(get("/", "X-Long: " + "a" * REMEMBERED_BYTES))
    assert len(site.remembered) <= REQUESTS_REMEMBERED
    assert all(len(data) <= REMEMBERED_BYTES for data in site.remembered)


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_break_it(data: bytes, after_request: bool) -> None:
    wire = Wire()
    if after_request:
        wire.feed(get("/"))
    wire.feed(data)
    wire.connection.connection_lost(None)
    assert not wire.connection.site.connections
