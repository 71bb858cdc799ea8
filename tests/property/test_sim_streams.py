"""Whatever a network does that heals in time, a stream delivers every byte once and in order."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.runtime.host import Address, Stream
from hyperscale.sim.links import Latency, Link, clog, one_way, partition
from tests.unit.sim.worlds import at, finish, world_of

CUTS = st.sampled_from([partition(["a"]), one_way(["a"]), one_way(["b"]), clog("b")])
STEPS = st.lists(st.one_of(st.binary(min_size=1, max_size=50), CUTS), max_size=20)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.floats(0.0, 0.5), st.integers(0, 1000))
def test_bytes_are_neither_lost_nor_doubled_nor_reordered(
    steps: list[object], loss: float, seed: int
) -> None:
    world = world_of("a", "b", seed=seed)
    world.network.default = Link(Latency(0.01, 0.2, 0.1, 0.5), loss=loss)
    world.network.stream_breaks_after_s = 60.0
    received = bytearray()

    async def serve(stream: Stream) -> None:
        while chunk := await stream.read(7):
            received.extend(chunk)

    async def story() -> bytes:
        await world.host("b").network.listen(Address("", 80), serve)
        stream = await world.host("a").network.connect(at(world, "b", 80))
        sent = b""
        for step in steps:
            if isinstance(step, bytes):
                stream.write(step)
                sent += step
            else:
                world.network.cut(step)  # type: ignore[arg-type]
                world.loop.after(2.0, world.network.heal, step)
            await asyncio.sleep(0.1)
        stream.close()
        await asyncio.sleep(300.0)
        assert not world.network.connections
        return sent

    assert finish(world, story()) == bytes(received)
