"""A load by `shape()` on real generator processes."""

from __future__ import annotations

import os

import pytest

from hyperscale import CustomResult, Workflow, run, step
from hyperscale.errors import RunFailed


class Shaped(Workflow):
    max_vus = 6
    graceful_stop = "1s"

    def shape(self, elapsed: float) -> int | None:
        if elapsed >= 0.6:
            return None
        return 100 if elapsed >= 0.3 else 3

    @step()
    async def nothing(self) -> CustomResult:
        return CustomResult()


class Limited(Shaped):
    duration = "200ms"

    def shape(self, elapsed: float) -> int | None:
        return 1


class Broken(Shaped):
    def shape(self, elapsed: float) -> int | None:
        return [3][int(elapsed * 10)]


class Odd(Shaped):
    def shape(self, elapsed: float) -> int | None:
        return "3"  # type: ignore[return-value]  # what this is about


def test_users_follow_the_shape_until_it_ends() -> None:
    results = run(Shaped, workers=2)
    (workflow,) = results.workflows
    assert results.passed, workflow.error
    assert (workflow.load, workflow.vus_max, workflow.cores) == (
        "VUs by shape(), up to 6 VUs",
        6,
        2,
    )
    assert 0.6 <= workflow.elapsed_s < 60


def test_a_duration_ends_a_shape() -> None:
    (workflow,) = run(Limited, workers=2).workflows
    assert (workflow.planned_s, workflow.vus_max) == (0.2, 1)


def test_users_of_the_command_line_replace_it() -> None:
    (workflow,) = run(Broken, workers=1, vus=2, duration="200ms").workflows
    assert (workflow.load, workflow.error) == ("2 VUs for 200ms", "")


def test_an_error_in_the_shape_names_its_line() -> None:
    line = Broken.shape.__code__.co_firstlineno + 1
    place = f"{os.path.basename(__file__)}:{line}"
    with pytest.raises(RunFailed, match=rf"shape\(0.1\) raised IndexError: .*{place}"):
        run(Broken, workers=2)


def test_a_shape_returns_a_whole_number() -> None:
    with pytest.raises(RunFailed, match=r"shape\(0\) returned '3'"):
        run(Odd, workers=1)
