"""Odd but readable answers, over real connections."""

from __future__ import annotations

import asyncio

import pytest

from hyperscale.workload.results import Outcome

from .conftest import Run
from .scripted import client, response, serve


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\nhello",
        b"HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\nX: y\r\nContent-Length: 5\n\r\nhello",
        b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\r\nhello\r\n0\r\nT: 1\n\n",
        b"HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\tchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_line_feeds_and_folded_lines(run: Run, answer: bytes) -> None:
    async def go() -> None:
        steps = iter([len(answer), len(answer), 1])

        async def handler(peer):
            while await peer.request():
                step = next(steps)
                for at in range(0, len(answer), step):
                    await peer.send(answer[at : at + step])
                    await asyncio.sleep(0)

        async with serve(handler=handler) as server, client() as vu:
            for _ in range(3):
                got = await vu.http.get(server.url)
                assert (got.outcome, got.content) == (Outcome.OK, b"hello")
                assert got.bytes_in == len(answer)
            assert server.connections == 1

    run(go())


def test_a_body_is_not_taken_for_the_rest_of_a_head(run: Run) -> None:
    """The first blank line with CRLF is in the body here."""
    answer = b"HTTP/1.1 200 OK\nContent-Length: 20\n\nSet-Cookie: a=b\r\n\r\n?"

    async def go() -> None:
        async with serve(answer) as server, client() as vu:
            got = await vu.http.get(server.url)
            assert got.content == b"Set-Cookie: a=b\r\n\r\n?"
            assert got.cookies == {}

    run(go())


@pytest.mark.parametrize("coding", ["none", "utf-8", "foo"])
def test_content_codings_that_nobody_knows(run: Run, coding: str) -> None:
    async def go() -> None:
        async with (
            serve(response(b"hello", "200 OK", f"Content-Encoding: {coding}")) as server,
            client() as vu,
        ):
            assert (await vu.http.get(server.url)).content == b"hello"

    run(go())


@pytest.mark.parametrize(
    ("location", "asked"),
    [
        (b"/caf\xe9", b"/caf%E9"),
        ("/café".encode(), b"/caf%C3%A9"),
        ("/voilà".encode(), b"/voil%C3%A0"),
        (b"\r\n /folded", b"/folded"),
    ],
)
def test_locations_to_the_byte(run: Run, location: bytes, asked: bytes) -> None:
    def answer(request: bytes) -> bytes:
        if request.startswith(b"GET / "):
            return b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
        return response()

    async def go() -> None:
        async with serve(answer) as server, client() as vu:
            assert (await vu.http.get(server.url + "/")).status == 200
            assert server.requests[-1].startswith(b"GET " + asked + b" ")

    run(go())


def test_an_empty_location_is_not_followed(run: Run) -> None:
    async def go() -> None:
        async with serve(response(b"x", "302 Found", "Location: ")) as server, client() as vu:
            got = await vu.http.get(server.url)
            assert (got.outcome, got.status, got.content) == (Outcome.OK, 302, b"x")
            assert len(server.requests) == 1

    run(go())


def test_cookies_of_one_name_and_their_last_bytes(run: Run) -> None:
    lines = ("a=1; Path=/", "b=voilà; Path=/", "a=2; Path=/x")

    def answer(request: bytes) -> bytes:
        return response(b"", "200 OK", *(f"Set-Cookie: {line}" for line in lines))

    async def go() -> None:
        async with serve(answer) as server, client() as vu:
            got = await vu.http.get(server.url + "/x")
            assert got.cookies["b"].encode("latin-1") == "voilà".encode()
            await vu.http.get(server.url + "/x", cookies={"c": "3"})
            await vu.http.get(server.url + "/x", cookies={"a": "mine"})
            await vu.http.get(server.url + "/")
            sent = [r.partition(b"Cookie: ")[2].partition(b"\r\n")[0] for r in server.requests]
            assert sent == [
                b"",
                "a=2; a=1; b=voilà; c=3".encode(),
                "b=voilà; a=mine".encode(),
                "a=1; b=voilà".encode(),
            ]

    run(go())
