"""Slips of the pen in a workflow, and names of an author's own that are none."""

from __future__ import annotations

from typing import Any

import pytest

from hyperscale import Workflow, action, step
from hyperscale.errors import BadInput
from hyperscale.testing import HTTPResponse
from hyperscale.workload.plan import plan_workflow


class _Base(Workflow):
    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get("/")


def planned(**written: Any) -> None:
    plan_workflow(type("Shop", (_Base,), {"__module__": __name__, **written}))


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("thinktime", "think_time"),
        ("thinkTime", "think_time"),
        ("durration", "duration"),
        ("durtaion", "duration"),
        ("threshold", "thresholds"),
        ("time_out", "timeout"),
        ("stage", "stages"),
        ("Rate", "rate"),
        ("itterations", "iterations"),
        ("max_vu", "max_vus"),
    ],
)
def test_what_nearly_is_a_setting_is_refused(slip: str, meant: str) -> None:
    with pytest.raises(BadInput, match=f"Shop: {slip} is not a setting") as caught:
        planned(**{slip: 1})
    assert caught.value.hint.startswith(f"did you mean {meant!r}?")


@pytest.mark.parametrize(
    ("slip", "meant"), [("set_up", "setup"), ("onStart", "on_start"), ("teardwn", "teardown")]
)
def test_what_nearly_is_a_method_with_a_meaning_is_refused(slip: str, meant: str) -> None:
    def method(self: object) -> None: ...

    with pytest.raises(BadInput, match=f"Shop: {slip} is not a method") as caught:
        planned(**{slip: method})
    assert caught.value.hint.startswith(f"did you mean {meant!r}?")


@pytest.mark.parametrize(
    "name",
    ["price", "hosts", "rates", "height", "items", "on_step", "_thinktime", "basket", "data2"],
)
def test_constants_are_the_authors_own(name: str) -> None:
    planned(**{name: 1})


def test_what_a_method_reads_is_meant() -> None:
    class Reads(_Base):
        durations = (1, 2)
        stage = "staging"
        thinktime = 3

        def helper(self) -> object:
            return [lambda: self.durations, type(self).stage, getattr(self, "thinktime")]  # noqa: B009

        async def set_up(self) -> None: ...

        @action()
        async def begin(self) -> None:
            await self.set_up()

    plan_workflow(Reads)


def test_what_a_subclass_reads_is_meant() -> None:
    class Common(_Base):
        durations = (1, 2)

    class Reads(Common):
        @action()
        async def begin(self) -> None:
            assert self.durations

    plan_workflow(Reads)
    with pytest.raises(BadInput, match="Common: durations is not a setting"):
        plan_workflow(Common)


def test_beside_the_setting_itself_a_near_name_is_no_slip() -> None:
    planned(stage=("10s", 5), stages=[("10s", 5)])


def test_a_step_may_be_called_anything() -> None:
    class Steps(_Base):
        @step()
        async def set_up(self) -> HTTPResponse:
            return await self.client.http.get("/")

    plan_workflow(Steps)
