"""Background work of the real stage: nothing fails unheard, nothing is left."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from hyperscale.engine.generators import GeneratorProcess
from hyperscale.nodes.worker.engine_stage import EnginePerformer, EngineStage


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


def performer_of(stage: EngineStage, part_run: Quiet) -> EnginePerformer:
    performer = EnginePerformer.__new__(EnginePerformer)
    performer.processes = []
    performer._stage = stage
    performer._part_run = part_run
    performer._closing = None
    performer._left = asyncio.Event()
    stage._playing[performer] = None
    return performer


def test_a_generator_that_cannot_be_started_is_told_at_once() -> None:
    async def story() -> None:
        stage = EngineStage(1, no_process)
        stage.core_done()
        await all_done()
        await stage.close()
        stage.core_done()
        assert not stage.tasks.names()

    with capture_logs() as said:
        asyncio.run(story())
    assert [line["task"] for line in said] == ["warm a generator"]


@pytest.mark.parametrize("error", [None, RuntimeError("stuck")])
def test_a_closing_outlives_whoever_waits_for_it(error: Exception | None) -> None:
    async def story() -> None:
        stage = EngineStage(0, GeneratorProcess)
        part_run = Quiet(error)
        performer = performer_of(stage, part_run)
        waiting = asyncio.create_task(performer.close())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert stage.tasks.names() == ["close a performer"]
        part_run.told.set()
        await all_done()
        assert not stage.tasks.names()

    with capture_logs() as said:
        asyncio.run(story())
    assert [line["task"] for line in said] == (["close a performer"] if error else [])


def test_the_end_of_a_stage_closes_all_and_tells_what_failed() -> None:
    async def story() -> None:
        stage = EngineStage(0, GeneratorProcess)
        well = performer_of(stage, Quiet())
        performer_of(stage, Quiet(RuntimeError("stuck")))
        with pytest.raises(RuntimeError, match="stuck"):
            await stage.close()
        assert not stage.tasks.names()
        await well.close()

    with capture_logs() as said:
        asyncio.run(story())
    assert said == []
