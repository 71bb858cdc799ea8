"""TCP: how much is received, conversations, TLS, and servers that do not keep to anything."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.results import Outcome

from .certificates import Authority
from .conftest import Run
from .scripted import Peer, client, serve


def test_how_much_is_received(run_each_way: Run) -> None:
    async def handler(peer: Peer) -> None:
        await peer.reader.readexactly(2)
        for piece in (b"ab", b"c\r", b"\nde", b"fgh 42 ms", b"; rest"):
            await peer.send(piece)
            await asyncio.sleep(0.005)
        await peer.gone()

    async def go() -> None:
        async with serve(handler=handler) as server, client() as vu:
            where = f"tcp://127.0.0.1:{server.port}"
            tcp = vu.tcp
            assert (await tcp.request(where, b"go", until="\r\n")).data == b"abc\r\n"
            assert (await tcp.receive(where, until=3)).data == b"def"
            timed = await tcp.receive(where, until=re.compile(rb"\d+ ms"))
            assert timed.data == b"gh 42 ms"
            assert (await tcp.receive(where)).data == b"; rest"
            tcp.disconnect(where)
            tcp.disconnect(where)
            assert server.connections == 1

    run_each_way(go())


def test_connect_and_send_are_calls_of_their_own(run_each_way: Run) -> None:
    heard = bytearray()

    async def handler(peer: Peer) -> None:
        while data := await peer.reader.read(100_000):
            heard.extend(data)
            if heard.endswith(b"!"):
                await peer.send(b"%d" % len(heard))

    async def go() -> None:
        async with serve(handler=handler) as server, client() as vu:
            where = f"127.0.0.1:{server.port}"
            opened = await vu.tcp.connect(where)
            assert (opened.ok, opened.bytes_out) == (True, 0)
            assert opened.connect is not None
            big = bytes(4 * 1024 * 1024)
            sent = await vu.tcp.send(where, big)
            assert (sent.ok, sent.bytes_out, sent.connect) == (True, len(big), None)
            asked = await vu.tcp.request(where, "!")
            assert asked.data == str(len(big) + 1).encode()

    run_each_way(go())


def test_a_closed_connection_is_opened_anew(run_each_way: Run) -> None:
    async def handler(peer: Peer) -> None:
        await peer.send(await peer.reader.readexactly(2))

    async def go() -> None:
        async with serve(handler=handler) as server, client() as vu:
            where = f"127.0.0.1:{server.port}"
            for _ in range(3):
                assert (await vu.tcp.request(where, "hi")).data == b"hi"
                late = await vu.tcp.receive(where)
                assert late.outcome is Outcome.RESET
            assert server.connections == 3

    run_each_way(go())


def test_an_end_before_all_has_come(run_each_way: Run) -> None:
    async def handler(peer: Peer) -> None:
        await peer.reader.readexactly(2)
        await peer.send(b"half a li")

    async def go() -> None:
        async with serve(handler=handler) as server, client() as vu:
            got = await vu.tcp.request(f"127.0.0.1:{server.port}", "hi", until="\n")
            assert got.outcome is Outcome.RESET
            assert "closed the connection after 9 bytes, before" in got.error

    run_each_way(go())


def test_a_server_without_end_fills_no_memory(run_each_way: Run) -> None:
    async def handler(peer: Peer) -> None:
        while True:
            await peer.send(bytes(65536))

    async def go() -> None:
        async with serve(handler=handler) as server, client(max_response_bytes=200_000) as vu:
            got = await vu.tcp.request(f"127.0.0.1:{server.port}", "hi", until="\n")
            assert got.outcome is Outcome.PROTOCOL
            assert "sent 200000 bytes and more unread" in got.error

    run_each_way(go())


def test_a_peer_that_takes_nothing(run_each_way: Run) -> None:
    async def handler(peer: Peer) -> None:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(30)

    async def go() -> None:
        async with serve(handler=handler) as server, client() as vu:
            where = f"127.0.0.1:{server.port}"
            got = await vu.tcp.send(where, bytes(20 * 1024 * 1024), timeout=0.2)
            assert (got.outcome, got.ok) == (Outcome.TIMEOUT, False)

    run_each_way(go())


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_tls(run_each_way: Run, authority: Authority) -> None:
    async def handler(peer: Peer) -> None:
        await peer.send(await peer.reader.readexactly(2))
        await peer.gone()

    async def go() -> None:
        tls = authority.server(authority.issue("localhost"))
        async with serve(handler=handler, tls=tls) as server:
            where = f"tls://127.0.0.1:{server.port}"
            async with client(ca=authority.ca) as vu:
                got = await vu.tcp.request(where, "hi")
                assert got.data == b"hi"
                assert got.connect is not None
                assert got.connect.tls_s > 0
            async with client() as vu:
                got = await vu.tcp.request(where, "hi")
                assert got.outcome is Outcome.TLS
                assert "certificate of 127.0.0.1" in got.error
                plain = await vu.tcp.request(where.replace("tls", "tcp"), "hi", timeout=5)
                assert not plain.ok

    run_each_way(go())


@pytest.mark.parametrize(
    ("address", "until", "reason"),
    [
        ("shop.example", None, "not an address of a host and port"),
        ("ftp://shop.example:1", None, "not an address of a host and port"),
        ("tcp://shop.example:1/path", None, "more than a host and a port"),
        ("tcp://shop.example:99999", None, "not an address"),
        ("127.0.0.1:1", 0, "nothing can meet"),
        ("127.0.0.1:1", "", "nothing can meet"),
        ("127.0.0.1:1", True, "a length, a delimiter or a pattern"),
        ("127.0.0.1:1", re.compile("text"), "a pattern of text"),
    ],
)
def test_what_the_author_got_wrong(run: Run, address: str, until: Any, reason: str) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match=reason):
                await vu.tcp.request(address, "hi", until=until)

    run(go())


def test_a_datagram_that_is_none(run: Run) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match="65507 at most"):
                await vu.udp.request("127.0.0.1:1", bytes(70_000))

    run(go())


def test_data_may_be_what_json_can_hold(run: Run) -> None:
    async def handler(peer: Peer) -> None:
        await peer.send(await peer.reader.read(100))
        await peer.gone()

    async def go() -> None:
        async with serve(handler=handler) as server, client() as vu:
            got = await vu.tcp.request(f"127.0.0.1:{server.port}", {"a": [1, 2]})
            assert got.json() == {"a": [1, 2]}

    run(go())
