"""Background work of the real runner: nothing fails unheard, nothing is left."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from hyperscale.engine.generators import GeneratorProcess
from hyperscale.nodes.worker.engine_runner import EnginePart, EngineRunner


def no_process() -> GeneratorProcess:
    raise OSError(11, "Resource temporarily unavailable")


class Quiet:
    """A part_run that can be let go, once it is told so."""

    cores_done = 0
    busy = ()

    def __init__(self, error: Exception | None = None) -> None:
        self.told = asyncio.Event()
        self._error = error

    async def release(self) -> None:
        await self.told.wait()
        if self._error is not None:
            raise self._error

    def kill(self) -> None:
        self.told.set()


async def all_done() -> None:
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=5.0)


def running_part(runner: EngineRunner, part_run: Quiet) -> EnginePart:
    running = EnginePart.__new__(EnginePart)
    running.processes = []
    running._runner = runner
    running._part_run = part_run
    running._closing = None
    running._left = asyncio.Event()
    runner._running[running] = None
    return running


def test_a_generator_that_cannot_be_started_is_told_at_once() -> None:
    async def story() -> None:
        runner = EngineRunner(1, no_process)
        runner.core_done()
        await all_done()
        await runner.close()
        runner.core_done()
        assert not runner.tasks.names()

    with capture_logs() as said:
        asyncio.run(story())
    assert [line["task"] for line in said] == ["warm a generator"]


@pytest.mark.parametrize("error", [None, RuntimeError("stuck")])
def test_a_closing_outlives_whoever_waits_for_it(error: Exception | None) -> None:
    async def story() -> None:
        runner = EngineRunner(0, GeneratorProcess)
        part_run = Quiet(error)
        running = running_part(runner, part_run)
        waiting = asyncio.create_task(running.close())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert runner.tasks.names() == ["close a part"]
        part_run.told.set()
        await all_done()
        assert not runner.tasks.names()

    with capture_logs() as said:
        asyncio.run(story())
    assert [line["task"] for line in said] == (["close a part"] if error else [])


def test_the_end_of_a_stage_closes_all_and_tells_what_failed() -> None:
    async def story() -> None:
        runner = EngineRunner(0, GeneratorProcess)
        well = running_part(runner, Quiet())
        running_part(runner, Quiet(RuntimeError("stuck")))
        with pytest.raises(RuntimeError, match="stuck"):
            await runner.close()
        assert not runner.tasks.names()
        await well.close()

    with capture_logs() as said:
        asyncio.run(story())
    assert said == []
