"""The page of a node under slow readers and foreign names."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from hyperscale.runtime import page_server
from hyperscale.runtime.host import Address
from hyperscale.runtime.page_server import Health, PageServer
from hyperscale.runtime.real import RealHost, run

ANY = Address("127.0.0.1", 0)


@asynccontextmanager
async def page(folder: Path) -> AsyncIterator[tuple[RealHost, Address]]:
    async with RealHost("host", folder) as host:
        big = "x" * 20_000_000
        made = PageServer(
            host,
            lambda: b"one 1\n",
            {"/debug/jobs": lambda: ["job"], "/debug/big": lambda: big},
            {"/health/live": lambda: Health(ok=True)},
        )
        yield host, await made.start(ANY)
        made.close()


async def ask(host: RealHost, address: Address, path: str, name: str = "127.0.0.1") -> bytes:
    stream = await host.network.connect(address)
    stream.write(f"GET {path} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
    answer = await stream.read(100_000)
    stream.close()
    return answer.partition(b"\r\n")[0]


async def slow(stack: ExitStack, address: Address, count: int, said: bytes) -> list[socket.socket]:
    loop = asyncio.get_running_loop()
    made = []
    for _ in range(count):
        one = stack.enter_context(socket.socket())
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.setblocking(False)
        await loop.sock_connect(one, address)
        await loop.sock_sendall(one, said)
        made.append(one)
    return made


def test_health_is_answered_among_slow_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server, "HEAD_TIMEOUT_S", 60.0)

    async def main() -> None:
        with ExitStack() as stack:
            async with page(tmp_path) as (host, address):
                await slow(stack, address, 200, b"GET")
                for _ in range(20):
                    assert await ask(host, address, "/health/live") == b"HTTP/1.1 200 OK"
                assert await ask(host, address, "/metrics") == b"HTTP/1.1 200 OK"

    run(main())


def test_whoever_does_not_say_what_it_wants_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server, "HEAD_TIMEOUT_S", 0.05)

    async def main() -> None:
        async with page(tmp_path) as (host, address):
            stream = await host.network.connect(address)
            stream.write(b"GET")
            async with asyncio.timeout(3.0):
                assert await stream.read(10) == b""

    run(main())


def test_health_is_answered_while_answers_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server, "ANSWER_TIMEOUT_S", 60.0)

    async def main() -> None:
        head = b"GET /debug/big HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with ExitStack() as stack:
            async with page(tmp_path) as (host, address):
                await slow(stack, address, 16, head)
                assert await ask(host, address, "/health/live") == b"HTTP/1.1 200 OK"
                async with asyncio.timeout(10.0):
                    while not (await ask(host, address, "/metrics")).endswith(b"Unavailable"):
                        pass
                assert await ask(host, address, "/health/live") == b"HTTP/1.1 200 OK"

    run(main())


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("localhost:9100", b"200 OK"),
        ("127.0.0.1:9100", b"200 OK"),
        ("[::1]:9100", b"200 OK"),
        ("evil.example", b"403 Forbidden"),
        ("localhost.evil.example", b"403 Forbidden"),
        ("[", b"403 Forbidden"),
        ("", b"403 Forbidden"),
    ],
)
def test_debug_pages_are_for_those_who_name_this_machine(
    tmp_path: Path, name: str, status: bytes
) -> None:
    async def main() -> None:
        async with page(tmp_path) as (host, address):
            assert await ask(host, address, "/debug/jobs", name) == b"HTTP/1.1 " + status
            assert await ask(host, address, "/health/live", name) == b"HTTP/1.1 200 OK"

    run(main())
