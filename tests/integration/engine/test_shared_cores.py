"""More workflows than cores: all of them at the same time, each with numbers of its own."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from hyperscale import Provide, Use, Workflow, action, depends, state, step
from hyperscale.engine.run import LocalRun, RunOptions
from hyperscale.engine.source import ClassSource
from hyperscale.errors import ExitCode
from hyperscale.local import run
from hyperscale.metrics import totals
from hyperscale.metrics.results import Results, WorkflowResult
from hyperscale.testing import HTTPResponse
from hyperscale.workload.plan import Overrides
from tests.integration.engine.machine import until

Stats = Callable[[], dict[str, Any]]


class A(Workflow):
    vus = 4
    duration = "2s"
    think_time = "10ms"
    path = "/"  # by which the target tells them apart

    @step()
    async def home(self) -> HTTPResponse:
        return await self.client.http.get(self.path)


class B(A):
    vus = 3
    path = "/json"


class C(A):
    vus = 2
    path = "/cookies"


class D(A):
    vus = 1
    path = "/items"


def span(workflow: WorkflowResult) -> tuple[float, float]:
    return workflow.started_s, workflow.started_s + workflow.elapsed_s


def overlap(*workflows: WorkflowResult) -> bool:
    """There was a moment at which all of them ran."""
    begins, ends = zip(*map(span, workflows), strict=True)
    return max(begins) < min(ends)


def named(results: Results) -> dict[str, WorkflowResult]:
    return {workflow.name: workflow for workflow in results.workflows}


def made(results: Results, *workflows: type[A]) -> dict[str, int]:
    """Requests by path."""
    found = named(results)
    return {workflow.path: found[workflow.__name__].requests for workflow in workflows}


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_four_workflows_run_at_the_same_time(workers: int, target: str, stats: Stats) -> None:
    results = run(A, B, C, D, base_url=target, workers=workers)
    assert results.exit_code == ExitCode.PASSED
    assert overlap(*results.workflows)
    assert made(results, A, B, C, D) == stats()["paths"]
    assert [workflow.vus_max for workflow in results.workflows] == [4, 3, 2, 1]
    assert totals.vus_max(results) == 10
    shortest = min(workflow.elapsed_s for workflow in results.workflows)
    together = totals.load_seconds(results)
    assert shortest < together < sum(workflow.elapsed_s for workflow in results.workflows) / 2
    assert {use.core for use in results.core_use} == set(range(workers))
    assert totals.cores(results) == workers


@pytest.mark.parametrize("workflows", [(A,), (A, B, C, D)])
def test_cpu_time_is_counted_once_and_without_the_start(
    workflows: tuple[type[A], ...], target: str
) -> None:
    """Time of the processes that have ended: those of this run, from their start."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    results = run(*workflows, base_url=target, workers=1, vus_each=30)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    in_all_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cost = results.generator
    assert 0 < cost.cpu_seconds < in_all_s
    assert all(workflow.cpu_seconds > 0 for workflow in results.workflows)
    assert cost.cpu_seconds == pytest.approx(sum(w.cpu_seconds for w in results.workflows))
    assert cost.cores == pytest.approx(cost.cpu_seconds / totals.load_seconds(results))
    assert cost.requests_per_cpu_second == pytest.approx(results.requests / cost.cpu_seconds)


class Most(A):
    vus = 80
    think_time = "500ms"


class Few(Most):
    vus = 20
    path = "/json"


@pytest.fixture
def one_cpu() -> Iterator[None]:
    """As `taskset` leaves a program."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only on Linux")
@pytest.mark.usefixtures("one_cpu")
def test_a_mix_of_users_on_one_cpu_is_a_mix(target: str, stats: Stats) -> None:
    """Every user waits the same, so there are as many requests as users."""
    results = run(Most, Few, base_url=target)
    most, few = results.workflows
    assert overlap(most, few)
    assert made(results, Most, Few) == stats()["paths"]
    assert 3 < most.requests / few.requests < 5
    assert (totals.vus_max(results), totals.cores(results)) == (100, 1)


class Alone(A):
    vus = 1
    priority = "exclusive"


class AloneToo(Alone):
    pass


@pytest.mark.parametrize("workers", [1, 3])
def test_an_exclusive_test_has_nothing_beside_it(workers: int, target: str) -> None:
    results = run(Alone, A, AloneToo, B, base_url=target, workers=workers, duration="300ms")
    assert results.exit_code == ExitCode.PASSED
    found = named(results)
    assert overlap(found["A"], found["B"])
    turns = [max(span(found["A"]), span(found["B"])), span(found["Alone"]), span(found["AloneToo"])]
    # When a workflow began is reckoned back from its first report, which a busy machine reads late.
    assert all(before[1] < after[0] + 0.15 for before, after in pairwise(turns)), turns


class SetsUp(Workflow):
    @action()
    async def wait(self) -> None:
        await asyncio.sleep(0.5)
        self.context["greeting"] = "hello"


def test_a_workflow_that_measures_nothing_runs_beside_a_test(target: str) -> None:
    results = run(SetsUp, A, base_url=target, workers=1)
    sets_up, test = results.workflows
    assert overlap(sets_up, test)
    assert (sets_up.cores, test.cores, sets_up.error) == (1, 1, "")
    assert totals.load_seconds(results) == pytest.approx(test.elapsed_s)


class Login(Workflow):
    vus = 2
    iterations = 4

    @step()
    async def login(self) -> HTTPResponse:
        return await self.client.http.post("/login", json={"user": "a", "password": "b"})

    @state("Shop")
    def token(self) -> Provide[str]:
        return str(self.login.response.json()["token"])


@depends("Login", "SetsUp")
class Shop(Workflow):
    vus = 2
    iterations = 8

    @state("Login")
    def known(self, token: str | None = None) -> Use[str]:
        return token or "none"

    @step()
    async def me(self) -> HTTPResponse:
        assert self.context["greeting"] == "hello"
        return await self.client.http.get(
            "/me", headers={"Authorization": f"Bearer {self.known()}"}
        )


@depends("Login", "SetsUp")
class Stranger(Shop):
    """In the same process as Shop, and yet Login offers nothing to it."""

    @state("Login")
    def known(self, token: str = "nothing") -> Use[str]:
        return token

    @step()
    async def me(self) -> HTTPResponse:
        assert self.known() == "nothing"
        assert self.context["greeting"] == "hello"
        return await self.client.http.get("/")


def test_values_of_workflows_in_one_process_stay_apart(target: str) -> None:
    results = run(SetsUp, Login, Shop, Stranger, base_url=target, workers=1)
    assert results.exit_code == ExitCode.PASSED, [w.steps for w in results.workflows]
    found = named(results)
    assert (found["Shop"].requests, found["Stranger"].requests, results.failed) == (8, 8, 0)


class Later(A):
    start_time = "1s"
    duration = "500ms"


@depends("A")
class AfterA(Later):
    """Its wait is over when its turn comes."""

    start_time = "2s"


def test_start_time_counts_from_the_begin_of_the_run(target: str) -> None:
    results = run(A, Later, AfterA, base_url=target, workers=1)
    first, later, after = results.workflows
    assert later.started_s - first.started_s >= 0.9
    assert overlap(first, later)
    assert -0.05 <= after.started_s - span(first)[1] < 2.0  # the end is told by other clocks


class Long(A):
    duration = "1m"


class LongToo(Long):
    vus = 2
    path = "/json"


def local(*workflows: type[Workflow], target: str, workers: int = 1) -> LocalRun:
    flags = Overrides(base_url=target)
    return LocalRun(ClassSource(*workflows), flags, RunOptions(workers=workers))


async def all_loaded(local_run: LocalRun) -> None:
    await until(lambda: all(w.requests for w in local_run.results().workflows))


def test_each_of_them_is_paused_scaled_and_stopped(target: str, stats: Stats) -> None:
    async def scenario() -> Results:
        local_run = local(Long, LongToo, target=target)
        running = asyncio.create_task(local_run.execute())

        def users() -> list[int]:
            return [workflow.vus for workflow in local_run.results().workflows]

        await all_loaded(local_run)
        local_run.scale(3)
        await until(lambda: users() == [7, 5])
        local_run.pause()
        assert [w.state for w in local_run.results().workflows] == ["paused", "paused"]
        local_run.resume()
        before = [w.requests for w in local_run.results().workflows]
        await until(
            lambda: all(
                w.requests > b + 10
                for w, b in zip(local_run.results().workflows, before, strict=True)
            )
        )
        local_run.scale(-4)
        await until(lambda: users() == [3, 1])
        local_run.stop()
        return await running

    results = asyncio.run(scenario())
    assert results.exit_code == ExitCode.STOPPED
    expected = ["added 3 VUs", "paused", "resumed", "removed 4 VUs"]
    assert [[mark.text for mark in w.marks] for w in results.workflows] == [expected, expected]
    assert made(results, Long, LongToo) == stats()["paths"]
    assert results.failed == 0


def test_the_death_of_a_shared_process_is_told_by_everyone_on_it(target: str) -> None:
    async def scenario() -> Results:
        local_run = local(Long, LongToo, target=target)
        running = asyncio.create_task(local_run.execute())
        await all_loaded(local_run)
        os.kill(local_run.generator_pids[0], signal.SIGKILL)
        async with asyncio.timeout(20):
            return await running

    results = asyncio.run(scenario())
    assert results.exit_code == ExitCode.LOAD_LOST
    assert results.cut == "worker lost"
    assert len(results.lost) == 2
    for sentence, workflow, users in zip(
        results.lost, ("Long", "LongToo"), ("4 of 4", "2 of 2"), strict=True
    ):
        assert f" of {workflow} was killed by SIGKILL at " in sentence
        assert f": {users} VUs lost" in sentence


def test_one_that_was_over_before_the_process_died_has_lost_nothing(target: str) -> None:
    async def scenario() -> Results:
        local_run = local(Long, D, target=target)
        running = asyncio.create_task(local_run.execute())
        await until(lambda: local_run.results().workflows[1].state == "finished")
        os.kill(local_run.generator_pids[0], signal.SIGKILL)
        async with asyncio.timeout(20):
            return await running

    results = asyncio.run(scenario())
    assert results.exit_code == ExitCode.LOAD_LOST
    assert [sentence.split(" was ")[0].rpartition(" of ")[2] for sentence in results.lost] == [
        "Long"
    ]


class HangsInTeardown(D):
    duration = "100ms"

    async def teardown(self) -> None:
        await asyncio.Event().wait()


def test_one_that_hangs_is_left_and_the_others_go_on(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hyperscale.engine.part_run.TEARDOWN_LIMIT_S", 0.5)
    results = run(HangsInTeardown, A, base_url=target, workers=1, duration=None)
    (_, other) = results.workflows
    assert (results.exit_code, results.lost) == (ExitCode.PASSED, [])
    assert any("teardown() did not end" in warning for warning in results.warnings)
    assert (other.error, other.interrupted_iterations) == ("", 0)
    assert other.elapsed_s >= 2.0
