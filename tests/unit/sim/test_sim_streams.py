"""Streams: reliable and in order, until a cut lasts or a process dies."""

from __future__ import annotations

import asyncio

import pytest

from hyperscale.runtime.host import Address, Stream
from hyperscale.sim.links import Latency, Link, Traffic, one_way, only, partition
from hyperscale.sim.streams import WINDOW_BYTES
from hyperscale.sim.world import World
from tests.unit.sim.worlds import at, finish, world_of


async def read_all(stream: Stream) -> bytes:
    data = b""
    while chunk := await stream.read(1000):
        data += chunk
    return data


async def pair(world: World) -> tuple[Stream, Stream]:
    """A stream from a to b: both ends."""
    accepted: asyncio.Future[Stream] = asyncio.get_running_loop().create_future()

    async def serve(stream: Stream) -> None:
        accepted.set_result(stream)
        await asyncio.Event().wait()

    await world.host("b").network.listen(Address("", 80), serve)
    caller = await world.host("a").network.connect(at(world, "b", 80))
    return caller, await accepted


def test_bytes_arrive_in_order_whatever_the_network_does() -> None:
    world = world_of("a", "b")
    world.network.default = Link(Latency(0.01, 0.5, 0.2, 2.0), loss=0.3)

    async def story() -> None:
        caller, called = await pair(world)
        for number in range(200):
            caller.write(b"%04d" % number)
        caller.close()
        assert await read_all(called) == b"".join(b"%04d" % number for number in range(200))
        assert await caller.read(1) == b""

    finish(world, story())


def test_both_ends_know_each_other() -> None:
    world = world_of("a", "b")
    world.machines["b"].certificate = b"certificate of b"

    async def story() -> None:
        caller, called = await pair(world)
        assert caller.peer == at(world, "b", 80)
        assert called.peer.host == world.machines["a"].ip
        assert caller.peer_certificate() == b"certificate of b"
        assert called.peer_certificate() is None

    finish(world, story())


def test_a_read_takes_no_more_than_its_limit() -> None:
    world = world_of("a", "b")

    async def story() -> list[bytes]:
        caller, called = await pair(world)
        caller.write(b"abcdef")
        return [await called.read(4), await called.read(4)]

    assert finish(world, story()) == [b"abcd", b"ef"]


def test_drain_waits_for_the_reader() -> None:
    world = world_of("a", "b")

    async def story() -> None:
        caller, called = await pair(world)
        caller.write(bytes(2 * WINDOW_BYTES))
        drained = asyncio.ensure_future(caller.drain())
        await asyncio.sleep(10.0)
        assert not drained.done()
        while not drained.done():
            assert await called.read(100_000)
            await asyncio.sleep(0)

    finish(world, story())


def test_a_cut_delays_and_a_long_one_breaks() -> None:
    world = world_of("a", "b")

    async def story() -> None:
        caller, called = await pair(world)
        cut = world.network.cut(partition(["a"]))
        caller.write(b"late")
        await asyncio.sleep(10.0)
        world.network.heal(cut)
        assert await called.read(10) == b"late"
        world.network.cut(partition(["a"]))
        for end in (caller, called):
            with pytest.raises(ConnectionResetError, match="nothing got through"):
                await end.read(10)

    finish(world, story())


def test_a_killed_process_resets_and_a_dead_machine_is_silent() -> None:
    async def story(world: World, disk: str) -> float:
        caller, _ = await pair(world)
        world.crash("b", disk)  # type: ignore[arg-type]
        before = world.now
        with pytest.raises(ConnectionResetError):
            await caller.read(1)
        return world.now - before

    killed, dead = world_of("a", "b"), world_of("a", "b")
    assert finish(killed, story(killed, "kept")) < 0.1
    assert finish(dead, story(dead, "lost-unsynced")) == pytest.approx(20.0)


def test_a_machine_that_comes_back_does_not_know_old_streams() -> None:
    world = world_of("a", "b")

    async def story() -> float:
        caller, _ = await pair(world)
        world.crash("b", "lost-unsynced")
        await asyncio.sleep(1.0)
        world.restart("b")
        with pytest.raises(ConnectionResetError):
            await caller.read(1)
        return world.now

    assert finish(world, story()) < 2.0


def test_connecting_is_refused_or_times_out() -> None:
    world = world_of("a", "b")

    async def story() -> None:
        connect = world.host("a").network.connect
        with pytest.raises(ConnectionRefusedError):
            await connect(at(world, "b", 80))
        world.crash("b", "kept")
        with pytest.raises(ConnectionRefusedError):
            await connect(at(world, "b", 80))
        world.restart("b")
        world.crash("b", "torn")
        with pytest.raises(TimeoutError, match="did not answer within 2 s"):
            await connect(at(world, "b", 80), timeout_s=2.0)
        with pytest.raises(TimeoutError):
            await connect(Address("10.9.9.9", 80))

    finish(world, story())


def test_connecting_gets_through_when_a_cut_heals_in_time() -> None:
    world = world_of("a", "b")

    async def serve(stream: Stream) -> None:
        stream.write(b"welcome")

    async def story() -> bytes:
        await world.host("b").network.listen(Address("", 80), serve)
        cut = world.network.cut(partition(["a"]))
        world.loop.after(2.0, world.network.heal, cut)
        stream = await world.host("a").network.connect(at(world, "b", 80))
        return await read_all(stream)

    assert finish(world, story()) == b"welcome"


def test_writing_to_a_stream_the_other_side_has_closed_breaks_nothing() -> None:
    world = world_of("a", "b")

    async def story() -> None:
        caller, called = await pair(world)
        called.close()
        assert await caller.read(1) == b""
        caller.write(b"too late")
        await caller.drain()
        caller.close()
        await asyncio.sleep(1.0)
        assert not world.network.connections

    finish(world, story())


def test_a_stopping_host_resets_its_streams() -> None:
    world = world_of("a", "b")

    async def story() -> None:
        caller, _ = await pair(world)
        await world.host("b").stop()
        assert world.host("b").tasks.names() == []
        await caller.read(1)  # an end or a reset, but no waiting for ever
        with pytest.raises(ConnectionRefusedError):
            await world.host("a").network.connect(at(world, "b", 80))

    finish(world, story())


async def exchange(world: World, source: str, target: str) -> tuple[bool, bool]:
    """Whether a datagram gets from one host to another, and whether a stream can be opened."""
    heard: list[bytes] = []
    here, there = world.host(source).network, world.host(target).network
    port = await here.bind(Address("", 7), lambda data, sender: None)
    ear = await there.bind(Address("", 7), lambda data, sender: heard.append(data))
    listener = await there.listen(Address("", 80), read_all)
    port.send(at(world, target, 7), b"x")
    try:
        (await here.connect(at(world, target, 80), timeout_s=1.0)).close()
        opened = True
    except TimeoutError:
        opened = False
    for one in (port, ear, listener):
        one.close()
    await asyncio.sleep(0.1)
    return bool(heard), opened


@pytest.mark.parametrize(
    ("traffic", "there", "back"),
    [
        ("all", (False, False), (False, False)),
        ("datagrams", (False, True), (False, True)),
        ("streams", (True, False), (True, False)),
        ("calls", (True, False), (True, False)),
    ],
)
def test_a_cut_may_be_of_one_sort_of_traffic(
    traffic: Traffic, there: tuple[bool, bool], back: tuple[bool, bool]
) -> None:
    world = world_of("a", "b")
    world.network.cut(only(traffic, partition({"a"}, {"b"})))

    async def story() -> None:
        assert await exchange(world, "a", "b") == there
        assert await exchange(world, "b", "a") == back

    finish(world, story())


@pytest.mark.parametrize(
    ("traffic", "there", "back"),
    [
        ("all", (False, False), (True, False)),
        ("datagrams", (False, True), (True, True)),
        ("streams", (True, False), (True, False)),
        ("calls", (True, False), (True, True)),
    ],
)
def test_a_cut_one_way_stops_streams_both_ways_unless_it_is_of_calls(
    traffic: Traffic, there: tuple[bool, bool], back: tuple[bool, bool]
) -> None:
    world = world_of("a", "b")
    world.network.cut(only(traffic, one_way({"a"}, {"b"})))

    async def story() -> None:
        assert await exchange(world, "a", "b") == there
        assert await exchange(world, "b", "a") == back

    finish(world, story())


def test_a_cut_of_calls_breaks_the_streams_that_were_opened_that_way() -> None:
    world = world_of("a", "b")

    async def story() -> None:
        caller, called = await pair(world)
        world.network.cut(only("calls", one_way({"b"}, {"a"})))
        caller.write(b"passes")
        assert await called.read(10) == b"passes"
        world.network.cut(only("calls", one_way({"a"}, {"b"})))
        called.write(b"waits")
        with pytest.raises(ConnectionError):
            await caller.read(10)

    finish(world, story())
