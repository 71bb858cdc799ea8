"""Server-Sent Events: from the target, and from servers that keep to nothing."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.target.server import Target
from hyperscale.workload.results import Outcome

from .certificates import Authority
from .conftest import Run
from .scripted import Handler, Peer, client, serve
from .test_contract import user

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def test_events_of_the_target_and_on_behind_the_last(run_each_way: Run) -> None:
    async def go() -> None:
        async with Target() as target, user() as (vu, scope, _):
            url = f"{target.url}/events?count=3&ms=5"
            opened = await vu.sse.subscribe(url)
            assert (opened.status, opened.headers["content-type"]) == (200, "text/event-stream")
            got = [await vu.sse.next(url, "tick") for _ in range(3)]
            assert [one.json()["number"] for one in got] == [1, 2, 3]
            assert {(one.event, one.ok) for one in got} == {("tick", True)}
            assert got[-1].bytes_in > 0
            over = await vu.sse.next(url)
            assert (over.outcome, over.error) == (
                Outcome.RESET,
                f"{over.target} ended the stream",
            )
            assert (await vu.sse.next(url)).id == "4", "the target heard of the last one"
            assert scope.connects == 2
            assert [one[1] for one in scope.noted] == [
                "SUBSCRIBE",
                *["NEXT"] * 3,
                "SUBSCRIBE",
                "NEXT",
            ]

    run_each_way(go())


def test_an_event_that_is_waited_for(run: Run) -> None:
    async def go() -> None:
        async with Target() as target, client() as vu:
            url = target.url.replace("http", "sse") + "/events?count=50&ms=1"
            got = await vu.sse.next(url, lambda event: event.json()["number"] == 20)
            assert got.id == "20"
            both = await asyncio.gather(vu.sse.next(url), vu.sse.next(url))
            assert {one.id for one in both} == {"21", "22"}
            late = await vu.sse.next(url, "no such event", timeout=0.01)
            assert late.outcome is Outcome.TIMEOUT
            assert (await vu.sse.next(url)).ok
            vu.sse.unsubscribe(url)

    run(go())


def test_tls(run: Run, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = authority.server(authority.issue("localhost"))

    async def go() -> None:
        async with serve(HEAD + b"data: hi\n\n", tls=tls) as server:
            async with client(ca=authority.ca) as vu:
                assert (await vu.sse.next(server.url)).text() == "hi"
            async with client() as vu:
                assert (await vu.sse.next(server.url)).outcome is Outcome.TLS

    run(go())


def says(*parts: bytes) -> Handler:
    async def handler(peer: Peer) -> None:
        await peer.request()
        for part in parts:
            await peer.send(part)

    return handler


async def endless(peer: Peer) -> None:
    await peer.request()
    await peer.send(HEAD + b"data: ")
    while True:
        await peer.send(b"x" * 60_000)


async def unread(peer: Peer) -> None:
    await peer.request()
    await peer.send(HEAD)
    while True:
        await peer.send(b"data: x\n\n" * 1000)


async def silent(peer: Peer) -> None:
    await peer.request()
    await peer.send(HEAD)
    await peer.gone()


CHUNKED = HEAD[:-2] + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("handler", "outcome", "what"),
    [
        (says(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"), Outcome.STATUS, "404 No instead"),
        (
            says(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
            Outcome.PROTOCOL,
            "text/html",
        ),
        (says(b"HTTP/1.1 200 OK\r\n\r\n"), Outcome.PROTOCOL, "answered with nothing"),
        (says(b"220 smtp.example ESMTP\r\n"), Outcome.PROTOCOL, "not HTTP"),
        (says(b""), Outcome.RESET, "closed the connection"),
        (says(HEAD + b"data: half"), Outcome.RESET, "closed the connection"),
        (says(CHUNKED + b"zz\r\n"), Outcome.PROTOCOL, "senseless chunk size"),
        (endless, Outcome.PROTOCOL, "an event of more than 200000 bytes"),
        (unread, Outcome.PROTOCOL, "200000 bytes and more unread"),
        (silent, Outcome.TIMEOUT, "no answer"),
    ],
)
def test_servers_that_keep_to_nothing(
    run: Run, handler: Handler, outcome: Outcome, what: str
) -> None:
    async def go() -> None:
        async with serve(handler=handler) as server, user(max_response_bytes=200_000) as made:
            vu, scope, _ = made
            got = await vu.sse.next(server.url, "never", timeout=0.5)
            assert got.outcome is outcome, got.error
            assert re.search(what, got.error), got.error
            assert [result for result, _ in scope.failures] == [got]

    run(go())


@pytest.mark.parametrize(
    ("url", "event", "reason"),
    [("ftp://a.example/", None, "not a URL of sse"), ("http://127.0.0.1:1", 5, "event is 5")],
)
def test_what_the_author_got_wrong(run: Run, url: str, event: Any, reason: str) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match=reason):
                await vu.sse.next(url, event)

    run(go())
