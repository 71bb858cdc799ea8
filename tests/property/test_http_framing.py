"""However a response is cut into packets it is the same response, and no bytes break the client."""

from __future__ import annotations

import asyncio
import socket
from itertools import pairwise
from time import perf_counter
from types import SimpleNamespace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from hyperscale.clients.http.connection import Connection
from hyperscale.clients.http.reader import Heads, ResponseReader
from hyperscale.clients.http.target import Target
from hyperscale.clients.io.readiness import LoopReadiness
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.results import Connect, Outcome

LIMIT = 5000

names = st.text("abcXYZ-", min_size=1, max_size=10).filter(lambda n: n[0] != "-")
values = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)
bodies = st.binary(max_size=300)


@st.composite
def responses(draw: st.DrawFn) -> tuple[bytes, bytes, bool]:
    """The bytes, the body in them, and whether only the end of the connection ends it."""
    status = draw(st.sampled_from([200, 201, 301, 404, 500, 204]))
    extra = draw(st.lists(st.tuples(names, values), max_size=4))
    head = f"HTTP/1.1 {status} Some Reason\r\n"
    head += "".join(f"X{name}: {value}\r\n" for name, value in extra)
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    body = b"" if status == 204 else draw(bodies)
    interim = b"HTTP/1.1 100 Continue\r\n\r\n" * draw(st.integers(0, 2))
    if status == 204:
        return interim + head.encode() + b"\r\n", b"", False
    if framing == "length":
        return interim + f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body, body, False
    if framing == "close":
        return interim + head.encode() + b"\r\n" + body, body, True
    chunks = []
    rest = body
    while rest:
        size = draw(st.integers(1, len(rest)))
        extension = draw(st.sampled_from([b"", b";a=b", b" "]))
        chunks.append(b"%x%b\r\n%b\r\n" % (size, extension, rest[:size]))
        rest = rest[size:]
    trailer = draw(st.sampled_from([b"", b"T: 1\r\n", b"T: 1\r\nU: 2\r\n"]))
    chunked = b"".join(chunks) + b"0\r\n" + trailer + b"\r\n"
    return interim + f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunked, body, False


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges) if a < b]


def read(parts: list[bytes]) -> tuple[Any, ...]:
    reader = ResponseReader(Heads(LIMIT))
    for part in parts:
        reader.feed(part)
        if reader.done:
            break
    reader.end()
    assert reader.done
    head = reader.head
    fields = (head.status, dict(head.headers), head.keep_alive) if head else None
    return fields, reader.body, reader.error


@given(responses(), st.lists(st.integers(0, 10_000), max_size=20))
def test_any_split_reads_as_the_whole(made: tuple[bytes, bytes, bool], cuts: list[int]) -> None:
    data, body, _ = made
    whole = read([data])
    assert whole[1:] == (body, "")
    assert read(pieces(data, cuts)) == whole
    assert read([data[at : at + 1] for at in range(len(data))]) == whole


@given(st.binary(max_size=2000), st.lists(st.integers(0, 10_000), max_size=10))
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r", [])
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r", [50])
def test_no_bytes_break_the_reader(data: bytes, cuts: list[int]) -> None:
    for prefix in (
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ):
        read(pieces(prefix + data, cuts))


REQUEST: Any = SimpleNamespace(
    wire=b"x",
    size=1,
    usual=None,
    answer=None,
    stream=None,
    hops=(),
    url="http://t/",
    method="GET",
    bodiless=False,
    needs_reader=False,
)


def answer(
    loop: asyncio.AbstractEventLoop, heads: Heads, parts: list[bytes], lost: OSError | None
) -> HTTPResponse:
    pool: Any = SimpleNamespace(
        heads=heads,
        loop=loop,
        timeout=5.0,
        sink=None,
        read_timeout=0.0,
        receive_bytes=64,  # less than most answers, which are then read on
        connections=set(),
        readiness=LoopReadiness(loop),
        forget=lambda _: None,
    )
    route: Any = SimpleNamespace(where="t:80", host=Target("http://t/").host)
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setblocking(False)
        made = Connection(pool, route, [], ours, Connect())
        waiter = made.ask(REQUEST, 5.0, None)
        made.transmit(perf_counter())
        for part in parts:
            if made.is_open:
                theirs.sendall(part)
                made.readable()
        made.ended(lost)
    return waiter.result()


def told(response: HTTPResponse) -> tuple[Any, ...]:
    headers = dict(response.headers)
    return response.status, response.outcome, response.error, response.raw, headers


@given(responses(), st.lists(st.integers(0, 10_000), max_size=8))
def test_fast_path_and_reader_agree(made: tuple[bytes, bytes, bool], cuts: list[int]) -> None:
    data, body, _ = made
    loop = asyncio.new_event_loop()
    try:
        heads = Heads(LIMIT)
        first = answer(loop, heads, [data], None)
        again = answer(loop, heads, [data], None)
        split = answer(loop, heads, pieces(data, cuts), None)
        assert first.raw == body
        assert first.bytes_in == again.bytes_in == split.bytes_in == len(data)
        assert told(first) == told(again) == told(split)
    finally:
        loop.close()


@given(
    st.lists(st.binary(max_size=300), max_size=10),
    st.sampled_from([None, ConnectionResetError(), OSError(5, "x")]),
    responses(),
    st.integers(0, 1000),
    st.binary(max_size=3),
)
def test_no_bytes_break_the_connection(
    parts: list[bytes],
    lost: Exception | None,
    made: tuple[bytes, bytes, bool],
    at: int,
    noise: bytes,
) -> None:
    damaged = bytearray(made[0])
    at %= len(damaged)
    damaged[at : at + len(noise)] = noise
    loop = asyncio.new_event_loop()
    try:
        heads = Heads(LIMIT)
        for sent in (parts, [bytes(damaged)], [bytes(damaged), *parts]):
            got = answer(loop, heads, sent, lost)
            assert isinstance(got.outcome, Outcome)
            assert bool(got.error) == (got.outcome is not Outcome.OK)
            assert got.started <= got.first_byte <= got.ended <= perf_counter()
    finally:
        loop.close()
