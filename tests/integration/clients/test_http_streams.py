"""Bodies that are sent piece by piece, and bodies of answers that are not kept."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hyperscale.workload.results import Outcome

from .conftest import Run
from .scripted import Peer, client, pool, response, serve, until
from .test_http_counted import counted

MIB = 1024 * 1024


async def unchunked(peer: Peer) -> bytes:
    """The body of the next request, which comes in chunks."""
    await peer.reader.readuntil(b"\r\n\r\n")
    body = b""
    while size := int(await peer.reader.readline(), 16):
        body += await peer.reader.readexactly(size)
        await peer.reader.readline()
    await peer.reader.readline()
    return body


def test_bodies_of_generators_are_sent_in_chunks(run: Run) -> None:
    async def go() -> None:
        bodies = []

        async def handler(peer: Peer) -> None:
            for _ in range(3):
                bodies.append(await unchunked(peer))
                await peer.send(response())

        def pieces() -> Iterator[bytes]:
            yield from (b"a", b"", b"bc" * 40_000)

        async def later() -> AsyncIterator[bytes]:
            for piece in pieces():
                await asyncio.sleep(0.01)
                yield piece

        async with serve(handler=handler) as server, client() as vu:
            for data in (pieces(), later(), iter([b"x", b"y"])):
                got = await vu.http.post(server.url, data=data)
                assert got.ok
                assert got.bytes_out > len(bodies[-1])
            assert bodies == [b"a" + b"bc" * 40_000] * 2 + [b"xy"]
            assert server.connections == 1

    run(go())


def test_a_long_file_is_sent_to_a_server_that_reads_slowly(run: Run, tmp_path: Path) -> None:
    async def go() -> None:
        content = bytes(range(256)) * (20 * MIB // 256)
        (tmp_path / "long").write_bytes(content)
        read = bytearray()

        async def handler(peer: Peer) -> None:
            await peer.reader.readuntil(b"\r\n\r\n")
            while len(read) < len(content):
                read.extend(await peer.reader.read(300_000))
                await asyncio.sleep(0)
            await peer.send(response())

        async with serve(handler=handler) as server, client() as vu:
            with (tmp_path / "long").open("rb") as opened:
                got = await vu.http.put(server.url, data=opened)
            assert (got.ok, got.bytes_out) == (True, len(got.request_bytes) + len(content))
            assert read == content
            assert got.timings["write"] > 0

    run(go())


@pytest.mark.parametrize("error", [ValueError, OSError])
def test_what_the_authors_generator_raises_comes_out_of_the_call(
    run: Run, error: type[Exception]
) -> None:
    async def go() -> None:
        async def broken() -> AsyncIterator[bytes]:
            yield b"a"
            raise error("no more")

        async def handler(peer: Peer) -> None:
            await peer.gone()

        async with serve(handler=handler) as server, pool() as made:
            scope = counted()
            with pytest.raises(error, match="no more"):
                await made.client().http.post(server.url, data=broken())
            assert scope.requests == 1
            assert not made._http.connections

    run(go())


def test_calls_of_a_generator_count_for_the_step_that_sends_it(run: Run) -> None:
    async def go() -> None:
        async def handler(peer: Peer) -> None:
            while request := await peer.request():
                if request.startswith(b"POST"):
                    assert await peer.reader.readuntil(b"0\r\n\r\n")
                await peer.send(response())

        async with serve(handler=handler) as server, pool() as made:
            scope = counted()
            inner, outer = made.client().http, made.client().http

            async def fetched() -> AsyncIterator[bytes]:
                yield (await inner.get(server.url)).content

            assert (await outer.post(server.url, data=fetched())).ok
            assert scope.requests == 2

    run(go())


@pytest.mark.parametrize("streamed", [True, False])
def test_an_early_answer_ends_the_upload_and_leaves_nothing_behind(
    run: Run, streamed: bool
) -> None:
    async def go() -> None:
        async def handler(peer: Peer) -> None:
            await peer.reader.readuntil(b"\r\n\r\n")
            await peer.send(response(b"", "413 Payload Too Large"))
            await asyncio.sleep(30)  # and reads no further

        async def endless() -> AsyncIterator[bytes]:
            while True:
                yield bytes(MIB)

        async with serve(handler=handler) as server, pool() as made:
            vu = made.client()
            for _ in range(10):
                data = endless() if streamed else bytes(10 * MIB)
                got = await vu.http.post(server.url, data=data)
                assert got.status == 413
                assert got.bytes_out < 10 * MIB
            assert server.connections == 10
            assert not made._http.connections

    run(go())


def test_a_request_that_is_never_taken_says_so(run: Run) -> None:
    async def go() -> None:
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            async with client(timeout=0.3) as vu:
                url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
                got = await vu.http.post(url, data=bytes(20 * MIB))
            assert got.outcome is Outcome.TIMEOUT
            assert "had not taken the whole request after 0." in got.error
            assert 0 < got.bytes_out < 20 * MIB

    run(go())


def test_read_timeout_waits_while_an_upload_moves(run: Run) -> None:
    async def go() -> None:
        async def handler(peer: Peer) -> None:
            head = await peer.reader.readuntil(b"\r\n\r\n")
            left = int(head.lower().partition(b"content-length: ")[2].split()[0])
            while left:
                left -= len(await peer.reader.read(MIB))
                await asyncio.sleep(0.01)
            await peer.send(response())

        async with serve(handler=handler) as server, client(read_timeout=1.0) as vu:
            assert (await vu.http.post(server.url, data=bytes(12 * MIB))).ok

    run(go())


def test_bodies_are_discarded_or_given_to_a_function(run: Run) -> None:
    async def go() -> None:
        body = bytes(3 * MIB)
        async with serve(response(body)) as server, client() as vu:
            taken: list[bytes] = []
            got = await vu.http.get(server.url, sink=taken.append)
            assert (got.ok, got.content, b"".join(taken)) == (True, b"", body)
            got = await vu.http.get(server.url, discard_body=True)
            assert (got.content, got.bytes_in > len(body)) == (b"", True)
            assert (await vu.http.get(server.url)).content == body
            assert server.connections == 1
        async with serve(response()) as server, client(discard_bodies=True) as vu:
            for _ in range(3):
                assert (await vu.http.get(server.url)).content == b""
            assert (await vu.http.get(server.url, discard_body=False)).content == b"hello"
            assert (await vu.http.get(server.url)).content == b""

    run(go())


def test_what_a_sink_raises_comes_out_of_the_call(run: Run) -> None:
    async def go() -> None:
        def refuse(piece: bytes) -> None:
            raise ValueError("not this")

        async with serve(response()) as server, pool() as made:
            scope = counted()
            with pytest.raises(ValueError, match="not this"):
                await made.client().http.get(server.url, sink=refuse)
            assert scope.requests == 1
            assert not made._http.connections

    run(go())


def test_trailers(run: Run) -> None:
    async def go() -> None:
        answer = (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nDigest: x\r\n\r\n"
        )
        async with serve(answer) as server, client() as vu:
            got = await vu.http.get(server.url)
            assert (got.content, got.trailers["digest"]) == (b"a", "x")

    run(go())


def test_a_redirect_of_a_body_that_is_gone_is_the_answer(run: Run) -> None:
    async def go() -> None:
        async def handler(peer: Peer) -> None:
            await unchunked(peer)
            await peer.send(response(b"", "307 Temporary Redirect", "Location: /there"))
            await peer.gone()

        async with serve(handler=handler) as server, client() as vu:
            got = await vu.http.post(server.url, data=iter([b"once"]))
            assert (got.status, server.connections) == (307, 1)

    run(go())


def test_a_stopped_run_ends_uploads(run: Run) -> None:
    async def go() -> None:
        async def handler(peer: Peer) -> None:
            await peer.gone()

        ended = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"x"
                    await asyncio.sleep(0.01)
            finally:
                ended.set()

        async with serve(handler=handler) as server, pool() as made:
            call = asyncio.ensure_future(made.client().http.post(server.url, data=endless()))
            await until(lambda: server.connections == 1)
            made.cancel_all()
            assert (await call).outcome is Outcome.CANCELLED
            await ended.wait()

    run(go())
