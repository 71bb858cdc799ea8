"""Whose connection a call uses, and where it leads: sharing, addresses, sockets, proxies."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from hyperscale.clients.net import names
from hyperscale.errors import BadInput
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.results import Outcome

from .conftest import Run
from .scripted import client, pool, response, serve, until


def test_one_connection_per_virtual_user_and_one_more_for_parallel_steps(run: Run) -> None:
    async def go() -> None:
        async with serve(response()) as server, pool() as made:
            users = [made.client() for _ in range(5)]
            for _ in range(3):
                await asyncio.gather(*(vu.http.get(server.url) for vu in users))
            assert server.connections == 5
            await asyncio.gather(*(users[0].http.get(server.url) for _ in range(3)))
            assert server.connections == 7
            users[0].close()
            await until(lambda: len(made._http.connections) == 4)

    run(go())


def test_two_origins_keep_a_connection_each(run: Run) -> None:
    async def go() -> None:
        async with serve(response()) as one, serve(response()) as other, client() as vu:
            for _ in range(3):
                assert (await vu.http.get(one.url)).ok
                assert (await vu.http.get(other.url)).ok
            assert (one.connections, other.connections) == (1, 1)

    run(go())


def test_fresh_connections(run: Run) -> None:
    async def go() -> None:
        async with serve(response()) as server, pool(connections="fresh") as made:
            vu = made.client()
            for _ in range(4):
                got = await vu.http.get(server.url)
                assert got.ok
                assert got.connect is not None
            assert server.connections == 4
            assert b"\r\nConnection: close\r\n" in server.requests[0]
            await until(lambda: not made._http.connections)

    run(go())


def test_shared_pool_serves_in_order_and_never_opens_more(run: Run) -> None:
    async def go() -> None:
        gate = asyncio.Event()
        order: list[bytes] = []

        async def handler(peer):
            while request := await peer.request():
                order.append(request.split(b" ")[1])
                await gate.wait()
                await peer.send(response())

        options = {"connections": "shared", "max_connections": 2}
        async with serve(handler=handler) as server, pool(**options) as made:
            calls = []
            for number in range(8):
                calls.append(
                    asyncio.ensure_future(made.client().http.get(f"{server.url}/{number}"))
                )
                await asyncio.sleep(0)
            await until(lambda: len(order) == 2)
            gate.set()
            assert all(got.ok for got in await asyncio.gather(*calls))
            assert server.connections == 2
            assert sorted(order[2:]) == sorted(b"/%d" % number for number in range(2, 8))
            assert set(order[:2]) == {b"/0", b"/1"}

    run(go())


def test_shared_pool_makes_room_for_another_origin(run: Run) -> None:
    async def go() -> None:
        options = {"connections": "shared", "max_connections": 1}
        async with serve(response()) as one, serve(response()) as other, pool(**options) as made:
            for _ in range(3):
                assert (await made.client().http.get(one.url)).ok
                assert (await made.client().http.get(other.url)).ok

    run(go())


def test_shared_pool_survives_lost_connections_cancelled_waiters_and_timeouts(run: Run) -> None:
    async def go() -> None:
        async def handler(peer):
            request = await peer.request()
            if b"/stall" in request:
                await peer.gone()
            elif b"/close" not in request:
                await peer.send(response())

        options = {"connections": "shared", "max_connections": 1}
        async with serve(handler=handler) as server, pool(**options) as made:
            stalled = asyncio.ensure_future(made.client().http.get(f"{server.url}/stall"))
            await until(lambda: server.connections == 1)
            waiting = asyncio.ensure_future(made.client().http.get(server.url))
            late = asyncio.ensure_future(made.client().http.get(server.url, timeout=0.05))
            closing = asyncio.ensure_future(made.client().http.get(f"{server.url}/close"))
            last = asyncio.ensure_future(made.client().http.get(server.url))
            got = await late
            assert got.outcome is Outcome.TIMEOUT
            assert "became free in the shared pool" in got.error
            waiting.cancel()
            stalled.cancel()
            assert (await closing).outcome is Outcome.RESET
            assert (await last).ok

    run(go())


def test_shared_pool_connection_failures_pass_the_turn_on(run: Run) -> None:
    async def go() -> None:
        options = {"connections": "shared", "max_connections": 1}
        async with pool(**options) as made:
            calls = (made.client().http.get("http://127.0.0.1:9/") for _ in range(10))
            got = await asyncio.gather(*calls)
            assert {one.outcome for one in got} == {Outcome.REFUSED}

    run(go())


def test_all_addresses_are_used_in_rotation(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        seen: list[str] = []
        lookups: list[str] = []

        async def look_up(self: object, host: str) -> tuple[str, ...]:
            lookups.append(host)
            return ("127.0.0.1", "127.0.0.2", "127.0.0.3")

        async def handler(peer):
            seen.append(peer.writer.get_extra_info("sockname")[0])
            while await peer.request():
                await peer.send(response())

        monkeypatch.setattr(names.Resolver, "_look_up", look_up)
        async with serve(handler=handler, host="0.0.0.0") as server, pool() as made:
            url = f"http://many.test:{server.port}/"
            calls = (made.client().http.get(url) for _ in range(9))
            assert all(got.ok for got in await asyncio.gather(*calls))
            assert sorted(seen) == sorted(["127.0.0.1", "127.0.0.2", "127.0.0.3"] * 3)
            assert lookups == ["many.test"]

    run(go())


def test_an_address_that_refuses_is_passed_over(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        async def look_up(self: object, host: str) -> tuple[str, ...]:
            return ("127.0.0.9", "127.0.0.1")

        monkeypatch.setattr(names.Resolver, "_look_up", look_up)
        async with serve(response()) as server, pool() as made:
            for _ in range(4):
                assert (await made.client().http.get(f"http://two.test:{server.port}/")).ok

    run(go())


def test_ipv6(run: Run) -> None:
    async def go() -> None:
        async with serve(response(), host="::1") as server, client(ip="6") as vu:
            got = await vu.http.get(server.url)
            assert got.ok, got.error
            assert f"\r\nHost: [::1]:{server.port}\r\n".encode() in server.requests[0]

    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 on this machine")
    run(go())


def test_unix_socket(run: Run, tmp_path: Path) -> None:
    async def go() -> None:
        path = str(tmp_path / "s")
        async with serve(response(), unix=path) as server, client(unix_socket=path) as vu:
            for _ in range(2):
                assert (await vu.http.get("http://any.host/x")).ok
            assert b"\r\nHost: any.host\r\n" in server.requests[0]
        async with client(unix_socket=path + "missing") as vu:
            got = await vu.http.get("http://any.host/x")
            assert got.outcome is Outcome.REFUSED
            assert path in got.error

    run(go())


def test_plain_requests_through_a_proxy(run: Run) -> None:
    async def go() -> None:
        async with serve(response()) as proxy:
            address = proxy.url.replace("//", "//user:pw@")
            async with client(proxy=address) as vu:
                assert (await vu.http.get("http://far.test/x?y=1")).ok
            sent = proxy.requests[0]
            assert sent.startswith(b"GET http://far.test/x?y=1 HTTP/1.1\r\nHost: far.test\r\n")
            assert b"\r\nProxy-Authorization: Basic dXNlcjpwdw==\r\n" in sent

    run(go())


def test_proxy_of_the_environment_and_its_exceptions(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        async with serve(response()) as proxy, serve(response()) as server:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            monkeypatch.setenv("NO_PROXY", "direct.invalid")
            async with client() as vu:
                assert (await vu.http.get("http://far.test/")).ok
                assert (await vu.http.get(server.url)).ok
                assert len(proxy.requests) == len(server.requests) == 1
                got = await vu.http.get("http://direct.invalid/")
                assert got.outcome is Outcome.DNS
            async with client(proxy="") as vu:
                assert (await vu.http.get("http://far.invalid/")).outcome is Outcome.DNS

    run(go())


def test_a_proxy_that_is_not_there(run: Run) -> None:
    async def go() -> None:
        async with client(proxy="http://127.0.0.1:9") as vu:
            got = await vu.http.get("http://far.test/")
            assert got.error == "connection to proxy 127.0.0.1:9 was refused"
        async with client(proxy="socks5h://127.0.0.1:9") as vu:
            got = await vu.http.get("http://far.test/")
            assert got.error == "connection to proxy 127.0.0.1:9 was refused"
        with pytest.raises(BadInput, match="ftp://"):
            HTTPOptions(proxy="ftp://127.0.0.1:9")

    run(go())
