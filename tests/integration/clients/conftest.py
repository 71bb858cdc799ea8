from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest
import uvloop

from hyperscale.clients.io.readiness import SETTING

MAY_NOT_SKIP = "TESTS_MAY_NOT_SKIP"  # set where all servers could be installed

Run = Callable[[Coroutine[Any, Any, Any]], Any]
LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


def runner_of(factory: Callable[[], asyncio.AbstractEventLoop]) -> Run:
    def runner(coroutine: Coroutine[Any, Any, Any]) -> Any:
        async def bounded() -> Any:
            async with asyncio.timeout(30):
                return await coroutine

        with asyncio.Runner(loop_factory=factory) as one:
            return one.run(bounded())

    return runner


@pytest.fixture(params=list(LOOPS))
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine on each kind of event loop, and not for ever."""
    return runner_of(LOOPS[request.param])


@pytest.fixture(params=["uvloop-epoll", "asyncio-epoll", "uvloop-asyncio", "asyncio-asyncio"])
def new_loop(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], asyncio.AbstractEventLoop]:
    """Makes each kind of event loop, for each way to hear that a socket is ready."""
    loop, readiness = request.param.split("-")
    monkeypatch.setenv(SETTING, readiness)
    return LOOPS[loop]


@pytest.fixture
def run_each_way(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> Run:
    """As `run`, with each way to hear that a socket is ready as well."""
    return runner_of(new_loop)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, None]:
    """A server that should be there and is not: nobody would look at a test that is skipped."""
    report = (yield).get_result()
    if report.skipped and os.environ.get(MAY_NOT_SKIP):
        report.outcome, report.longrepr = "failed", f"may not be skipped: {report.longrepr}"
