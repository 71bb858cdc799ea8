"""Nobody is kept waiting by another user's calls: counts of what went on, no times."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hyperscale.workload.results import Outcome

from .conftest import Run
from .scripted import pool, response

MB = 1_000_000
LONG_BYTES = 200 * MB


class Ticks:
    """How often a short sleep ended, while something else went on."""

    def __init__(self) -> None:
        self.count = 0

    async def __aenter__(self) -> Ticks:
        self._task = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.01)
            self.count += 1


def test_a_tight_loop_of_calls_leaves_room_for_timers_and_other_users(
    run_each_way: Run, target: str
) -> None:
    async def go() -> None:
        calls = [0] * 50
        async with pool() as made, Ticks() as ticks:

            async def user(number: int) -> None:
                vu = made.client()
                while ticks.count < 10:
                    assert (await vu.http.get(target)).ok
                    calls[number] += 1

            await asyncio.gather(*map(user, range(len(calls))))
            assert ticks.count >= 10
            assert min(calls) * 4 > max(calls), calls

    run_each_way(go())


def test_a_single_user_that_never_waits_leaves_room_for_timers(
    run_each_way: Run, target: str
) -> None:
    async def go() -> None:
        async with pool() as made, Ticks() as ticks:
            vu = made.client()
            calls = 0
            while ticks.count < 10:
                assert (await vu.http.get(target)).ok
                calls += 1
            assert calls > 10

    run_each_way(go())


FAIL_AT_ONCE: dict[str, tuple[dict[str, Any], Outcome]] = {
    "no such Unix socket": ({"unix_socket": "/nonexistent/socket"}, Outcome.REFUSED),
    "no such local address": ({"local_addresses": ["192.0.2.1"]}, Outcome.REFUSED),
    "nobody listens": ({}, Outcome.REFUSED),
    "the run was stopped": ({}, Outcome.CANCELLED),
}


@pytest.mark.parametrize("case", list(FAIL_AT_ONCE))
def test_calls_that_fail_at_once_leave_room_for_others(run_each_way: Run, case: str) -> None:
    options, outcome = FAIL_AT_ONCE[case]

    async def go() -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with pool(**options) as made:
            if outcome is Outcome.CANCELLED:
                made.cancel_all()
            task = asyncio.create_task(other())
            await asyncio.sleep(0)
            before = turns
            vu = made.client()
            for _ in range(20):
                assert (await vu.http.get("http://127.0.0.1:9/")).outcome is outcome
            assert turns - before >= 20
            task.cancel()

    run_each_way(go())


@contextmanager
def long_body_server(ended: threading.Event) -> Iterator[str]:
    """One long download or upload, on a thread of its own; it goes on until `ended`."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        peer = listener.accept()[0]
        peer.settimeout(30)
        with peer:
            head = peer.recv(65536)
            if head.startswith(b"GET"):
                peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                piece, sent = b"%x\r\n%b\r\n" % (MB, b"x" * MB), 0
                while sent < LONG_BYTES or not ended.is_set():
                    peer.sendall(piece)
                    sent += MB
                peer.sendall(b"0\r\n\r\n")
            else:
                last, buffer = b"", bytearray(MB)
                while last != b"\r\n0\r\n\r\n":
                    count = peer.recv_into(buffer)
                    last = (last + buffer[max(0, count - 7) : count])[-7:]
                peer.sendall(response())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        thread.join(30)


@pytest.mark.parametrize("way", ["download", "upload"])
def test_500_users_go_on_beside_a_long_body(run_each_way: Run, target: str, way: str) -> None:
    """It goes on until each of them has made its calls, and is 200 MB at least."""

    async def go(url: str) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            sent = 0
            while sent < LONG_BYTES or not ended.is_set():
                yield b"x" * MB
                sent += MB

        async def user() -> None:
            vu = made.client()
            for _ in range(5):
                assert (await vu.http.get(target)).ok
            assert not long.done()

        async with pool(timeout=60.0) as made:
            vu = made.client()
            if way == "download":
                long = asyncio.create_task(vu.http.get(url, discard_body=True))
            else:
                long = asyncio.create_task(vu.http.post(url, data=pieces()))
            await asyncio.gather(*(user() for _ in range(500)))
            ended.set()
            got = await long
            assert got.ok, got.error
            assert max(got.bytes_in, got.bytes_out) >= LONG_BYTES

    ended = threading.Event()
    with long_body_server(ended) as url:
        run_each_way(go(url))
