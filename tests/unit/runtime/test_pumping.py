"""A pump gives what comes in order and once, on the spot where that is fair to others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hyperscale.runtime.host import PUMP_BYTES, Address, Stream
from hyperscale.runtime.real import RealHost, run
from hyperscale.runtime.streams import RealStream

ANY = Address("127.0.0.1", 0)


@pytest.mark.parametrize("piece", [1, 100, 5_000, PUMP_BYTES, 300_000])
def test_all_bytes_come_once_and_in_order(tmp_path: Path, piece: int) -> None:
    sent = bytes(range(251)) * (20 * piece // 251 + 1)
    got = bytearray()

    async def main() -> None:
        async with RealHost("a", tmp_path) as host:
            done = asyncio.Event()

            async def serve(stream: Stream) -> None:
                got.extend(await stream.read(1))
                await stream.pump(got.extend)
                done.set()

            listener = await host.network.listen(ANY, serve)
            stream = await host.network.connect(listener.address)
            for start in range(0, len(sent), piece):
                stream.write(sent[start : start + piece])
                await stream.drain()
                await asyncio.sleep(0)
            stream.close()
            async with asyncio.timeout(20):
                await done.wait()

    run(main())
    assert got == sent


def test_a_small_chunk_is_taken_on_the_spot_and_a_flood_is_not() -> None:
    async def main() -> None:
        stream, got = RealStream(), list[int]()
        pumping = asyncio.ensure_future(stream.pump(lambda data: got.append(len(data))))
        await asyncio.sleep(0)
        stream.data_received(b"a" * 10)
        assert got == [10]
        stream.data_received(b"b" * PUMP_BYTES * 2)
        stream.data_received(b"c")
        assert got == [10], "the flood, and what came after it, wait for the loop"
        await asyncio.sleep(0)
        assert got == [10, PUMP_BYTES], "one batch a turn"
        for _ in range(5):
            await asyncio.sleep(0)
        assert got == [10, PUMP_BYTES, PUMP_BYTES, 1]
        stream.eof_received()
        await pumping

    run(main())


@pytest.mark.parametrize("size", [1, PUMP_BYTES])
def test_what_the_taker_raises_ends_the_pump(size: int) -> None:
    async def main() -> None:
        stream, asked = RealStream(), 0

        def refuse(_: bytes) -> None:
            nonlocal asked
            asked += 1
            raise ValueError("not ours")

        pumping = asyncio.ensure_future(stream.pump(refuse))
        await asyncio.sleep(0)
        for _ in range(3):
            stream.data_received(b"x" * size)
        with pytest.raises(ValueError, match="not ours"):
            await pumping
        assert asked == 1

    run(main())


def test_a_taker_may_end_its_own_pump() -> None:
    async def main() -> None:
        stream, got = RealStream(), list[bytes]()

        def take(data: bytes) -> None:
            got.append(data)
            pumping.cancel()

        pumping = asyncio.ensure_future(stream.pump(take))
        await asyncio.sleep(0)
        stream.data_received(b"first")
        stream.data_received(b"second")
        with pytest.raises(asyncio.CancelledError):
            await pumping
        assert got == [b"first"]
        assert await stream.read(10) == b"second"

    run(main())
