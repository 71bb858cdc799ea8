"""The loop in virtual time: asyncio as usual, only the clock jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from hyperscale.sim.events import Nap
from hyperscale.sim.loop import SimLoop, SimulationStuck
from hyperscale.sim.process import Process


def run(main: Coroutine[Any, Any, Any], loop: SimLoop | None = None) -> Any:
    return (loop or SimLoop()).run_until_complete(main)


def test_time_jumps_to_the_next_timer() -> None:
    async def main() -> list[tuple[float, str]]:
        loop, said = asyncio.get_running_loop(), []

        async def speak(word: str, after: float) -> None:
            await asyncio.sleep(after)
            said.append((loop.time(), word))

        await asyncio.gather(speak("late", 86_400.0), speak("early", 1.5))
        return said

    assert run(main()) == [(1.5, "early"), (86_400.0, "late")]


def test_timers_of_one_instant_run_in_the_order_they_were_set() -> None:
    async def main() -> list[int]:
        loop, order = asyncio.get_running_loop(), []
        for number in range(20):
            loop.call_at(1.0, order.append, number)
        await asyncio.sleep(2.0)
        return order

    assert run(main()) == list(range(20))


def test_a_nap_wakes_by_the_clock_of_its_process_and_in_turn() -> None:
    loop = SimLoop()
    process = Process(loop, "fast", origin=500.0, rate=2.0)

    async def main() -> list[tuple[str, float]]:
        woken: list[tuple[str, float]] = []

        async def sleep(name: str, seconds: float) -> None:
            await Nap(loop, seconds)
            woken.append((name, loop.now))

        async with asyncio.TaskGroup() as group:
            for name, seconds in (("second", 4.0), ("first", 2.0), ("third", 4.0)):
                process.context.copy().run(group.create_task, sleep(name, seconds))
        return woken

    assert run(main(), loop) == [("first", 1.0), ("second", 2.0), ("third", 2.0)]


def test_a_nap_can_be_cancelled_and_timed_out() -> None:
    loop = SimLoop()
    process = Process(loop, "p")

    async def main() -> float:
        async def sleep() -> None:
            await Nap(loop, 100.0)

        task = process.context.run(asyncio.ensure_future, sleep())
        await asyncio.sleep(1.0)
        assert task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.0):
                await Nap(loop, 100.0)
        early = process.context.run(asyncio.ensure_future, sleep())
        early.cancel()
        with pytest.raises(asyncio.CancelledError):
            await early
        return loop.now

    assert run(main(), loop) == 3.0


def test_what_enters_a_process_waits_while_it_stands_still_or_others_are_first() -> None:
    loop = SimLoop()
    process = Process(loop, "p")
    seen: list[tuple[str, float]] = []

    async def main() -> None:
        def note(name: str) -> None:
            seen.append((name, loop.now))

        loop.at(1.0, loop.enter, process, note, "running")
        loop.at(2.0, process.pause, 5.0)
        loop.at(3.0, loop.enter, process, note, "paused")
        loop.at(5.0, process.resume)
        await asyncio.sleep(6.0)
        loop.call_soon(note, "ready before")
        loop.enter(process, note, "enters")
        await asyncio.sleep(0)

    run(main(), loop)
    assert seen == [("running", 1.0), ("paused", 5.0), ("ready before", 6.0), ("enters", 6.0)]


def test_locks_queues_events_timeouts_and_groups_work() -> None:
    async def main() -> None:
        queue: asyncio.Queue[int] = asyncio.Queue(1)
        lock, event = asyncio.Lock(), asyncio.Event()

        async def produce() -> None:
            for number in range(3):
                async with lock:
                    await queue.put(number)
            event.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            assert [await queue.get() for _ in range(3)] == [0, 1, 2]
            await event.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 3.0)
        assert asyncio.get_running_loop().time() == 3.0

    run(main())


def test_asyncio_runner_accepts_the_loop() -> None:
    with asyncio.Runner(loop_factory=SimLoop) as runner:
        assert runner.run(asyncio.sleep(1000.0, "done")) == "done"


def test_a_cancelled_timer_never_fires_and_does_not_stay() -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        for _ in range(10_000):
            loop.call_later(1000.0, pytest.fail, "fired").cancel()
        return len(loop._timers)

    assert run(main()) < 2_500


def test_waiting_for_nothing_is_reported_with_the_names_of_those_who_wait() -> None:
    async def main() -> None:
        task = asyncio.get_running_loop().create_task(asyncio.Event().wait(), name="sleeper")
        await task

    with pytest.raises(SimulationStuck, match=r"nothing is left.*sleeper"):
        run(main())


def test_sleeping_for_ever_is_the_same() -> None:
    with pytest.raises(SimulationStuck, match="end of time"):
        run(asyncio.sleep(float("inf")))


def test_time_that_stands_still_is_reported() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        def again() -> None:
            loop.call_soon(again)

        again()
        await asyncio.sleep(1.0)

    with pytest.raises(SimulationStuck, match="no time has passed"):
        run(main(), SimLoop(events_per_instant_max=1_000))


def test_threads_are_refused() -> None:
    async def main() -> None:
        await asyncio.to_thread(len, "")

    with pytest.raises(RuntimeError, match="no place in a simulation"):
        run(main())


def test_an_error_in_a_callback_is_collected_and_the_loop_goes_on() -> None:
    loop = SimLoop()

    async def main() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(1.0)

    run(main(), loop)
    [(message, error)] = loop.errors
    assert "lambda" in message
    assert isinstance(error, ZeroDivisionError)


def test_tasks_of_a_group_are_cancelled_in_the_order_they_were_made() -> None:
    async def main() -> list[int]:
        order: list[int] = []

        async def wait(number: int) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                order.append(number)

        async def fail() -> None:
            await asyncio.sleep(1.0)
            raise ValueError

        async def burst() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(50):
                    group.create_task(wait(number))
                group.create_task(fail())

        with pytest.raises(ExceptionGroup):
            await burst()
        return order

    assert run(main()) == list(range(50))


def test_abandoned_generators_are_finished() -> None:
    finished: list[str] = []

    async def numbers() -> Any:
        try:
            yield 1
        finally:
            await asyncio.sleep(1.0)
            finished.append("closed")

    async def main() -> None:
        async for _ in numbers():
            break
        await asyncio.sleep(2.0)

    run(main())
    assert finished == ["closed"]


class TestProcess:
    def test_its_clock_has_its_own_origin_and_rate(self) -> None:
        loop = SimLoop()
        process = Process(loop, "p", origin=100.0, rate=1.5)
        seen: list[float] = []

        def start() -> None:
            loop.call_later(3.0, lambda: seen.append(loop.time()))

        async def main() -> float:
            loop.post(process, start)
            await asyncio.sleep(10.0)
            return loop.time()

        assert loop.run_until_complete(main()) == 10.0
        assert seen == [pytest.approx(103.0)]
        assert process.local_time(10.0) == 115.0

    def test_a_paused_process_catches_up_in_order(self) -> None:
        loop = SimLoop()
        process = Process(loop, "p")
        seen: list[tuple[float, int]] = []

        def start() -> None:
            for number in (1, 2, 3):
                loop.call_later(number, lambda number=number: seen.append((loop.now, number)))

        async def main() -> None:
            loop.post(process, start)
            await asyncio.sleep(1.5)
            process.pause(until=5.0)
            await asyncio.sleep(3.5)
            process.resume()
            await asyncio.sleep(1.0)

        loop.run_until_complete(main())
        assert seen == [(1.0, 1), (5.0, 2), (5.0, 3)]

    def test_nothing_of_a_dead_process_runs(self) -> None:
        loop = SimLoop()
        process = Process(loop, "p")

        async def main() -> None:
            loop.post(process, lambda: loop.call_later(1.0, pytest.fail, "ran"))
            await asyncio.sleep(0.5)
            process.kill()
            loop.post(process, pytest.fail, "ran")
            await asyncio.sleep(5.0)

        loop.run_until_complete(main())
        assert not loop.errors
