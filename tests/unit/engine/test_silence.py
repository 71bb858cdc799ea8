"""For how long a load may be quiet: what its phase, its calls and its users' sleeps say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import pytest

from hyperscale.engine.clock import LoadClock
from hyperscale.engine.silence import QUIET_S, SLEEP_S_MIN, Silence
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.workload.load import ClosedVUs

INF = float("inf")


class Quiet:
    """A pace with these users and nothing planned, and clients without calls."""

    def __init__(self, calls_by: float = INF, starts_by: float = INF) -> None:
        self.load = ClosedVUs(vus=1, duration_s=900.0, graceful_stop_s=0.0)
        self.clock = LoadClock()
        self.population = self
        self.tasks: list[tuple[asyncio.Task[None], Any]] = []
        self._calls_by, self._starts_by = calls_by, starts_by

    def users(self) -> list[tuple[asyncio.Task[None], Any]]:
        return self.tasks

    def moves_by(self, now: float) -> float:
        return now + self._calls_by

    def starts_by(self, now: float) -> float:
        return now + self._starts_by


async def told(quiet: Quiet, *users: Callable[[], Awaitable[Any]], working: bool = True) -> Any:
    async def live(does: Callable[[], Awaitable[Any]]) -> None:
        await does()

    for does in users:
        task = asyncio.create_task(live(does))
        quiet.tasks.append((task, SimpleNamespace(working=working)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    silence = Silence(quiet, quiet)  # type: ignore[arg-type]
    silence.phase_ends_s = None
    said = silence.told(perf_counter(), None)
    for task, _ in quiet.tasks:
        task.cancel()
    return said


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def sleeper(seconds: float) -> Callable[[], Awaitable[Any]]:
    return lambda: asyncio.sleep(seconds)


def test_users_that_hang_explain_nothing() -> None:
    assert asyncio.run(told(Quiet(), forever, forever)) is None


def test_the_first_sleeper_that_wakes_says_for_how_long() -> None:
    said = asyncio.run(told(Quiet(), forever, sleeper(600.0), sleeper(300.0)))
    assert said == pytest.approx(300.0, abs=1.0)


@pytest.mark.parametrize("seconds", [SLEEP_S_MIN / 2, 1_000.0])
def test_polling_and_sleeps_beyond_the_end_lead_nowhere(seconds: float) -> None:
    assert asyncio.run(told(Quiet(), sleeper(seconds))) is None


def test_a_pause_between_iterations_may_outlast_the_load() -> None:
    assert asyncio.run(told(Quiet(), sleeper(1_000.0), working=False)) is not None


@pytest.mark.parametrize("quiet", [Quiet(calls_by=90.0), Quiet(starts_by=90.0)])
def test_calls_in_flight_and_arrivals_to_come_explain_it(quiet: Quiet) -> None:
    assert asyncio.run(told(quiet, forever)) == pytest.approx(90.0)


def test_it_is_said_once_a_second_and_not_while_something_moves() -> None:
    async def story() -> None:
        quiet = Quiet(calls_by=90.0)
        silence = Silence(quiet, quiet)  # type: ignore[arg-type]
        silence.phase_ends_s = None
        moved = Delta(seq=1, requests=[RequestDelta(RequestKey("get"), count=1)])
        assert silence.told(100.0, moved) is None
        assert silence.told(100.0 + QUIET_S / 2, None) is None
        assert silence.told(100.0 + QUIET_S, None) is not None
        assert silence.told(100.1 + QUIET_S, None) is None

    asyncio.run(story())


def test_a_phase_lasts_as_long_as_it_says() -> None:
    quiet = Quiet()
    silence = Silence(quiet, quiet)  # type: ignore[arg-type]
    silence.phase_ends_s = 200.0
    assert silence.told(perf_counter(), None) == pytest.approx(200.0, abs=1.0)
    silence.phase_ends_s = -1.0
    assert silence.told(perf_counter() + QUIET_S, None) is None
