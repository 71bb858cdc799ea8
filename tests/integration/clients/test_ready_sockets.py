"""What is read before a request is written, and what a closed connection leaves alone."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hyperscale.clients.io import readiness
from hyperscale.workload.results import Outcome

from .certificates import Authority
from .conftest import Run
from .scripted import Peer, client, pool, response, serve, until
from .test_http_counted import counted


class UnaskedServer:
    """On threads, so that it speaks while the event loop of the test does not turn."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests = 0
        self._lock = threading.Lock()
        self._peers: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                peer = self._listener.accept()[0]
                self._peers.append(peer)
                threading.Thread(target=self._talk, args=(peer,), daemon=True).start()

    def _talk(self, peer: socket.socket) -> None:
        with suppress(OSError):
            while peer.recv(65536):
                with self._lock:
                    self.requests += 1
                peer.sendall(response(b"asked"))

    def speak_unasked(self) -> None:
        for peer in self._peers:
            peer.sendall(response(b"stale"))

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for peer in self._peers:
            with suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
            peer.close()


@contextmanager
def unasked_server() -> Iterator[UnaskedServer]:
    server = UnaskedServer()
    try:
        yield server
    finally:
        server.close()


@pytest.mark.parametrize("users", [1, 60])
def test_bytes_that_came_before_a_request_do_not_answer_it(
    run_each_way: Run, monkeypatch: pytest.MonkeyPatch, users: int
) -> None:
    """Also when more connections have something to read than one turn reads."""
    monkeypatch.setattr(readiness, "BATCH", 8)

    async def go(server: UnaskedServer) -> None:
        async with pool() as made:
            scope = counted()
            vus = [made.client() for _ in range(users)]
            await asyncio.gather(*(vu.http.get(server.url) for vu in vus))
            server.speak_unasked()  # no turn of the loop between this and the calls
            if users == 1:
                answers = [await vus[0].http.get(server.url)]
            else:
                answers = await asyncio.gather(*(vu.http.get(server.url) for vu in vus))
            assert {one.content for one in answers} == {b"asked"}
            assert scope.requests == server.requests == 2 * users

    with unasked_server() as server:
        run_each_way(go(server))


def test_bytes_that_came_before_the_first_byte_of_a_request_do_not_answer_it(
    run_each_way: Run,
) -> None:
    """The socket is full of what a server has not read; so nothing of the request was written."""

    async def go() -> None:
        first: list[Peer] = []

        async def handler(peer: Peer) -> None:
            first.append(peer)
            await peer.request()
            await peer.send(response(b"asked"))
            if len(first) == 1:
                peer.writer.transport.pause_reading()
            await asyncio.Event().wait()

        async with serve(handler=handler) as server, pool() as made:
            vu = made.client()
            assert (await vu.http.get(server.url)).ok
            (connection,) = made._http.connections
            with suppress(BlockingIOError):
                while True:
                    connection.send(bytes(100_000))
            scope = counted()
            call = asyncio.create_task(vu.http.get(server.url))
            await until(lambda: connection.unsent is not None)
            await first[0].send(response(b"stale"))
            assert (await call).content == b"asked"
            assert scope.requests == 1

    run_each_way(go())


@pytest.mark.parametrize("sent", [b"", response(b"x" * 1000)[:500]])
def test_a_reset_is_heard_behind_half_an_answer(run_each_way: Run, sent: bytes) -> None:
    """Both are there before the loop looks, and some loops say it once."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve_one() -> None:
        peer = listener.accept()[0]
        peer.recv(65536)
        arrived.set()
        assert told.wait(10)
        peer.send(sent)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        ended.set()

    async def go() -> None:
        async with client() as vu:
            call = asyncio.create_task(
                vu.http.post(f"http://127.0.0.1:{listener.getsockname()[1]}")
            )
            await until(arrived.is_set)
            told.set()
            ended.wait(10)  # the loop stands still
            got = await call
            assert got.outcome is Outcome.RESET
            assert got.bytes_in == len(sent)

    arrived, told, ended = threading.Event(), threading.Event(), threading.Event()
    thread = threading.Thread(target=serve_one, daemon=True)
    thread.start()
    with listener:
        run_each_way(go())
        thread.join(10)


def test_answers_without_end_do_not_keep_requests_back(
    run_each_way: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "BATCH", 8)

    async def go() -> None:
        async def handler(peer: Peer) -> None:
            while request := await peer.request():
                if b" /endless" in request:
                    await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    while True:
                        await peer.send(b"10000\r\n%b\r\n" % bytes(0x10000))
                await peer.send(response())

        async with serve(handler=handler) as server, pool(timeout=60.0) as made:
            endless = [
                asyncio.create_task(
                    made.client().http.get(f"{server.url}/endless", discard_body=True)
                )
                for _ in range(16)
            ]
            vu = made.client()
            for _ in range(5):
                assert (await vu.http.get(server.url)).ok
            for task in endless:
                assert not task.done()
                task.cancel()
            await asyncio.wait(endless)

    run_each_way(go())


def test_a_closed_connection_touches_no_socket_that_has_its_number_now(
    run: Run, tmp_path: Path
) -> None:
    """OpenSSL knows its socket by number only, and numbers are given again."""
    authority = Authority(tmp_path)

    async def go() -> None:
        tls = authority.server(authority.issue("localhost"))
        async with serve(response(), tls=tls) as server, client(ca=authority.ca) as vu:
            assert (await vu.http.get(server.url)).ok
            (connection,) = vu.http._pool.connections
            number = connection._fd
            connection.close()
            made, far = socket.socketpair()
            near = made
            if made.fileno() != number:
                near = socket.socket(fileno=os.dup2(made.fileno(), number))
                made.close()
            with near, far:
                with pytest.raises(OSError, match="the connection is closed"):
                    connection.send(b"a request")
                far.send(b"for another")
                connection.readable()
                assert near.recv(100) == b"for another"
                near.shutdown(socket.SHUT_WR)
                assert far.recv(100) == b""

    run(go())
