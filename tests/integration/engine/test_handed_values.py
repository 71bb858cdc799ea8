"""Values between workflows of a real run: plain ones cross, others only when the test says so."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hyperscale import Provide, Use, Workflow, action, depends, state, step
from hyperscale.engine.messages import Stamped
from hyperscale.errors import ExitCode, RunFailed
from hyperscale.local import run
from hyperscale.metrics.results import Results
from hyperscale.testing import HTTPResponse
from tests.integration.engine.machine import Machine

PLAIN = {
    "pair": ("a", 1),
    "tags": {"x", "y"},
    "at": datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    "rows": [{"id": 1, 2: b"raw"}, None, 1.5, True],
}


@pytest.fixture
def go(target: str) -> Callable[..., Results]:
    return lambda *workflows: run(*workflows, base_url=target, workers=1)


class Gives(Workflow):
    @action()
    async def prepare(self) -> None:
        self.context.update(PLAIN)


@depends("Gives")
class Takes(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def look(self) -> HTTPResponse:
        got = {name: self.context[name] for name in PLAIN}
        assert repr(sorted(got.pop("tags"))) == "['x', 'y']"
        assert repr(got) == repr({name: PLAIN[name] for name in got})
        return await self.client.http.get("/")


def test_plain_values_keep_their_types(go: Callable[..., Results]) -> None:
    results = go(Gives, Takes)
    assert results.exit_code == ExitCode.PASSED, results.workflows


class SetsUp(Workflow):
    vus = 1
    iterations = 1

    async def setup(self) -> None:
        self.context["prices"] = {"tea": [Decimal("1.50")]}

    @step()
    async def look(self, prices: Any = None) -> HTTPResponse:
        assert prices == {"tea": [Decimal("1.50")]}
        return await self.client.http.get("/")


class SetsUpPickled(SetsUp):
    pickle_values = True


def test_a_value_that_is_not_plain_is_refused_with_a_way_out(go: Callable[..., Results]) -> None:
    with pytest.raises(RunFailed) as refused:
        go(SetsUp)
    for word in ("SetsUp", "'prices'", "decimal.Decimal"):
        assert word in refused.value.message
    assert "pickle_values = True" in refused.value.hint


def test_a_test_that_asks_for_pickles_gets_them(go: Callable[..., Results]) -> None:
    results = go(SetsUpPickled)
    assert results.exit_code == ExitCode.PASSED, results.workflows


class Offers(Workflow):
    pickle_values = True
    vus = 1
    iterations = 1

    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get("/")

    @state("Buys")
    def price(self) -> Provide[Decimal]:
        return Decimal("1.50")


@depends("Offers")
class Buys(Workflow):
    vus = 1
    iterations = 1

    @state("Offers")
    def paid(self, price: Decimal = Decimal(0)) -> Use[Decimal]:
        return price * 2

    @step()
    async def get(self) -> HTTPResponse:
        assert self.paid() == Decimal("3.00")
        return await self.client.http.get("/")


def test_one_who_asks_for_pickles_is_read_by_the_others_of_the_test(
    go: Callable[..., Results],
) -> None:
    results = go(Offers, Buys)
    assert results.exit_code == ExitCode.PASSED, results.workflows


class Touches:
    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self._file,)


class Plain(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get("/")


@pytest.mark.parametrize("way", ["prepared with", "started with"])
def test_a_pickle_of_another_worker_runs_nothing(target: str, tmp_path: Path, way: str) -> None:
    trap = tmp_path / "sprung"
    forged = {"token": Stamped(0, 0, pickle.dumps(Touches(trap)))}
    machine = Machine(Plain, target, 1)

    async def scenario() -> None:
        part = machine.part(0, 1, 1, context=forged if way == "prepared with" else {})
        await part.prepare()
        part.begin(forged)
        await part.over()
        assert part.failure is not None
        raise part.failure

    with pytest.raises(RunFailed, match="Plain cannot read 'token'"):
        machine.run(scenario)
    assert not trap.exists()
