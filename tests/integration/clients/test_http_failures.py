"""Calls that go wrong: each ends in a typed outcome and a sentence, never in an exception."""

from __future__ import annotations

import asyncio
import resource
import socket
import threading
import time
from time import perf_counter

import pytest

from hyperscale.workload.results import CallFailed, Outcome

from .conftest import Run
from .scripted import Peer, client, pool, response, serve, until


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_refused(run: Run) -> None:
    async def go() -> None:
        port = free_port()
        async with client() as vu:
            got = await vu.http.get(f"http://127.0.0.1:{port}/")
            assert (got.outcome, got.status) == (Outcome.REFUSED, 0)
            assert got.error == f"connection to 127.0.0.1:{port} was refused"
            with pytest.raises(CallFailed) as raised:
                got.json()
            assert raised.value.outcome is Outcome.REFUSED
            assert got.headers == {}

    run(go())


def test_unresolvable_host(run: Run) -> None:
    async def go() -> None:
        async with client() as vu:
            got = await vu.http.get("http://no-such-host.invalid/")
            assert got.outcome is Outcome.DNS
            assert "no-such-host.invalid cannot be resolved" in got.error

    run(go())


@pytest.mark.parametrize(
    ("answer", "outcome", "sentence"),
    [
        (b"", Outcome.RESET, "closed the connection without answering"),
        (b"HTTP/1.1 200 OK\r\nConte", Outcome.RESET, "before its response was complete"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", Outcome.RESET, "after 3 of 9 bytes"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
            Outcome.RESET,
            "in the middle of a chunked body",
        ),
        (b"SSH-2.0-OpenSSH_9\r\n", Outcome.PROTOCOL, "not HTTP: b'SSH-2.0"),
        (b"HTTP/1.1 OK\r\n\r\n", Outcome.PROTOCOL, "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n", Outcome.PROTOCOL, "a malformed header"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Outcome.PROTOCOL, "senseless"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            Outcome.PROTOCOL,
            "two different",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            Outcome.PROTOCOL,
            "senseless chunk size",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
            Outcome.PROTOCOL,
            "longer than it said",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: zip\r\n\r\n", Outcome.PROTOCOL, "unsupported"),
        (b"\x15\x03\x01\x00\x02\x02\x16", Outcome.PROTOCOL, "did you mean https"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", Outcome.PROTOCOL, "more than 1000"),
        (
            b"HTTP/1.1 200 OK\r\n\r\n" + bytes(2000),
            Outcome.PROTOCOL,
            "more than 1000",
        ),
    ],
)
def test_bad_answers(run: Run, answer: bytes, outcome: Outcome, sentence: str) -> None:
    async def go() -> None:
        async def handler(peer):
            await peer.request()
            await peer.send(answer)
            if outcome is not Outcome.RESET:
                await peer.gone()

        async with serve(handler=handler) as server, client(max_response_bytes=1000) as vu:
            for _ in range(2):
                got = await vu.http.get(server.url)
                assert got.outcome is outcome
                assert f"127.0.0.1:{server.port} " in got.error
                assert sentence in got.error
                assert got.bytes_in == len(answer)

    run(go())


def test_endless_header(run: Run) -> None:
    async def go() -> None:
        async def handler(peer):
            await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\n")
            while True:
                await peer.send(b"X-More: " + b"a" * 1000 + b"\r\n")

        async with serve(handler=handler) as server, client() as vu:
            got = await vu.http.get(server.url)
            assert got.outcome is Outcome.PROTOCOL
            assert "a header of more than 64 KiB" in got.error

    run(go())


def test_endless_interim_answers(run: Run) -> None:
    async def go() -> None:
        async def handler(peer):
            await peer.request()
            while True:
                await peer.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 50)

        async with serve(handler=handler) as server, client() as vu:
            got = await vu.http.get(server.url)
            assert got.outcome is Outcome.PROTOCOL
            assert "no final response" in got.error

    run(go())


def test_reset_in_the_body(run: Run) -> None:
    async def go() -> None:
        async def handler(peer):
            await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\n\r\nhalf")
            await peer.reader.read(1)
            peer.reset()

        async with serve(handler=handler) as server, pool(read_timeout=0.1) as made:
            got = await made.client().http.get(server.url)
            assert got.outcome is Outcome.TIMEOUT
            assert "was silent for 0.1 s (read_timeout)" in got.error

    run(go())


def test_extra_bytes_end_the_connection_not_the_call(run: Run) -> None:
    async def go() -> None:
        async with serve(response() + b"HTTP/1.1 200 OK\r\n") as server, client() as vu:
            for _ in range(3):
                got = await vu.http.get(server.url)
                assert (got.outcome, got.content) == (Outcome.OK, b"hello")
            assert server.connections == 3

    run(go())


async def reading_one_more(peer: Peer) -> None:
    await peer.request()
    await peer.send(response())
    await peer.request()  # read it, and go without a word


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_kept_connection_that_the_server_closed_is_replaced(run: Run, method: str) -> None:
    async def go() -> None:
        async with serve(handler=reading_one_more) as server, client() as vu:
            for _ in range(4):
                assert (await vu.http.request(method, server.url)).ok
            assert server.connections == 4

    run(go())


@pytest.mark.parametrize("method", ["POST", "PATCH", "LOCK"])
def test_what_may_not_happen_twice_is_not_sent_twice(run: Run, method: str) -> None:
    async def go() -> None:
        seen: list[bytes] = []

        async def handler(peer: Peer) -> None:
            seen.append(await peer.request())
            await peer.send(response())
            seen.append(await peer.request())

        async with serve(handler=handler) as server, client() as vu:
            assert (await vu.http.request(method, server.url)).ok
            second = await vu.http.request(method, server.url)
            assert (second.outcome, second.bytes_out > 0) == (Outcome.RESET, True)
            assert (await vu.http.request(method, server.url)).ok
            await until(lambda: len(seen) == 3)

    run(go())


def test_a_request_that_was_never_written_is_sent_whatever_its_method(run: Run) -> None:
    """The server spoke, or went, before it was asked: the next request goes elsewhere."""

    async def go() -> None:
        async def handler(peer: Peer) -> None:
            while await peer.request():
                await peer.send(response() + b"HTTP/1.1 408 Request Timeout\r\n\r\n")

        async with serve(handler=handler) as server, client() as vu:
            for _ in range(4):
                got = await vu.http.post(server.url)
                assert (got.status, got.content) == (200, b"hello")
            assert server.connections == 4

    run(go())


def test_a_new_connection_closed_without_answer_is_not_tried_again(run: Run) -> None:
    async def go() -> None:
        async with serve(lambda _: None) as server, client() as vu:
            assert (await vu.http.get(server.url)).outcome is Outcome.RESET
            assert server.connections == 1

    run(go())


def test_idle_connection_closed_by_the_server_is_dropped(run: Run) -> None:
    async def go() -> None:
        async def handler(peer):
            await peer.request()
            await peer.send(response())

        async with serve(handler=handler) as server, client() as vu:
            assert (await vu.http.get(server.url)).ok
            await until(lambda: not vu.http._idle)
            assert (await vu.http.get(server.url)).connect is not None

    run(go())


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [(b"", "no response from 127.0.0.1"), (b"HTTP/1.1 200 OK\r\n\r\nx", "was not complete after")],
)
def test_total_timeout(run: Run, sent: bytes, sentence: str) -> None:
    async def go() -> None:
        async def handler(peer):
            await peer.request()
            await peer.send(sent)
            await peer.gone()

        async with serve(handler=handler) as server, client(timeout=60) as vu:
            got = await vu.http.get(server.url, timeout=0.05)
            assert got.outcome is Outcome.TIMEOUT
            assert sentence in got.error
            assert got.ended - got.started >= 0.04
            assert not vu.http._idle

    run(go())


def test_a_trickling_server_cannot_outlive_the_total_timeout(run: Run) -> None:
    async def go() -> None:
        async def handler(peer):
            await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                await peer.send(b".")
                await asyncio.sleep(0.01)

        async with serve(handler=handler) as server, client(timeout=0.2, read_timeout=0.1) as vu:
            got = await vu.http.get(server.url)
            assert got.outcome is Outcome.TIMEOUT
            assert "was not complete after" in got.error

    run(go())


def test_connect_timeout(run: Run) -> None:
    async def go() -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            port = full.getsockname()[1]
            fillers = []
            for _ in range(4):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
                fillers.append(filler)
            async with client(connect_timeout=0.1) as vu:
                got = await vu.http.get(f"http://127.0.0.1:{port}/")
                assert got.outcome is Outcome.TIMEOUT
                assert f"connecting to 127.0.0.1:{port} took longer than 0.1 s" in got.error
            for filler in fillers:
                filler.close()

    run(go())


def test_the_engine_may_sweep_too(run: Run) -> None:
    async def go() -> None:
        async def handler(peer):
            await peer.gone()

        async with serve(handler=handler) as server, pool(timeout=50) as made:
            call = asyncio.ensure_future(made.client().http.get(server.url))
            await until(lambda: server.connections == 1)
            await asyncio.sleep(0)
            made.sweep(perf_counter() + 49)
            await asyncio.sleep(0)
            assert not call.done()
            made.sweep(perf_counter() + 51)
            assert (await call).outcome is Outcome.TIMEOUT

    run(go())


def test_cancelled_task_never_leaves_a_half_read_connection(run: Run) -> None:
    async def go() -> None:
        async def handler(peer):
            while await peer.request():
                await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")

        async with serve(handler=handler) as server, client() as vu:
            call = asyncio.ensure_future(vu.http.get(server.url))
            await until(lambda: server.connections == 1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert not vu.http._idle

        async with serve(response()) as server, client() as vu:
            assert (await vu.http.get(server.url)).ok
            call = asyncio.ensure_future(vu.http.get(server.url))
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert not vu.http._idle
            assert (await vu.http.get(server.url)).ok

    run(go())


def test_hard_stop_ends_calls_connects_and_queues(run: Run) -> None:
    async def go() -> None:
        async def handler(peer):
            await peer.gone()

        async with (
            serve(handler=handler) as server,
            pool() as each,
            pool(connections="shared", max_connections=1) as shared,
        ):
            calls = [
                asyncio.ensure_future(made.client().http.get(server.url))
                for made in (each, shared, shared)
            ]
            await until(lambda: server.connections == 2)
            calls.append(asyncio.ensure_future(each.client().http.get(server.url)))
            await asyncio.sleep(0)
            for made in (each, shared):
                made.cancel_all()
            outcomes = {(await call).outcome for call in calls}
            assert outcomes == {Outcome.CANCELLED}
            assert (await each.client().http.get(server.url)).outcome is Outcome.CANCELLED

    run(go())


def test_open_file_limit(run: Run) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def go() -> None:
        async with serve(response()) as server, pool() as made:
            await made.client().http.get(server.url)
            used = socket.socket()
            resource.setrlimit(resource.RLIMIT_NOFILE, (used.fileno() + 2, hard))
            used.close()
            try:
                got = [await made.client().http.get(server.url) for _ in range(6)]
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert got[-1].outcome is Outcome.REFUSED
            assert "the open-file limit is" in got[-1].error
            assert "ulimit -n" in got[-1].error

    run(go())


def test_a_call_whose_time_is_over_when_its_turn_comes_is_not_sent(run_each_way: Run) -> None:
    async def go() -> None:
        options = {"connections": "shared", "max_connections": 1}
        async with serve(response()) as server, pool(**options) as made:

            async def first() -> None:
                assert (await made.client().http.get(f"{server.url}/first")).ok
                time.sleep(0.3)  # noqa: ASYNC251 - the second one has got the connection by now

            one = asyncio.create_task(first())
            await asyncio.sleep(0)
            late = await made.client().http.get(f"{server.url}/second", timeout=0.2)
            await one
            assert late.outcome is Outcome.TIMEOUT
            assert late.error.endswith(f"before 127.0.0.1:{server.port} could be asked")
            assert late.bytes_out == 0
            assert (await made.client().http.get(f"{server.url}/third")).ok
            assert [one.split()[1] for one in server.requests] == [b"/first", b"/third"]
            assert server.connections == 1

    run_each_way(go())


def test_an_answer_that_waits_for_a_late_loop_is_taken(run_each_way: Run) -> None:
    asked = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def talk() -> None:
        with listener, listener.accept()[0] as peer:
            while peer.recv(65536):
                peer.sendall(response())
                asked.set()

    async def go() -> None:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        threading.Thread(target=talk, daemon=True).start()
        async with client() as vu:
            assert (await vu.http.get(url)).ok
            asked.clear()
            call = asyncio.create_task(vu.http.get(url, timeout=0.05))
            for _ in range(3):  # until it is written
                await asyncio.sleep(0)
            assert asked.wait(10)  # the loop stands while it is answered
            time.sleep(0.1)  # noqa: ASYNC251
            vu.http._pool.sweep(perf_counter())  # whose timer may come before the sockets
            assert (await call).ok

    run_each_way(go())
