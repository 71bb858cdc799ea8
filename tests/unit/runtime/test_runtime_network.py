"""Sockets of a real host, on loopback."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from hyperscale.runtime.host import Address, Host, Stream
from hyperscale.runtime.real import RealHost, run

ANY = Address("127.0.0.1", 0)


def test_the_real_host_is_a_host(tmp_path: Path) -> None:
    host: Host = RealHost("a", tmp_path, seed=7)
    again = RealHost("a", tmp_path, seed=7)
    assert host.name == "a"
    assert host.random.random() == again.random.random()
    assert host.clock.now() <= host.clock.now()
    assert host.clock.wall() > 0


def test_datagrams_travel_both_ways(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("a", tmp_path) as host:
            got: asyncio.Queue[tuple[bytes, Address]] = asyncio.Queue()
            left = await host.network.bind(ANY, lambda data, who: got.put_nowait((data, who)))
            right = await host.network.bind(ANY, lambda data, who: got.put_nowait((data, who)))
            left.send(right.address, b"ping")
            assert await asyncio.wait_for(got.get(), 5) == (b"ping", left.address)
            right.send(left.address, b"pong")
            assert await asyncio.wait_for(got.get(), 5) == (b"pong", right.address)
            left.close()
            left.send(right.address, b"after close: dropped in silence")

    run(main())


def test_sending_nowhere_is_not_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("a", tmp_path) as host:
            port = await host.network.bind(ANY, lambda data, who: None)
            port.send(Address("127.0.0.1", 1), b"x")
            port.send(port.address, b"x" * 100_000)
            await asyncio.sleep(0)

    run(main())


async def echo(stream: Stream) -> None:
    while data := await stream.read(1000):
        stream.write(data)
        await stream.drain()


def test_streams_carry_bytes_in_order_with_a_slow_reader(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("a", tmp_path) as host:
            listener = await host.network.listen(ANY, echo)
            stream = await host.network.connect(listener.address)
            assert stream.peer == listener.address
            assert stream.peer_certificate() is None
            sent = bytes(range(256)) * 40_000

            async def write() -> None:
                for start in range(0, len(sent), 65_536):
                    stream.write(sent[start : start + 65_536])
                    await stream.drain()

            writer = host.tasks.spawn("write", write())
            got = bytearray()
            while len(got) < len(sent):
                got += await stream.read(7_777)
            await writer
            assert got == sent
            stream.close()

    run(main())


def test_the_end_of_a_stream_is_empty_bytes(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("a", tmp_path) as host:

            async def bye(stream: Stream) -> None:
                stream.write(b"bye")

            listener = await host.network.listen(ANY, bye)
            stream = await host.network.connect(listener.address)
            assert await stream.read(2) == b"by"
            assert await stream.read(2) == b"e"
            assert await stream.read(2) == b""
            assert await stream.read(2) == b""

    run(main())


def test_connecting_to_nobody(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("a", tmp_path) as host:
            listener = await host.network.listen(ANY, echo)
            address = listener.address
            listener.close()
            with pytest.raises(ConnectionError):
                await host.network.connect(address)
            with pytest.raises(ConnectionError, match=r"no\.such\.host\.invalid"):
                await host.network.connect(Address("no.such.host.invalid", 1))
            with pytest.raises(ConnectionError, match="cannot be reached"):
                await host.network.connect(Address("x" * 70 + ".invalid", 1))

    run(main())


def test_connecting_takes_no_longer_than_allowed(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("a", tmp_path) as host:
            loop = asyncio.get_running_loop()

            async def never(*_: object, **__: object) -> None:
                await asyncio.Event().wait()

            loop.create_connection = never  # type: ignore[method-assign, assignment]
            with pytest.raises(TimeoutError, match=r"did not answer within 0\.01 s"):
                await host.network.connect(Address("127.0.0.1", 9), timeout_s=0.01)

    asyncio.run(main())


def test_resolve(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("a", tmp_path) as host:
            assert Address("127.0.0.1", 80) in await host.network.resolve("localhost", 80)
            with pytest.raises(socket.gaierror):
                await host.network.resolve("no.such.host.invalid", 80)

    run(main())


def test_stop_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        host = RealHost("a", tmp_path)
        listener = await host.network.listen(ANY, echo)
        streams = [await host.network.connect(listener.address) for _ in range(10)]
        for stream in streams:
            stream.write(b"x")
            assert await stream.read(1) == b"x"
        await host.network.bind(ANY, lambda data, who: None)
        assert len(host.tasks.names()) == 10
        await host.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert await streams[0].read(1) == b""
        with pytest.raises(ConnectionError):
            await RealHost("b", tmp_path).network.connect(listener.address)

    run(main())


def test_a_connection_that_ends_before_tls_says_so(tmp_path: Path) -> None:
    """What a proxy does whose target is dead."""

    async def hang_up(stream: Stream) -> None:
        stream.close()

    async def main() -> None:
        async with RealHost("a", tmp_path) as host:
            listener = await host.network.listen(ANY, hang_up)
            with pytest.raises(ConnectionError, match=f"{listener.address} closed the connection"):
                await host.network.connect(listener.address, ssl.create_default_context())

    run(main())
