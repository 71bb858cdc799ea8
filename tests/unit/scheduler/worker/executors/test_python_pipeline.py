"""A pipeline to a real process: what is upcoming runs in order; it is begun or withdrawn, never
both.

On the product's own event loop.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hyperscale.runtime.real import run
from hyperscale.scheduler.queue.job import Failure
from hyperscale.scheduler.worker.executors.executor import Broken, Done, Task
from hyperscale.scheduler.worker.executors.orphans import Children
from hyperscale.scheduler.worker.executors.python import PythonExecutor, PythonPipeline

OS_CALLS = [f"os:{name}" for name in ("getpid", "mkdir", "rmdir", "_exit")]


def task(job_id: str, call: str, args: str = "") -> Task:
    return Task(
        job_id=job_id, token=1, payload={"call": call, "args": args}, progress=lambda _: None
    )


def pid_of(job_id: str) -> Task:
    return task(job_id, "os:getpid")


@asynccontextmanager
async def opened() -> AsyncIterator[PythonPipeline]:
    executor = PythonExecutor([*OS_CALLS, "time:sleep"], Children())
    pipeline = executor.pipeline()
    try:
        async with asyncio.timeout(60):
            yield pipeline
    finally:
        await pipeline.close()
        await executor.close()


def test_upcoming_jobs_run_in_order_in_one_process(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened() as pipeline:
            first = await pipeline.run(pid_of("a"), [])
            nested = [tmp_path / "x", tmp_path / "x" / "y", tmp_path / "x" / "y" / "z"]
            makes = [task(p.name, "os:mkdir", f'["{p}"]') for p in nested]
            results = [await pipeline.run(makes[0], makes[1:])]
            results += [await pipeline.run(make, []) for make in makes[1:]]
            assert all(isinstance(result, Done) for result in results)
            assert nested[-1].is_dir()
            assert (await pipeline.run(pid_of("b"), [])).log == first.log

    run(main())


def test_a_call_is_begun_or_withdrawn_never_both(tmp_path: Path) -> None:
    dice = random.Random(7)

    async def main() -> None:
        async with opened() as pipeline:
            for turn in range(30):
                ids = [f"{turn}-{number}" for number in range(12)]
                tasks = [task(i, "os:mkdir", f'["{tmp_path / i}"]') for i in ids]
                first = asyncio.ensure_future(pipeline.run(tasks[0], tasks[1:]))
                for _ in range(1 + dice.randrange(6)):
                    await asyncio.sleep(0)
                begun = pipeline.withdraw()
                await first
                for each in tasks[1:]:
                    if each.job_id in begun:
                        assert isinstance(await pipeline.run(each, []), Done)
                assert {i for i in ids if (tmp_path / i).exists()} == {ids[0], *begun}

    run(main())


def test_what_is_withdrawn_while_the_process_starts_is_not_begun(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened() as pipeline:
            other = task("b", "os:mkdir", f'["{tmp_path / "b"}"]')
            first = asyncio.ensure_future(pipeline.run(pid_of("a"), [other]))
            await asyncio.sleep(0)
            assert pipeline.withdraw() == frozenset()
            assert isinstance(await first, Done)
            assert isinstance(await pipeline.run(pid_of("c"), []), Done)
            assert not (tmp_path / "b").exists()

    run(main())


def test_what_ends_its_process_harms_nobody_else() -> None:
    async def main() -> None:
        async with opened() as pipeline:
            before = await pipeline.run(pid_of("a"), [])
            upcoming = [task("bad", "os:_exit", "[5]"), pid_of("b"), pid_of("c")]
            same = await pipeline.run(pid_of("first"), upcoming)
            bad = await pipeline.run(upcoming[0], [])
            assert isinstance(bad, Broken)
            assert (bad.failure, bad.exit_code) == (Failure.ERROR, 5)
            after = [await pipeline.run(each, []) for each in upcoming[1:]]
            assert same.log == before.log != after[0].log
            assert all(isinstance(result, Done) for result in after)

    run(main())


def test_a_job_that_is_stopped_takes_nobody_with_it() -> None:
    async def main() -> None:
        async with opened() as pipeline:
            upcoming = [pid_of("b"), pid_of("c")]
            long = asyncio.ensure_future(
                pipeline.run(task("long", "time:sleep", "[600]"), upcoming)
            )
            await asyncio.sleep(0.05)
            long.cancel()
            with pytest.raises(asyncio.CancelledError):
                await long
            results = [await pipeline.run(each, []) for each in upcoming]
            assert all(isinstance(result, Done) for result in results)

    run(main())


def test_an_upcoming_job_that_cannot_be_called_fails_in_its_turn() -> None:
    async def main() -> None:
        async with opened() as pipeline:
            upcoming = [task("no", "shutil:rmtree"), pid_of("b")]
            assert isinstance(await pipeline.run(pid_of("a"), upcoming), Done)
            refused = await pipeline.run(upcoming[0], [])
            assert isinstance(refused, Broken)
            assert refused.failure is Failure.PERMANENT
            assert isinstance(await pipeline.run(upcoming[1], []), Done)

    run(main())


def test_what_has_run_meanwhile_is_had_without_waiting(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened() as pipeline:
            upcoming = [
                task("made", "os:mkdir", f'["{tmp_path / "made"}"]'),
                task("no", "shutil:rmtree"),
                task("bad", "os:rmdir", f'["{tmp_path / "none"}"]'),
                task("long", "time:sleep", "[600]"),
            ]
            await pipeline.run(pid_of("a"), upcoming)
            while (bad := pipeline.answered("bad")) is None:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.001)
            assert isinstance(bad, Broken)
            assert isinstance(pipeline.answered("made"), Done)
            assert pipeline.answered("made") is None, "it was told"
            assert pipeline.answered("no") is None, "it is not for the process to refuse"
            assert pipeline.answered("long") is None, "it runs, or was not begun"

    run(main())
