"""Machines that crash, restart, pause and drift, and what checkers see of it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest

from hyperscale.runtime.host import Host
from hyperscale.sim.checkers import Checker
from hyperscale.sim.host import SimHost
from hyperscale.sim.trace import Trace, canonical
from hyperscale.sim.world import World
from tests.unit.sim.worlds import finish, world_of


def one(main: Callable[[SimHost], Any], **options: Any) -> World:
    world = World(1, **options)
    world.add("a", main)
    return world


def test_a_restart_runs_the_program_again_on_the_same_disk() -> None:
    lives: list[tuple[int, bytes]] = []

    async def main(host: SimHost) -> None:
        file = await host.disk.open("x")
        await host.disk.sync_directory("")
        await file.append_and_sync(b"%d" % host.generation)
        lives.append((host.generation, await host.disk.read("x")))

    world = one(main)

    async def story() -> None:
        await asyncio.sleep(1.0)
        world.crash("a", "lost-unsynced")
        world.crash("a")  # it is down: nothing more to crash
        assert world.up() == []
        await asyncio.sleep(1.0)
        world.restart("a")
        world.restart("a")
        await asyncio.sleep(1.0)

    finish(world, story())
    assert lives == [(1, b"1"), (2, b"12")]


def test_a_crashed_program_does_not_run_its_finally_blocks() -> None:
    cleaned: list[str] = []

    async def main(host: SimHost) -> None:
        try:
            await host.clock.sleep(100.0)
        finally:
            cleaned.append(host.name)

    world = one(main)

    async def story() -> None:
        await asyncio.sleep(1.0)
        world.crash("a")
        await asyncio.sleep(200.0)
        assert cleaned == []

    finish(world, story())


def test_a_pause_lets_everything_come_at_once() -> None:
    ticks: list[float] = []

    async def main(host: SimHost) -> None:
        while True:
            await host.clock.sleep(1.0)
            ticks.append(world.now)

    world = one(main)

    async def story() -> None:
        await asyncio.sleep(1.5)
        world.pause("a", 3.0)
        world.pause("a", 6.0)
        await asyncio.sleep(7.2)
        world.pause("a", 100.0)
        await asyncio.sleep(1.5)
        world.resume("a")
        await asyncio.sleep(0.05)

    finish(world, story())
    assert ticks == pytest.approx([1.0, 7.5, 8.5, 10.2])
    assert world.coverage["pause"] == 2


def test_every_host_has_its_own_clock() -> None:
    world = world_of("a", "b")

    async def story() -> None:
        a, b = world.host("a").clock, world.host("b").clock
        world.set_clock_rate("a", 1.01)
        began, other = a.now(), b.now()
        assert began != other
        await asyncio.sleep(100.0)
        assert a.now() - began == pytest.approx(101.0)
        assert b.now() - other == pytest.approx(100.0)
        wall = b.wall()
        world.step_wall_clock("b", -50.0)
        assert b.wall() == pytest.approx(wall - 50.0)
        assert b.now() - other == pytest.approx(100.0)

    finish(world, story())


def test_asyncio_timeouts_use_the_clock_of_the_host() -> None:
    waited: list[tuple[float, float]] = []

    async def main(host: SimHost) -> None:
        began = host.clock.now()
        assert asyncio.get_running_loop().time() == began
        try:
            async with asyncio.timeout(10.0):
                await asyncio.Event().wait()
        except TimeoutError:
            waited.append((host.clock.now() - began, world.now))

    world = World(1)
    machine = world.add("a", main)
    assert machine.process is not None
    world.set_clock_rate("a", 2.0)

    finish(world, asyncio.sleep(20.0))
    assert waited == [(pytest.approx(10.0), pytest.approx(5.0))]


def test_tasks_are_named_listed_and_stopped() -> None:
    world = world_of("a")

    async def story() -> None:
        tasks = world.host("a").tasks
        await asyncio.sleep(1.0)
        task = tasks.spawn("worker", asyncio.sleep(100.0))
        assert tasks.names() == ["worker"]
        await world.stop("a")
        assert task.done()
        assert tasks.names() == []
        with pytest.raises(RuntimeError, match="has stopped"):
            tasks.spawn("late", asyncio.sleep(1.0))
        assert world.machines["a"].retired

    finish(world, story())


def test_who_stops_for_now_comes_back_and_who_was_killed_meanwhile_is_not_stopped_twice() -> None:
    world = world_of("a", "b")

    async def story() -> None:
        assert await world.stop("a", for_good=False)
        world.restart_after("a", 2.0)
        await asyncio.sleep(3.0)
        assert world.machines["a"].generation == 2

        release = asyncio.Event()

        async def stubborn() -> None:
            try:
                await asyncio.sleep(100.0)
            finally:
                await release.wait()

        world.host("b").tasks.spawn("stubborn", stubborn())
        await asyncio.sleep(0.1)
        stopping = asyncio.ensure_future(world.stop("b", for_good=False))
        await asyncio.sleep(0.1)
        world.crash("b")
        world.restart("b")
        release.set()
        assert not await stopping
        assert world.machines["b"].up

    finish(world, story())


def test_a_task_spawned_from_outside_belongs_to_its_host() -> None:
    world = world_of("a")
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(5.0)
        done.append("done")

    async def story() -> None:
        world.host("a").tasks.spawn("worker", work())
        await asyncio.sleep(1.0)
        world.crash("a")
        await asyncio.sleep(10.0)

    finish(world, story())
    assert done == []


def test_a_task_that_dies_unseen_fails_the_run() -> None:
    async def main(host: Host) -> None:
        raise ValueError("a bug")

    world = one(main)
    world.run(asyncio.sleep(1.0))
    world.close()
    assert world.failures == [
        "framework: task 'main' of a died of ValueError('a bug') (at 0.000000 s)"
    ]


def test_a_process_that_gives_up_for_a_good_reason_is_started_again() -> None:
    lives: list[int] = []

    async def main(host: SimHost) -> None:
        lives.append(host.generation)
        if host.generation < 3:
            raise OSError(errno.EIO, "the disk is broken")

    world = one(main, forgives=lambda _task, error: isinstance(error, OSError))
    finish(world, asyncio.sleep(30.0))
    assert lives == [1, 2, 3]
    assert world.coverage["process-exit"] == 2


def test_a_host_taken_down_for_good_stays_down() -> None:
    world = world_of("a")

    async def story() -> None:
        world.crash("a")
        world.restart_after("a", 1.0)
        world.crash("a", for_good=True)
        await asyncio.sleep(5.0)
        assert not world.machines["a"].up
        world.restart("a")
        assert world.machines["a"].up

    finish(world, story())


class Never(Checker):
    def on_bad(self, at: float, node: str, count: int) -> None:
        self.fail(f"{node} did it {count} times")


def test_checkers_see_what_is_observed_and_end_the_run() -> None:
    lines: list[str] = []
    world = World(1, trace=Trace(lines.append), checkers=[Never()])

    async def story() -> None:
        world.observe("good", node="a")
        await asyncio.sleep(2.0)
        world.observe("bad", node="a", count=2)
        await asyncio.sleep(2.0)
        pytest.fail("the run went on")

    world.run(story())
    world.close()
    assert world.failures == ["Never: a did it 2 times (at 2.000000 s)"]
    assert lines == [
        "    0.000000  a           good",
        "    2.000000  a           bad count=2",
        "    2.000000              FAILED Never: a did it 2 times (at 2.000000 s)",
    ]


def test_text_of_facts_is_the_same_everywhere() -> None:
    assert canonical({"b", "a"}) == "{a, b}"
    assert canonical([frozenset((2, 1)), {"k": {1}}]) == "({1, 2}, {k: {1}})"


def test_the_hash_covers_everything_said() -> None:
    def digest(data: bytes, takes_s: float) -> str:
        trace = Trace()
        trace.sent(1.0, "a", "b", data, takes_s)
        return trace.digest()

    assert len({digest(b"x", 1.0), digest(b"y", 1.0), digest(b"x", 2.0)}) == 3
    assert digest(b"x", 1.0) == digest(b"x", 1.0)
