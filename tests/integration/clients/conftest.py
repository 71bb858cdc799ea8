from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from hyperscale.clients.io.readiness import SETTING

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
