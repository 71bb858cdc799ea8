"""Datagrams through loss, duplication, delay, cuts and slow hosts."""

from __future__ import annotations

import asyncio

import pytest

from hyperscale.runtime.host import Address
from hyperscale.sim.links import Latency, Link, clog, one_way, partition
from hyperscale.sim.network import UNREAD_MAX, SimDatagrams
from hyperscale.sim.world import World
from tests.unit.sim.worlds import at, finish, world_of

Inbox = list[tuple[float, bytes]]


async def port(world: World, name: str) -> tuple[SimDatagrams, Inbox]:
    inbox: Inbox = []

    def on_datagram(data: bytes, _sender: Address) -> None:
        inbox.append((world.now, data))

    return await world.host(name).network.bind(Address("", 7), on_datagram), inbox


def test_a_datagram_takes_the_latency_of_its_link() -> None:
    world = world_of("a", "b")
    world.network.default = Link(Latency(base_s=0.25, jitter_s=0.0))

    async def story() -> Inbox:
        a, _ = await port(world, "a")
        _, inbox = await port(world, "b")
        a.send(at(world, "b", 7), b"hello")
        await asyncio.sleep(1.0)
        return inbox

    assert finish(world, story()) == [(0.25, b"hello")]


def test_links_may_differ_by_route() -> None:
    world = world_of("a", "b", "c")
    near, far = Link(Latency(0.001, 0.0)), Link(Latency(0.2, 0.0))
    world.network.route = lambda source, target: far if "c" in (source, target) else near

    async def story() -> tuple[Inbox, Inbox]:
        a, _ = await port(world, "a")
        (_, at_b), (_, at_c) = await port(world, "b"), await port(world, "c")
        for name in ("b", "c"):
            a.send(at(world, name, 7), b"x")
        await asyncio.sleep(1.0)
        return at_b, at_c

    assert finish(world, story()) == ([(0.001, b"x")], [(0.2, b"x")])


def test_bandwidth_makes_datagrams_queue() -> None:
    world = world_of("a", "b")
    world.network.default = Link(Latency(0.0, 0.0), bytes_per_s=1000.0)

    async def story() -> list[float]:
        a, _ = await port(world, "a")
        _, inbox = await port(world, "b")
        for _ in range(3):
            a.send(at(world, "b", 7), b"x" * 500)
        await asyncio.sleep(5.0)
        return [when for when, _ in inbox]

    assert finish(world, story()) == [0.5, 1.0, 1.5]


def test_loss_duplication_and_reordering_happen_and_are_counted() -> None:
    world = world_of("a", "b")
    world.network.default = Link(Latency(0.0, 1.0, 0.1, 5.0), loss=0.2, duplicate=0.2)

    async def story() -> list[int]:
        a, _ = await port(world, "a")
        _, inbox = await port(world, "b")
        for number in range(500):
            a.send(at(world, "b", 7), str(number).encode())
        await asyncio.sleep(100.0)
        return [int(data) for _, data in inbox]

    seen = finish(world, story())
    assert 300 < len(set(seen)) < 500
    assert len(seen) > len(set(seen))
    assert seen != sorted(seen)
    assert all(world.coverage[kind] for kind in ("loss", "duplicate", "reorder", "latency-tail"))


@pytest.mark.parametrize(
    ("cut", "there", "back"),
    [
        (partition(["a"]), False, False),
        (partition(["a"], ["b"]), False, False),
        (partition(["a"], ["c"]), True, True),
        (one_way(["a"]), False, True),
        (one_way(None, ["a"]), True, False),
        (one_way(["b"], ["a"]), True, False),
    ],
)
def test_a_cut_stops_what_it_says(cut: object, there: bool, back: bool) -> None:
    world = world_of("a", "b", "c")

    async def story() -> tuple[bool, bool]:
        (a, at_a), (b, at_b) = await port(world, "a"), await port(world, "b")
        world.network.cut(cut)  # type: ignore[arg-type]
        a.send(b.address, b"x")
        b.send(a.address, b"x")
        await asyncio.sleep(1.0)
        return bool(at_b), bool(at_a)

    assert finish(world, story()) == (there, back)


def test_a_clog_holds_datagrams_until_it_is_gone() -> None:
    world = world_of("a", "b")

    async def story() -> list[bytes]:
        a, _ = await port(world, "a")
        _, inbox = await port(world, "b")
        stopped = world.network.cut(clog("b"))
        a.send(at(world, "b", 7), b"old")
        await asyncio.sleep(10.0)
        assert not inbox
        world.network.heal(stopped)
        await asyncio.sleep(1.0)
        return [data for _, data in inbox]

    assert finish(world, story()) == [b"old"]
    assert world.coverage["clog"] == 1


def test_a_slow_host_hears_late() -> None:
    world = world_of("a", "b")
    world.machines["b"].slow = Latency(0.5, 0.0)

    async def story() -> float:
        a, _ = await port(world, "a")
        _, inbox = await port(world, "b")
        a.send(at(world, "b", 7), b"x")
        await asyncio.sleep(2.0)
        return inbox[0][0]

    assert finish(world, story()) >= 0.5


def test_datagrams_to_a_paused_host_wait_and_to_a_dead_one_are_gone() -> None:
    world = world_of("a", "b")

    async def story() -> Inbox:
        a, _ = await port(world, "a")
        _, inbox = await port(world, "b")
        world.pause("b", 5.0)
        a.send(at(world, "b", 7), b"waits")
        await asyncio.sleep(6.0)
        world.crash("b")
        a.send(at(world, "b", 7), b"gone")
        await asyncio.sleep(1.0)
        return inbox

    assert finish(world, story()) == [(5.0, b"waits")]


def test_a_dead_generation_can_no_longer_speak() -> None:
    world = world_of("a", "b")

    async def story() -> Inbox:
        a, _ = await port(world, "a")
        _, inbox = await port(world, "b")
        world.crash("a")
        a.send(at(world, "b", 7), b"ghost")
        await asyncio.sleep(1.0)
        return inbox

    assert finish(world, story()) == []


def test_an_address_is_bound_once_and_only_by_its_host() -> None:
    world = world_of("a", "b")

    async def story() -> None:
        network = world.host("a").network
        first, _ = await port(world, "a")
        with pytest.raises(OSError, match="in use"):
            await port(world, "a")
        with pytest.raises(OSError, match="not an address of a"):
            await network.bind(at(world, "b", 9), print)
        first.close()
        await port(world, "a")
        any_port = await network.bind(Address("", 0), print)
        assert any_port.address.port > 0

    finish(world, story())


def test_names_are_resolved() -> None:
    world = world_of("a", "b")
    world.names["seeds"] = ["10.0.0.1", "10.0.0.2"]

    async def story() -> None:
        network = world.host("a").network
        assert await network.resolve("b", 5) == [at(world, "b", 5)]
        assert len(await network.resolve("seeds", 5)) == 2
        assert await network.resolve("10.9.9.9", 5) == [Address("10.9.9.9", 5)]
        with pytest.raises(OSError, match="not known"):
            await network.resolve("nowhere", 5)

    finish(world, story())


def test_an_error_in_a_receiver_fails_the_run() -> None:
    world = world_of("a", "b")

    def broken(_data: bytes, _sender: Address) -> None:
        raise ValueError("cannot read this")

    async def story() -> None:
        a, _ = await port(world, "a")
        await world.host("b").network.bind(Address("", 7), broken)
        a.send(at(world, "b", 7), b"x")
        await asyncio.sleep(1.0)

    world.run(story())
    world.close()
    assert "cannot read this" in world.failures[0]


def test_work_on_a_datagram_makes_the_next_one_wait() -> None:
    world = world_of("a", "b")
    world.network.default = Link(Latency(0.1, 0.0))
    world.network.datagram_cost_s = 0.25

    async def story() -> list[float]:
        a, _ = await port(world, "a")
        _, inbox = await port(world, "b")
        for _ in range(3):
            a.send(at(world, "b", 7), b"x")
        await asyncio.sleep(2.0)
        a.send(at(world, "b", 7), b"x")
        await asyncio.sleep(1.0)
        return [when for when, _ in inbox]

    assert finish(world, story()) == [0.1, 0.35, 0.6, 2.1]


def test_after_a_pause_one_datagram_is_read_and_then_the_timers_fire() -> None:
    world = world_of("a", "b")
    world.network.default = Link(Latency(0.1, 0.0))
    world.network.datagram_cost_s = 0.25
    seen: list[tuple[float, str]] = []

    async def timer() -> None:
        await asyncio.sleep(1.0)
        seen.append((world.now, "timer"))

    async def story() -> None:
        host = world.host("b")
        a, _ = await port(world, "a")
        note = lambda data, _sender: seen.append((world.now, data.decode()))  # noqa: E731
        await host.network.bind(Address("", 7), note)
        host.tasks.spawn("timer", timer())
        await asyncio.sleep(0.0)
        world.pause("b", 2.0)
        for word in ("first", "second"):
            a.send(at(world, "b", 7), word.encode())
        await asyncio.sleep(5.0)

    finish(world, story())
    assert seen == [(2.0, "first"), (2.0, "timer"), (2.25, "second")]


def test_a_socket_that_nobody_reads_is_full_one_day() -> None:
    world = world_of("a", "b")
    world.network.datagram_cost_s = 0.001

    async def story() -> int:
        a, _ = await port(world, "a")
        _, inbox = await port(world, "b")
        world.pause("b", 1.0)
        for _ in range(UNREAD_MAX + 5):
            a.send(at(world, "b", 7), b"x")
        await asyncio.sleep(5.0)
        return len(inbox)

    assert finish(world, story()) == UNREAD_MAX
    assert world.coverage["socket-full"] == 5
