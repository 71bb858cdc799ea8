"""Slots with real processes: short jobs go in series, nobody waits behind a long one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from hyperscale.runtime.real import run
from hyperscale.scheduler.queue.job import Failure, new_job
from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.worker.executors.executor import Broken, Done, Result, Task
from hyperscale.scheduler.worker.executors.orphans import Children
from hyperscale.scheduler.worker.executors.python import PythonExecutor
from hyperscale.scheduler.worker.executors.registry import Executors
from hyperscale.scheduler.worker.running import Running
from hyperscale.scheduler.worker.slots import UPCOMING_MAX, Slots
from tests.unit.scheduler.worlds import host_of


def held(job_id: str, call: str, args: str = "[]", timeout_s: float | None = None) -> Running:
    payload = {"call": call, "args": args}
    spec = JobSpec(name=job_id, kind="python", payload=payload, timeout_s=timeout_s)
    return Running(new_job(job_id, spec, 0))


def short(prefix: str, count: int) -> list[Running]:
    return [held(f"{prefix}{number:03}", "os:getpid") for number in range(count)]


def long(job_id: str = "long", timeout_s: float | None = None) -> Running:
    return held(job_id, "time:sleep", "[600]", timeout_s)


class Bench:
    def __init__(self, count: int) -> None:
        self.ended: dict[str, Result] = {}
        self._changed = asyncio.Event()
        executors = Executors({"python": PythonExecutor(["os:getpid", "time:*"], Children())})
        self.executors = executors
        self.slots = Slots(host_of(), count, executors, self._over)

    def _over(self, running: Running, result: Result, _: float) -> None:
        assert running.job.id not in self.ended, "a job ends once"
        self.ended[running.job.id] = result
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def bench(count: int) -> AsyncIterator[Bench]:
    made = Bench(count)
    try:
        async with asyncio.timeout(60):
            yield made
            await made.slots.idle()
    finally:
        await made.executors.close()


def test_no_short_job_waits_behind_a_long_one() -> None:
    async def main() -> None:
        async with bench(2) as b:
            first = long()
            jobs = short("s", 5 * UPCOMING_MAX)
            b.slots.add([*jobs[:3], first, *jobs[3:]])
            await b.until(lambda: len(b.ended) == len(jobs))
            assert "long" not in b.ended
            assert all(isinstance(result, Done) for result in b.ended.values())
            assert not b.slots.stop(first)
            await b.until(lambda: "long" in b.ended)
            result = b.ended["long"]
            assert isinstance(result, Broken)
            assert result.failure is Failure.CANCELLED

    run(main())


def test_a_timeout_ends_one_job_and_the_slot_goes_on() -> None:
    async def main() -> None:
        async with bench(1) as b:
            b.slots.add([*short("a", 5), long(timeout_s=0.2), *short("b", 20)])
            await b.until(lambda: len(b.ended) == 26)
            failures = {i: r.failure for i, r in b.ended.items() if isinstance(r, Broken)}
            assert failures == {"long": Failure.TIMEOUT}

    run(main())


def test_what_has_not_begun_can_be_had_back() -> None:
    async def main() -> None:
        async with bench(1) as b:
            blocker, jobs = long(), short("s", 10)
            b.slots.add([blocker, *jobs])
            while blocker.task is None:  # noqa: ASYNC110 - nobody tells when a slot begins
                await asyncio.sleep(0)
            assert b.slots.stop(jobs[4])
            left = [job for job in jobs if job is not jobs[4]]
            assert b.slots.not_begun() == left
            for running in left:
                assert b.slots.stop(running)
            assert not b.slots.stop(blocker)
            await b.until(lambda: bool(b.ended))
        assert list(b.ended) == ["long"]

    run(main())


def test_slots_at_a_job_for_longer_are_not_quick() -> None:
    async def main() -> None:
        async with bench(2) as b:
            blocker = long()
            b.slots.add([blocker])
            while blocker.task is None:  # noqa: ASYNC110 - nobody tells when a slot begins
                await asyncio.sleep(0)
            assert b.slots.quick(600) == 2
            while b.slots.quick(0) == 2:  # noqa: ASYNC110 - until the clock has moved
                await asyncio.sleep(0)
            assert b.slots.quick(0) == 1
            b.slots.stop(blocker)
            await b.until(lambda: bool(b.ended))
            await b.slots.idle()
            assert b.slots.quick(0) == 2

    run(main())


def test_a_slot_that_has_just_ended_misses_nothing() -> None:
    async def main() -> None:
        async with bench(2) as b:
            for number in range(100):
                b.slots.add(short(f"n{number}-", 1))
                await b.until(lambda wanted=number + 1: len(b.ended) == wanted)  # type: ignore[misc]

    run(main())


def test_kinds_without_a_lane_run_one_by_one() -> None:
    class Plain:
        running = most = 0

        async def run(self, task: Task) -> Result:
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0)
            self.running -= 1
            return Done()

        async def close(self) -> None: ...

    async def main() -> None:
        plain = Plain()
        ended: list[str] = []
        slots = Slots(
            host_of(),
            3,
            Executors({"plain": plain}),
            lambda running, _, __: ended.append(running.job.id),
        )
        jobs = [new_job(f"p{i:02}", JobSpec(name="p", kind="plain"), 0) for i in range(20)]
        slots.add(Running(job) for job in jobs)
        async with asyncio.timeout(30):
            await slots.idle()
        assert sorted(ended) == [job.id for job in jobs]
        assert plain.most == 3

    run(main())
