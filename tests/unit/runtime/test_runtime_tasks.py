"""Named tasks: listed, reported, drained."""

import asyncio
from typing import Any

import pytest
import structlog

from hyperscale.runtime.tasks import RealTasks

Reports = list[tuple[str, BaseException | None]]


def collector() -> tuple[RealTasks, Reports]:
    reports: Reports = []
    return RealTasks(lambda name, error: reports.append((name, error))), reports


async def forever() -> None:
    await asyncio.Event().wait()


async def fail(error: Exception) -> None:
    raise error


async def turns() -> None:
    """Let the loop turn: once for the task, once for those who hear of its end."""
    for _ in range(3):
        await asyncio.sleep(0)


def test_names_lists_what_runs_sorted() -> None:
    async def main() -> None:
        tasks, _ = collector()
        tasks.spawn("probe", forever())
        tasks.spawn("accept", forever())
        done = tasks.spawn("short", asyncio.sleep(0))
        await done
        assert tasks.names() == ["accept", "probe"]
        await tasks.stop()
        assert tasks.names() == []

    asyncio.run(main())


def test_stop_leaves_no_task_and_allows_none() -> None:
    async def main() -> None:
        tasks, _ = collector()
        for number in range(20):
            tasks.spawn(f"task {number}", forever())
        await tasks.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        with pytest.raises(RuntimeError, match="'late' cannot be started"):
            tasks.spawn("late", forever())

    asyncio.run(main())


def test_stop_waits_for_cleanup_that_takes_time() -> None:
    async def main() -> None:
        tasks, _ = collector()
        steps: list[str] = []

        async def careful() -> None:
            try:
                await forever()
            finally:
                await asyncio.sleep(0)
                steps.append("cleaned")

        tasks.spawn("careful", careful())
        await asyncio.sleep(0)
        await tasks.stop()
        assert steps == ["cleaned"]

    asyncio.run(main())


def test_a_task_that_swallows_its_cancellation_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hyperscale.runtime.tasks.STUBBORN_AFTER_S", 0.01)

    async def main() -> None:
        tasks, reports = collector()

        async def stubborn() -> None:
            for _ in range(2):
                try:
                    await forever()
                except asyncio.CancelledError:
                    continue
            await forever()

        tasks.spawn("stubborn", stubborn())
        await asyncio.sleep(0)
        await tasks.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert reports == [("stubborn", None)] * 2

    asyncio.run(main())


def test_a_task_may_stop_its_own_host() -> None:
    async def main() -> None:
        tasks, _ = collector()
        tasks.spawn("other", forever())
        await tasks.spawn("stopper", tasks.stop())
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_an_exception_nobody_awaits_is_reported_at_once() -> None:
    async def main() -> None:
        tasks, reports = collector()
        error = ValueError("lost")
        tasks.spawn("careless", fail(error))
        await turns()
        assert reports == [("careless", error)]

    asyncio.run(main())


def test_an_awaited_exception_reaches_its_awaiter_only() -> None:
    async def main() -> None:
        tasks, reports = collector()
        with pytest.raises(ValueError, match="seen"):
            await tasks.spawn("watched", fail(ValueError("seen")))
        assert reports == []

    asyncio.run(main())


def test_cancelling_is_no_failure() -> None:
    async def main() -> None:
        tasks, reports = collector()
        task = tasks.spawn("cut", forever())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.name == "cut"
        assert reports == []

    asyncio.run(main())


def test_the_default_report_is_a_log_line() -> None:
    async def main() -> Any:
        tasks = RealTasks()
        with structlog.testing.capture_logs() as lines:
            tasks.spawn("careless", fail(ValueError("lost")))
            await turns()
        return lines

    (line,) = asyncio.run(main())
    assert line["event"] == "task failed"
    assert line["task"] == "careless"
    assert line["log_level"] == "error"
