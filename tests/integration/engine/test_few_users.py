"""Fewer users, arrivals, iterations or rows than cores: nobody waits for a core without work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hyperscale import CustomResult, Workflow, feed, step
from hyperscale.engine.part_run import PartRun
from hyperscale.testing import HTTPResponse
from tests.integration.engine.machine import Machine, until

PARTS = ((0, 2), (2, 2))  # two workers of two cores each


class Home(Workflow):
    vus = 4
    duration = "60s"

    async def teardown(self) -> None:
        raise RuntimeError("torn down")

    @step()
    async def home(self) -> HTTPResponse:
        return await self.client.http.get("/")


def parts_of(machine: Machine, total: int = 4) -> list[PartRun]:
    return [machine.part(*part, total, run_setup=part[0] == 0) for part in PARTS]


async def run_load(*parts: PartRun) -> None:
    await asyncio.gather(*(part.prepare() for part in parts))
    await asyncio.gather(*(part.run_load({}) for part in parts))


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        ({"vus": 1, "iterations": 3}, 3),
        ({"vus": 4, "iterations": 1}, 1),
        ({"vus": 3, "iterations": 5}, 5),
        ({"vus": 1, "rate": "4/s", "duration": 1.0, "max_vus": 2}, 4),
        ({"rate": "2/s", "duration": 1.0, "max_vus": 4}, 2),
        ({"stages": (("500ms", 1), ("500ms", 0))}, None),
    ],
)
def test_a_load_with_less_to_do_than_there_are_cores(
    load: dict[str, Any],
    expected: int | None,
    target: str,
    stats: Callable[[], dict[str, Any]],
) -> None:
    machine = Machine(Home, target, 4, **load)

    async def scenario() -> list[PartRun]:
        parts = parts_of(machine)
        await run_load(*parts)
        await asyncio.gather(*(part.release() for part in parts))
        return parts

    parts = machine.run(scenario)
    assert [part.outcome for part in parts] == ["completed", "completed"]
    requests = sum(part.aggregate.requests for part in parts)
    assert requests == stats()["requests"]
    if expected is None:
        assert requests > 0
    else:
        assert requests == expected


def test_a_part_without_anything_to_do_still_tears_down(target: str) -> None:
    """All iterations were made before its worker was lost."""
    machine = Machine(Home, target, 1, vus=1, iterations=3)

    async def scenario() -> tuple[PartRun, str]:
        part = machine.part(0, 1, 1, attempt=2, iterations_done=3)
        await run_load(part)
        warning = await part.teardown()
        await part.release()
        return part, warning

    part, warning = machine.run(scenario)
    assert (part.outcome, part.aggregate.requests) == ("completed", 0)
    assert "torn down" in warning


def vus_of(parts: list[PartRun]) -> int:
    return sum(part.aggregate.vus for part in parts)


def test_a_load_by_time_is_scaled_to_one_user_and_back(target: str) -> None:
    machine = Machine(Home, target, 4)

    async def scenario() -> None:
        parts = parts_of(machine)
        await asyncio.gather(*(part.prepare() for part in parts))
        running = [asyncio.create_task(part.run_load({})) for part in parts]
        await until(lambda: vus_of(parts) == 4)
        for change, expected in ((-3, 1), (2, 3), (6, 9), (-8, 1), (3, 4)):
            assert all(part.scale(change) for part in parts)
            await until(lambda expected=expected: vus_of(parts) == expected)  # type: ignore[misc]
        assert not any(task.done() for task in running), "a core without users ended its load"
        for part in parts:
            part.stop(now=True)
        await asyncio.gather(*running)
        await asyncio.gather(*(part.release() for part in parts))

    machine.run(scenario)


class Slow(Home):
    """Long enough that all its users are seen before it ends."""

    @step()
    async def home(self) -> HTTPResponse:
        return await self.client.http.get("/delay/100")


def test_shared_iterations_are_all_made_by_fewer_users(
    target: str, stats: Callable[[], dict[str, Any]]
) -> None:
    machine = Machine(Slow, target, 4, vus=8, iterations=320)

    async def scenario() -> list[PartRun]:
        parts = parts_of(machine)
        await asyncio.gather(*(part.prepare() for part in parts))
        running = [asyncio.create_task(part.run_load({})) for part in parts]
        await until(lambda: vus_of(parts) == 8)
        assert all(part.scale(-7) for part in parts)
        await asyncio.gather(*running)
        await asyncio.gather(*(part.release() for part in parts))
        return parts

    parts = machine.run(scenario, limit_s=60.0)
    assert [part.outcome for part in parts] == ["completed", "completed"]
    assert sum(part.aggregate.iterations for part in parts) == 320 == stats()["requests"]


class FewRows(Workflow):
    vus = 4
    duration = "60s"
    data = feed([{"n": 1}, {"n": 2}], when_done="stop")

    @step()
    async def take(self, row: Any = None) -> CustomResult:
        return CustomResult()


class FewRowsForUsers(FewRows):
    data = feed([{"n": 1}, {"n": 2}], per="vu", when_done="stop")
    iterations_per_vu = 3


@pytest.mark.parametrize(("workflow", "expected"), [(FewRows, 2), (FewRowsForUsers, 6)])
def test_fewer_rows_than_cores(workflow: type[Workflow], expected: int) -> None:
    machine = Machine(workflow, "http://localhost", 4)

    async def scenario() -> list[PartRun]:
        parts = parts_of(machine)
        await run_load(*parts)
        await asyncio.gather(*(part.release() for part in parts))
        return parts

    parts = machine.run(scenario)
    assert [part.outcome for part in parts] == ["completed", "completed"]
    assert sum(part.aggregate.iterations for part in parts) == expected


class Uneven(Workflow):
    """The second core has no row to work with."""

    vus = 2
    duration = "60s"
    data = feed([{"n": 1}], per="vu", when_done="stop")

    @step()
    async def wait(self, row: Any = None) -> CustomResult:
        await asyncio.sleep(0.01)
        return CustomResult()


def test_a_core_is_done_before_its_part_is() -> None:
    machine = Machine(Uneven, "http://localhost", 3)
    told: list[int] = []

    async def scenario() -> None:
        part = machine.part(0, 3, 3, on_done=lambda: told.append(part.cores_done))
        assert part.cores_done == 1, "two users need no third core"
        await part.prepare()
        running = asyncio.create_task(part.run_load({}))
        await until(lambda: bool(told))
        assert (told, running.done()) == ([2], False)
        part.stop(now=True)
        await running
        assert part.cores_done == 3
        await part.release()

    machine.run(scenario)
