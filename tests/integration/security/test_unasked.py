"""What is still arriving: answers nobody asked for, and messages that are never finished."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hyperscale.runtime.host import Stream
from hyperscale.runtime.real import RealHost, run
from hyperscale.wire import arriving, handshake
from hyperscale.wire.connection import Connection
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.envelope import _FRAME_HEADER, Verb, pack_message, pack_plain
from hyperscale.wire.errors import Refused, RemoteFailed
from hyperscale.wire.frames import FrameDecoder
from hyperscale.wire.messages import Priority, Registry
from hyperscale.wire.peer import Peer
from hyperscale.wire.server import Server
from tests.integration.wire.nodes import ANY, Answer, Ask, introduction, until
from tests.integration.wire.nodes import registry as small_registry

LARGE = 8 << 20


class Big(msgspec.Struct, tag="test.big"):
    text: str


class Unanswered(msgspec.Struct, tag="test.unanswered"):
    text: str


def registry() -> Registry:
    made = small_registry()
    made.add(Big, priority=Priority.NORMAL, max_bytes=LARGE)
    made.add(Unanswered, priority=Priority.NORMAL, max_bytes=LARGE)
    return made


async def serving(host: RealHost) -> Server:
    handlers: dict[Any, Any] = {
        Ask: lambda call, ask: Answer(ask.text + "!"),
        Big: lambda call, ask: Answer(str(len(ask.text))),
    }
    server = Server(Endpoint(host, introduction(), registry(), handlers, plaintext="loopback"))
    await server.start(ANY)
    return server


async def greeted(host: RealHost, server: Server, name: str = "w1") -> Stream:
    stream = await host.network.connect(server.address)
    await handshake.call(stream, FrameDecoder(), introduction("worker", name))
    return stream


def begun(verb: Verb, size: int, name: bytes = b"", kept: int | None = None, id: int = 77) -> bytes:
    """A frame that announces `size` bytes and brings most of them."""
    head = _FRAME_HEADER.pack(12 + len(name) + size, 0, verb, id, 0, 1, len(name)) + name
    return head + bytes(size - 1024 if kept is None else kept)


def held(connection: Connection) -> int:
    return connection._decoder.buffered_bytes


@pytest.mark.parametrize("verb", [Verb.REPLY, Verb.UPDATE])
def test_an_answer_nobody_asked_for_is_not_kept(tmp_path: Path, verb: Verb) -> None:
    async def main() -> None:
        async with RealHost("host", tmp_path) as host:
            server = await serving(host)
            stream = await greeted(host, server)
            await until(lambda: bool(server.connections))
            (connection,) = server.connections
            stream.write(begun(verb, LARGE - 2048))
            await stream.drain()
            await until(lambda: connection.counts["late_answers"] == 1)
            most = 0
            for _ in range(4):
                stream.write(bytes(200))
                most = max(most, held(connection))
            stream.write(bytes(224) + pack_plain(Verb.PING, 5))
            assert await stream.read(100)  # the pong: it goes on with the next frame
            assert max(most, held(connection)) < 1 << 20

    run(main())


def test_words_of_the_protocol_are_short(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("host", tmp_path) as host:
            server = await serving(host)
            stream = await greeted(host, server)
            stream.write(begun(Verb.FAILED, LARGE - 2048))
            await until(lambda: not server.connections)

    run(main())


def test_a_kind_that_is_not_answered_is_refused_by_its_beginning(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("host", tmp_path) as host:
            server = await serving(host)
            stream = await greeted(host, server)
            stream.write(begun(Verb.REQUEST, LARGE - 2048, b"test.unanswered", kept=100_000))
            assert b"not_answered" in await stream.read(1000)

    run(main())


def test_an_answer_larger_than_its_kind_ends_the_request(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("host", tmp_path) as host:

            async def answers(stream: Stream) -> None:
                decoder = FrameDecoder(1 << 20)
                await handshake.answer(stream, decoder, introduction())
                while not (frames := list(decoder)):
                    decoder.feed(await stream.read(1000))
                asked = int.from_bytes(frames[0][1][1:5], "big")
                stream.write(begun(Verb.REPLY, LARGE - 2048, b"test.answer", id=asked))
                await stream.read(1)

            listener = await host.network.listen(ANY, answers)
            mine = introduction("worker")
            peer = Peer(Endpoint(host, mine, registry(), plaintext="loopback"), listener.address)
            with pytest.raises(RemoteFailed, match="are allowed"):
                await peer.request(Ask("hi"), Answer, 10)
            peer.close()

    run(main())


def test_one_node_has_only_so_much_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arriving, "ARRIVING_BYTES_MAX", 10 << 20)

    async def main() -> None:
        async with RealHost("host", tmp_path) as host:
            server = await serving(host)
            first = await greeted(host, server)
            first.write(begun(Verb.REQUEST, 6 << 20, b"test.big", kept=1 << 20))
            await until(lambda: any(map(held, server.connections)))
            second = await greeted(host, server)
            second.write(begun(Verb.REQUEST, 6 << 20, b"test.big", kept=1 << 20))
            assert b"too many large messages" in await second.read(1000)
            other = await greeted(host, server, "w2")
            kind = registry().of(Big(""))
            text = Big("".join(map(chr, range(33, 120))) * 40_000)
            other.write(pack_message(Verb.REQUEST, 1, 0, kind, text))
            assert b"3480000" in await other.read(1000)
            first.close()
            await until(lambda: len(server.connections) == 2)
            third = await greeted(host, server)
            third.write(begun(Verb.REQUEST, 6 << 20, b"test.big", kept=1 << 20))
            await until(lambda: any(map(held, server.connections)))

    run(main())


def test_half_a_message_goes_with_its_connection(tmp_path: Path) -> None:
    """Also when the collector of cycles does not run for a long time, as in a manager."""

    async def main() -> None:
        async with RealHost("host", tmp_path) as host:
            server = await serving(host)
            stream = await greeted(host, server)
            await until(lambda: bool(server.connections))
            decoder = server.connections[0]._decoder
            stream.write(begun(Verb.REQUEST, 6 << 20, b"test.big", kept=4 << 20))
            await until(lambda: decoder.buffered_bytes > 3 << 20)
            stream.close()
            await until(lambda: not server.connections)
            assert decoder.buffered_bytes == 0
            assert decoder.screen is None

    run(main())


def test_the_buffers_of_a_connection_go_with_it(tmp_path: Path) -> None:
    """Also when the collector of cycles does not run for a long time, as in a manager."""

    async def main() -> None:
        async with RealHost("host", tmp_path) as host:
            server = await serving(host)
            stream = await greeted(host, server)
            await until(lambda: bool(server.connections))
            transport = weakref.ref(server.connections[0]._stream._transport)  # type: ignore[attr-defined]
            stream.write(begun(Verb.CANCEL, 100_000, b"", kept=50_000))
            await until(lambda: not server.connections)
            await until(lambda: transport() is None)

    gc.disable()
    try:
        run(main())
    finally:
        gc.enable()


def test_refusals_are_still_heard(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("host", tmp_path) as host:
            server = await serving(host)
            mine = introduction("worker")
            peer = Peer(Endpoint(host, mine, registry(), plaintext="loopback"), server.address)
            with pytest.raises(Refused):
                await peer.request(Unanswered("x" * 100_000), Answer)
            assert (await peer.request(Ask("hi"), Answer)).text == "hi!"

    run(main())
