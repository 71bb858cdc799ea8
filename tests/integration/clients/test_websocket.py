"""WebSocket: against another library's server and the target, and servers that keep to nothing."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import websockets
from websockets.asyncio.server import ServerConnection

from hyperscale.errors import BadInput
from hyperscale.target.server import Target
from hyperscale.websocket_frames import BINARY, PING, TEXT, closing, frame
from hyperscale.workload.results import CallFailed, Outcome

from .certificates import Authority
from .conftest import Run
from .scripted import Handler, Peer, client, serve, until
from .test_contract import free_port, user
from .websocket_server import upgrade


async def echo(peer: ServerConnection) -> None:
    async for message in peer:
        await peer.send(message)


def plain(**options: Any) -> Any:
    return websockets.serve(echo, "127.0.0.1", 0, **options)


def url_of(server: Any, scheme: str = "ws") -> str:
    return f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/room"


def test_text_binary_json_ping_and_close(run_each_way: Run) -> None:
    async def go() -> None:
        async with plain() as server, client() as vu:
            url, ws = url_of(server), vu.websocket
            opened = await ws.connect(url, headers={"X-Who": "me"})
            assert (opened.status, opened.ok) == (101, True)
            assert opened.headers["upgrade"] == "websocket"
            assert opened.connect is not None
            assert (await ws.request(url, "grüße")).message == "grüße"
            assert (await ws.request(url, b"\x00\xff")).message == b"\x00\xff"
            assert (await ws.request(url, {"a": [1]})).json() == {"a": [1]}
            big = bytes(range(256)) * 4096
            assert (await ws.request(url, big)).data == big
            sent = await ws.send(url, "one")
            assert (sent.ok, sent.bytes_out) == (True, 9)
            assert (await ws.receive(url)).text() == "one"
            pinged = await ws.ping(url)
            assert pinged.ok
            assert pinged.timings["wait"] > 0
            closed = await ws.close(url, code=4000, reason="done")
            assert (closed.ok, closed.status) == (True, 4000)
            assert (await ws.close(url)).ok

    run_each_way(go())


def test_messages_that_are_waited_for(run: Run) -> None:
    async def tell(peer: ServerConnection) -> None:
        for text in ("joined", "order 17", "noise", "done: 3", '{"last": true}'):
            await peer.send(text)
        await peer.wait_closed()

    async def go() -> None:
        async with websockets.serve(tell, "127.0.0.1", 0) as server, user() as (vu, scope, _):
            url, ws = url_of(server), vu.websocket
            assert (await ws.expect(url, re.compile(r"order (\d+)"))).text() == "order 17"
            assert (await ws.expect(url, "done")).text() == "done: 3"
            assert (await ws.expect(url, lambda text: text.startswith("{"))).json()["last"]
            late = await ws.receive(url, timeout=0.05)
            assert late.outcome is Outcome.TIMEOUT
            assert (await ws.ping(url)).ok, "the session lives on"
            assert scope.connects == 1

    run(go())


@pytest.mark.parametrize("takeover", [True, False])
def test_compression(run: Run, takeover: bool) -> None:
    from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory

    factory = ServerPerMessageDeflateFactory(
        server_no_context_takeover=not takeover, client_no_context_takeover=not takeover
    )

    async def go() -> None:
        async with plain(extensions=[factory], compression=None) as server, client() as vu:
            url = url_of(server)
            opened = await vu.websocket.connect(url, compress=True)
            assert "permessage-deflate" in opened.headers["sec-websocket-extensions"]
            for _ in range(3):
                got = await vu.websocket.request(url, "hyperscale " * 1000)
                assert got.text() == "hyperscale " * 1000
                assert got.bytes_out < 200

    run(go())


def test_the_target_echoes_and_counts(run_each_way: Run) -> None:
    async def go() -> None:
        async with Target() as target, user() as (vu, scope, _):
            url = target.url.replace("http", "ws") + "/ws"
            opened = await vu.websocket.connect(url, subprotocols=("chat",), compress=True)
            assert opened.headers["sec-websocket-protocol"] == "chat"
            got = await asyncio.gather(*(vu.websocket.request(url, f"{n}") for n in range(20)))
            assert [one.text() for one in got] == [f"{n}" for n in range(20)]
            assert (await vu.websocket.ping(url)).ok
            assert (await vu.websocket.close(url)).status == 1000
            counts = (await vu.http.get(f"{target.url}/stats")).json()["paths"]
            assert counts == {"/ws": 1, "WS message": 20}
            refused = await vu.http.get(f"{target.url}/ws")
            assert refused.status == 426
            assert {"CONNECT": 1, "REQUEST": 20, "PING": 1, "CLOSE": 1}.items() <= {
                method: [one[1] for one in scope.noted].count(method)
                for method in ("CONNECT", "REQUEST", "PING", "CLOSE")
            }.items()

    run_each_way(go())


def test_tls(run: Run, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = authority.server(authority.issue("localhost"))

    async def go() -> None:
        async with plain(ssl=tls) as server:
            async with client(ca=authority.ca) as vu:
                assert (await vu.websocket.request(url_of(server, "wss"), "hi")).text() == "hi"
                plainly = await vu.websocket.request(url_of(server), "hi", timeout=5)
                assert not plainly.ok
            async with client() as vu:
                got = await vu.websocket.request(url_of(server, "wss"), "hi")
                assert got.outcome is Outcome.TLS
                assert "certificate of 127.0.0.1" in got.error
        async with plain() as server, client() as vu:
            got = await vu.websocket.request(url_of(server, "wss"), "hi")
            assert got.outcome is Outcome.TLS

    run(go())


def test_metrics_of_a_session(run: Run) -> None:
    async def go() -> None:
        told: dict[str, list[float]] = {}
        async with plain() as server, user() as (vu, scope, _):
            scope.measure = lambda name, kind, value: told.setdefault(name, []).append(value)  # type: ignore[method-assign]
            url = url_of(server)
            for _ in range(3):
                await vu.websocket.request(url, "hi")
            await vu.websocket.ping(url)
            vu.close()
        assert told["ws_sessions"] == [1]
        assert sum(told["ws_msgs_sent"]) == sum(told["ws_msgs_received"]) == 3
        for name in ("ws_connecting", "ws_session_duration", "ws_ping"):
            assert len(told[name]) == 1
            assert told[name][0] > 0

    run(go())


def answers(*parts: bytes, before: bool = False) -> Handler:
    """Upgrades, hears a message and says this."""

    async def handler(peer: Peer) -> None:
        await upgrade(peer)
        if not before:
            await peer.reader.read(1000)
        for part in parts:
            await peer.send(part)
        await peer.gone()

    return handler


def says(*parts: bytes) -> Handler:
    """Instead of an upgrade."""

    async def handler(peer: Peer) -> None:
        await peer.reader.read(1000)
        for part in parts:
            await peer.send(part)

    return handler


async def endless(peer: Peer) -> None:
    await upgrade(peer)
    while True:
        await peer.send(frame(BINARY, bytes(60_000), masked=False))


async def endless_head(peer: Peer) -> None:
    await peer.send(b"HTTP/1.1 101 Switching Protocols\r\n")
    while True:
        await peer.send(b"X-More: " + b"x" * 1000 + b"\r\n")


async def half(peer: Peer) -> None:
    await upgrade(peer)
    await peer.reader.read(1000)
    await peer.send(frame(TEXT, b"half of it", masked=False)[:6])


async def of_another_key(peer: Peer) -> None:
    request = await peer.request()
    await peer.send(b"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n")
    assert request
    await peer.gone()


async def not_offered(peer: Peer) -> None:
    await upgrade(peer, "Sec-WebSocket-Extensions: permessage-deflate")
    await peer.gone()


async def resets(peer: Peer) -> None:
    await upgrade(peer)
    await peer.reader.read(1000)
    peer.reset()


CLOSED = frame(8, closing(1008, "no room"), masked=False)


@pytest.mark.parametrize(
    ("handler", "outcome", "what"),
    [
        (says(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"), Outcome.STATUS, "403 No instead"),
        (says(b"HTTP/1.1 200 OK\r\n\r\n"), Outcome.PROTOCOL, "200 OK instead of a WebSocket"),
        (says(b"SSH-2.0-OpenSSH_9.2\r\n"), Outcome.PROTOCOL, "not HTTP: b'SSH"),
        (says(b""), Outcome.RESET, "closed the connection"),
        (endless_head, Outcome.PROTOCOL, "a header of more than"),
        (of_another_key, Outcome.PROTOCOL, "Accept is not that of our key"),
        (not_offered, Outcome.PROTOCOL, "chose the extension 'permessage-deflate'"),
        (answers(b"\x83\x05xxxxx"), Outcome.PROTOCOL, "sent a frame of the unknown kind 3"),
        (answers(b"\x81\x02\xc3\x28"), Outcome.PROTOCOL, "sent text that is not UTF-8"),
        (answers(b"\x82\x7f" + b"\x7f" * 8), Outcome.PROTOCOL, "of more than 200000 bytes"),
        (answers(CLOSED), Outcome.STATUS, r"with 1008 \(policy violation\): no room"),
        (answers(frame(8, b"", False)), Outcome.RESET, r"closed the session with 1005 \(no code\)"),
        (half, Outcome.RESET, "closed the connection"),
        (resets, Outcome.RESET, "the connection"),
        (answers(frame(PING, b"?", False)), Outcome.TIMEOUT, "no answer from .* within 0.5 s"),
    ],
)
def test_servers_that_keep_to_nothing(
    run: Run, handler: Handler, outcome: Outcome, what: str
) -> None:
    async def go() -> None:
        async with serve(handler=handler) as server, user(max_response_bytes=200_000) as made:
            vu, scope, _ = made
            got = await vu.websocket.request(f"ws://127.0.0.1:{server.port}", "hi", timeout=0.5)
            assert got.outcome is outcome, got.error
            assert re.search(what, got.error), got.error
            assert [result for result, _ in scope.failures] == [got]
            with pytest.raises(CallFailed):
                got.text()

    run(go())


def test_what_nobody_receives_fills_no_memory(run: Run) -> None:
    async def go() -> None:
        async with serve(handler=endless) as server, client(max_response_bytes=2_000_000) as vu:
            got = await vu.websocket.expect(f"ws://127.0.0.1:{server.port}", "never", timeout=0.3)
            assert got.outcome is Outcome.TIMEOUT, "each is looked at and let go"
            url = f"ws://127.0.0.1:{server.port}/2"
            await vu.websocket.connect(url)
            session = vu.websocket._sessions[url]
            await until(
                lambda: not session.is_open, 20
            )  # it is cut off, however slow the server is
            kept = 0
            while (got := await vu.websocket.receive(url)).ok:
                kept += len(got.data)
            assert got.outcome is Outcome.PROTOCOL
            assert "sent 2000000 bytes and more unread" in got.error
            assert 2_000_000 <= kept < 3_000_000

    run(go())


def test_a_close_in_between_is_told_once(run: Run) -> None:
    async def go() -> None:
        async with serve(handler=answers(CLOSED, before=True)) as server, client() as vu:
            url = f"ws://127.0.0.1:{server.port}"
            assert (await vu.websocket.connect(url)).ok
            first = await vu.websocket.receive(url)
            assert (first.outcome, first.status) == (Outcome.STATUS, 1008)
            assert (await vu.websocket.connect(url)).ok
            assert server.connections == 2

    run(go())


def test_pings_are_answered_behind_a_long_message(run: Run) -> None:
    heard = bytearray()

    async def handler(peer: Peer) -> None:
        await upgrade(peer)
        await peer.send(frame(PING, b"there?", masked=False))
        await asyncio.sleep(0.05)
        while b"there?" not in heard[-6:] and (data := await peer.reader.read(1_000_000)):
            heard.extend(data)
            if len(heard) >= 20_000_014 + 12:
                break
        await peer.send(frame(TEXT, b"%d" % len(heard), masked=False))
        await peer.gone()

    async def go() -> None:
        async with serve(handler=handler) as server, client() as vu:
            url = f"ws://127.0.0.1:{server.port}"
            got = await vu.websocket.request(url, bytes(20_000_000))
            assert got.text() == str(20_000_014 + 12)

    run(go())


@pytest.mark.parametrize(
    ("url", "arguments", "reason"),
    [
        ("http://shop.example/", {}, "not a URL of ws"),
        ("ws://", {}, "names no host"),
        ("ws://127.0.0.1:1", {"subprotocols": "chat"}, "subprotocols"),
        ("ws://127.0.0.1:1", {"subprotocols": ("a b",)}, "subprotocols"),
        ("ws://127.0.0.1:1", {"timeout": 0}, "timeout"),
    ],
)
def test_what_the_author_got_wrong(run: Run, url: str, arguments: Any, reason: str) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match=reason):
                await vu.websocket.connect(url, **arguments)
            with pytest.raises(BadInput, match="matching"):
                await vu.websocket.expect(f"ws://127.0.0.1:{free_port()}", 5)  # type: ignore[arg-type]

    run(go())
