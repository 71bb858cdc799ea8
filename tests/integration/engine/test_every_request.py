"""Every request counts: what is reported is what the target counted, wherever a call is made."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable
from typing import Any

import pytest

from hyperscale import CustomResult, Provide, Workflow, action, check, state, step
from hyperscale.engine.messages import StopTest
from hyperscale.engine.results import aggregate_of
from hyperscale.testing import HTTPResponse
from hyperscale.workload.facts import facts_of
from hyperscale.workload.plan import plan_workflow
from tests.integration.engine.in_process import Ran, run_slice

Stats = Callable[[], dict[str, Any]]
REFUSED = "http://127.0.0.1:1/"


class Base(Workflow):
    vus = 2
    iterations = 6
    graceful_stop = "5s"

    async def get(self, path: str = "/", **more: Any) -> HTTPResponse:
        answer: HTTPResponse = await self.client.http.get(path, **more)
        return answer


class Loops(Base):
    @step()
    async def many(self) -> HTTPResponse:
        for number in range(4):
            await self.client.http.get(f"/items/{number}")
        return await self.get("/json")


class Gathers(Base):
    @step()
    async def together(self) -> HTTPResponse:
        await asyncio.gather(*(self.get() for _ in range(3)))
        async with asyncio.TaskGroup() as group:
            one = group.create_task(self.get("/json"))
            group.create_task(self.get("/status/503"))
        return one.result()


class LeavesTasks(Base):
    @step()
    async def leaves(self) -> HTTPResponse:
        self.task = asyncio.create_task(self.later())
        return await self.get()

    async def later(self) -> None:
        await self.get("/delay/30")
        await self.get("/status/500")


class Judges(Base):
    @step()
    async def home(self) -> HTTPResponse:
        return await self.get()

    @check("home")
    async def asks(self) -> bool:
        return (await self.get("/json")).ok

    @action("home")
    async def acts(self) -> None:
        await self.get("/bytes/10")


class StartsAndStops(Base):
    async def on_start(self) -> None:
        await self.get("/json")

    async def flow(self) -> None:
        await self.get()

    async def on_stop(self) -> None:
        await self.get("/bytes/10")


class Redirected(Base):
    @step()
    async def follow(self) -> HTTPResponse:
        return await self.get("/redirect/3")


class GivesUp(Base):
    @step()
    async def impatient(self) -> HTTPResponse:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.25):
                await self.get("/delay/1500")
        return await self.get("/delay/1500", timeout=0.25)


class HalfAnswered(Base):
    @step()
    async def half(self) -> HTTPResponse:
        await self.get()
        return await self.get("/reset")


class RaisesBetween(Base):
    @step()
    async def before(self) -> HTTPResponse:
        raise KeyError("before")

    @step()
    async def between(self) -> HTTPResponse:
        await self.get()
        raise KeyError("between")

    @step()
    async def judged(self) -> HTTPResponse:
        return await self.get("/json", expect=lambda answer: answer.json()["no such key"])


@pytest.mark.parametrize(
    ("workflow", "requests"),
    [
        (Loops, 30),
        (Gathers, 30),
        (LeavesTasks, None),
        (Judges, 18),
        (StartsAndStops, 10),
        (Redirected, 24),
        (GivesUp, 12),
        (HalfAnswered, 12),
        (RaisesBetween, 12),
    ],
)
def test_reported_is_what_the_target_counted(
    workflow: type[Workflow], requests: int | None, target: str, stats: Stats
) -> None:
    ran = run_slice(workflow, target)
    assert not ran.done.error
    assert ran.result.requests == stats()["requests"]
    assert requests in (None, ran.result.requests)


def test_requests_are_told_under_the_step_they_were_made_in(target: str) -> None:
    (many,) = run_slice(Loops, target).result.steps
    assert {(one.method, one.name, one.count) for one in many.requests} == {
        ("GET", "/items/{id}", 24),
        ("GET", "/json", 6),
    }
    assert {step.name: step.count for step in run_slice(Judges, target).result.steps} == {
        "home": 6,
        "asks": 6,
        "acts": 6,
    }
    places = run_slice(StartsAndStops, target).result.steps
    assert {step.name: step.count for step in places} == {"on_start": 2, "flow": 6, "on_stop": 2}


def test_what_was_given_up_has_failed(target: str) -> None:
    impatient = run_slice(GivesUp, target).step("impatient")
    assert (impatient.count, impatient.failed, impatient.unsent) == (12, 12, 0)
    assert {error.outcome: error.count for error in impatient.errors} == {
        "cancelled": 6,
        "timeout": 6,
    }


def test_exceptions_are_failed_runs_and_no_requests(target: str) -> None:
    steps = {step.name: step for step in run_slice(RaisesBetween, target).result.steps}
    told = {name: (step.runs, step.runs_failed, step.count) for name, step in steps.items()}
    assert told == {"before": (6, 6, 0), "between": (6, 6, 6), "judged": (6, 6, 6)}
    first = steps["between"].errors[0].first
    assert first is not None
    assert first.where.startswith("test_every_request.py:")
    assert first.where.endswith(" in between")
    assert "KeyError: 'between'" in first.traceback
    assert first.exchange is not None
    assert first.exchange.status == 200


class Refused(Base):
    @step()
    async def nobody(self) -> HTTPResponse:
        await self.get(REFUSED)
        return await self.get(REFUSED)

    @step("nobody")
    async def after(self) -> HTTPResponse:
        return await self.get()


def test_calls_that_were_never_sent_are_told_apart(target: str, stats: Stats) -> None:
    ran = run_slice(Refused, target)
    nobody = ran.step("nobody")
    assert (nobody.count, nobody.failed, nobody.unsent) == (0, 12, 12)
    assert (nobody.runs, nobody.runs_failed) == (6, 6)
    assert ran.step("after").skips == {"nobody got no answer": 6}
    assert stats()["requests"] == 0


class Nested(Base):
    async def flow(self) -> None:
        try:
            await self.outer()
        except KeyError:
            await self.get("/json")

    @step()
    async def outer(self):
        await self.get()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.inner())

    @step()
    async def inner(self):
        await self.get()
        raise KeyError("deep")


class TwoFail(Base):
    async def flow(self) -> None:
        await self.outer()

    @step()
    async def outer(self):
        await asyncio.gather(self.one(), self.other())

    @step()
    async def one(self):
        raise KeyError("one")

    @step()
    async def other(self):
        raise ValueError("other")


def test_of_two_exceptions_at_once_each_has_its_step(target: str) -> None:
    ran = run_slice(TwoFail, target)
    told = {step.name: (step.runs_failed, step.runs_interrupted) for step in ran.result.steps}
    assert told == {"outer": (0, 6), "one": (6, 0), "other": (6, 0)}


class NestedInGraph(Base):
    @step()
    async def outer(self) -> HTTPResponse:
        return await self.inner()

    @step(chance=0)
    async def inner(self) -> HTTPResponse:
        raise KeyError("deep")

    @step()
    async def later(self) -> HTTPResponse:
        return await self.get()


def test_an_exception_is_charged_to_the_innermost_step(target: str, stats: Stats) -> None:
    ran = run_slice(Nested, target)
    inner, outer = ran.step("inner"), ran.step("outer")
    assert (inner.runs, inner.runs_failed, inner.runs_interrupted) == (6, 6, 0)
    assert (outer.runs, outer.runs_failed, outer.runs_interrupted) == (6, 0, 6)
    assert [error.detail for error in inner.errors] == ["KeyError"]
    assert ran.result.runs_failed == 6
    assert ran.result.requests == stats()["requests"]


def test_the_graph_goes_on_after_a_step_that_another_one_interrupted(target: str) -> None:
    ran = run_slice(NestedInGraph, target)
    outer = ran.step("outer")
    assert (outer.runs, outer.runs_interrupted, outer.runs_failed) == (6, 6, 0)
    assert ran.step("inner").runs_failed == 6
    assert ran.step("later").count == 6


class SharedError(Base):
    error = KeyError("one object for all")

    async def flow(self) -> None:
        for _ in range(2):
            with contextlib.suppress(KeyError):
                await self.bad()
        results = await asyncio.gather(self.bad(), self.worse(), return_exceptions=True)
        assert [type(result) for result in results] == [KeyError, ValueError]

    @step()
    async def bad(self):
        raise self.error

    @step()
    async def worse(self):
        raise ValueError


def test_an_exception_that_is_raised_again_fails_again(target: str) -> None:
    ran = run_slice(SharedError, target)
    assert (ran.step("bad").runs, ran.step("bad").runs_failed) == (18, 18)
    assert (ran.step("worse").runs, ran.step("worse").runs_failed) == (6, 6)
    assert not [step for step in ran.result.steps if step.name == "flow"]


class Ends(Base):
    vus = 1

    @step()
    async def ends(self) -> HTTPResponse:
        await self.get()
        self.end()
        return await self.get()

    def end(self) -> None:
        raise NotImplementedError


class Cancelled(Ends):
    def end(self) -> None:
        raise asyncio.CancelledError


class Exits(Ends):
    def end(self) -> None:
        sys.exit(3)


class ExitsInFlow(Exits):
    async def flow(self) -> None:
        await self.ends()


@pytest.mark.parametrize("workflow", [Cancelled, Exits, ExitsInFlow])
def test_what_looks_like_the_end_of_all_is_a_failed_run(
    workflow: type[Workflow], target: str
) -> None:
    ran = run_slice(workflow, target)
    ends = ran.step("ends")
    assert (ends.runs, ends.runs_failed, ends.count) == (6, 6, 6)
    assert ran.result.iterations == 6
    assert not ran.done.error


class StopsIteration(Ends):
    def end(self) -> None:
        self.stop_iteration()


class StopsUser(Ends):
    vus = 2

    def end(self) -> None:
        self.stop_user()


class StopsTest(Ends):
    def end(self) -> None:
        self.stop_test("enough", failed=True)


class StopsInTask(StopsUser):
    async def flow(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.ends())


class StopsInOnStart(StopsUser):
    async def on_start(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.ends())

    async def flow(self) -> None:
        raise AssertionError("the user has left")


def test_an_iteration_ends_itself(target: str, stats: Stats) -> None:
    result = run_slice(StopsIteration, target).result
    assert (result.iterations, result.stopped_iterations, result.requests) == (6, 6, 6)
    assert result.runs_failed == 0
    assert stats()["requests"] == 6


@pytest.mark.parametrize("workflow", [StopsUser, StopsInTask, StopsInOnStart])
def test_a_user_ends_itself(workflow: type[Workflow], target: str, stats: Stats) -> None:
    ran = run_slice(workflow, target)
    result = ran.result
    assert not ran.done.error
    assert (result.stopped_users, result.requests, result.runs_failed) == (2, 2, 0)
    assert stats()["requests"] == 2


def test_a_test_ends_itself(target: str) -> None:
    ran = run_slice(StopsTest, target)
    assert ran.stopped == [StopTest("enough", True)]
    assert ran.result.requests == 1


class StopsOneOfTwo(Base):
    """Without a flow both run at the same time."""

    @step()
    async def first(self) -> HTTPResponse:
        return await self.get()

    @step("first")
    async def stops(self) -> HTTPResponse:
        self.stop_iteration()

    @step("first")
    async def slow(self) -> HTTPResponse:
        await asyncio.sleep(0)
        return await self.get("/delay/20")


def test_an_iteration_that_ends_takes_its_parallel_steps_along(target: str, stats: Stats) -> None:
    ran = run_slice(StopsOneOfTwo, target)
    slow = ran.step("slow")
    assert (slow.runs, slow.runs_interrupted) == (6, 6)
    assert ran.result.stopped_iterations == 6
    assert ran.result.requests == stats()["requests"]


class SkipsBesideError(Base):
    async def flow(self) -> None:
        await self.mixed()

    @step()
    async def mixed(self):
        async with asyncio.TaskGroup() as group:
            group.create_task(self.skips())
            group.create_task(self.fails())

    async def skips(self) -> None:
        self.skip()

    async def fails(self) -> None:
        raise KeyError("lost?")


def test_a_signal_hides_no_exception_beside_it(target: str) -> None:
    mixed = run_slice(SkipsBesideError, target).step("mixed")
    assert (mixed.runs, mixed.runs_failed, mixed.skipped) == (6, 6, 0)
    assert [error.detail for error in mixed.errors] == ["KeyError"]


class Cut(Base):
    vus = 3
    iterations = None
    duration = "200ms"
    graceful_stop = "0s"

    @step()
    async def slow(self) -> HTTPResponse:
        return await self.get("/delay/5000")


def test_requests_in_flight_at_the_end_are_counted(target: str, stats: Stats) -> None:
    ran = run_slice(Cut, target)
    slow = ran.step("slow")
    assert slow.count == slow.failed == stats()["requests"] == 3
    assert slow.runs_interrupted == ran.result.interrupted_iterations == 3


class WarmsUp(Base):
    iterations = None
    duration = "300ms"
    warmup = "300ms"
    think_time = "20ms"

    async def on_start(self) -> None:
        await self.get("/json")

    async def setup(self) -> None:
        await self.get()
        await self.get(REFUSED)

    async def teardown(self) -> None:
        await self.get("/status/500")

    @step()
    async def home(self) -> HTTPResponse:
        return await self.get()

    @state("Other")
    async def given(self) -> Provide[int]:
        return (await self.get()).status


def test_what_is_not_measured_is_counted_apart(target: str, stats: Stats) -> None:
    ran = run_slice(WarmsUp, target)
    result = ran.result
    assert result.unmeasured["setup"] == 2
    assert result.unmeasured["warmup"] > 2
    assert ran.torn_down.requests == 1
    apart = sum(result.unmeasured.values()) + ran.torn_down.requests
    assert result.requests + apart == stats()["requests"]


class Arrives(Base):
    vus = 2
    iterations = None
    rate = "50/s"
    max_vus = 2
    duration = "200ms"

    async def on_start(self) -> None:
        self.token = (await self.get("/delay/100")).status

    @step()
    async def home(self) -> HTTPResponse:
        assert self.token == 200
        return await self.get()


def test_users_of_arrivals_have_started_before_their_first_one(target: str, stats: Stats) -> None:
    result = run_slice(Arrives, target).result
    home = next(step for step in result.steps if step.name == "home")
    assert result.runs_failed == result.dropped_iterations == 0
    assert home.count == 10
    assert home.response.max_ms < 100
    assert result.requests == stats()["requests"] == 12


class LeavesUnstarted(Arrives):
    vus = 1
    max_vus = 1

    async def on_start(self) -> None:
        self.stop_user()


def test_arrivals_that_nobody_takes_are_dropped(target: str) -> None:
    result = run_slice(LeavesUnstarted, target).result
    assert result.iterations == 0
    assert result.dropped_iterations == 10


class Reads(Base):
    data = ({"name": "anna"}, {"name": "ben"})

    async def on_start(self) -> None:
        assert self.context["row"] is self.row
        self.first = self.row["name"]

    async def flow(self) -> None:
        assert self.iteration or self.row["name"] == self.first
        await self.get()


def test_on_start_has_the_row_of_the_first_iteration(target: str) -> None:
    ran = run_slice(Reads, target)
    assert ran.result.requests == 6
    assert ran.result.runs_failed == 0


class NeverWaits(Base):
    iterations = None
    duration = "200ms"

    async def on_start(self) -> None:
        self.answer = await self.get()


class KeepsSkipping(NeverWaits):
    async def flow(self) -> None:
        while True:
            await self.skips()

    @step()
    async def skips(self):
        self.skip()


class KeepsFailing(NeverWaits):
    async def flow(self) -> None:
        while True:
            with contextlib.suppress(KeyError):
                await self.fails()

    @step()
    async def fails(self):
        raise KeyError


class AnswersFromMemory(NeverWaits):
    @step()
    async def again(self) -> HTTPResponse:
        return self.answer


class CustomFromMemory(NeverWaits):
    async def flow(self) -> None:
        await self.again()

    @step()
    async def again(self) -> CustomResult:
        return CustomResult()


@pytest.mark.parametrize(
    "workflow", [KeepsSkipping, KeepsFailing, AnswersFromMemory, CustomFromMemory]
)
def test_a_step_that_never_waits_does_not_stop_the_others(
    workflow: type[Workflow], target: str
) -> None:
    workflow = type(workflow.__name__, (workflow,), {"graceful_stop": "0s"})
    assert not run_slice(workflow, target).done.error


class Accepts(Base):
    @step()
    async def changes_its_mind(self) -> HTTPResponse:
        answer = await self.get("/status/404")
        answer.accept()
        other = await self.get()
        other.fail("wrong")
        other.accept()
        third = await self.get()
        third.fail("wrong")
        third.fail("still wrong")
        return answer


def test_the_last_word_on_an_answer_counts(target: str) -> None:
    step = run_slice(Accepts, target).step("changes_its_mind")
    assert (step.count, step.failed, step.runs_failed) == (18, 6, 0)
    assert [(error.outcome, error.samples[0]) for error in step.errors] == [
        ("failed", "still wrong")
    ]


class NoTest(Base):
    iterations = None

    @action()
    async def calls(self) -> None:
        self.context["seen"] = True
        (await self.get(REFUSED)).json()

    async def on_stop(self) -> None:
        await self.get()


def test_a_workflow_that_is_no_test_fails_with_its_action(target: str) -> None:
    ran: Ran = run_slice(NoTest, target)
    assert "calls raised CallFailed" in ran.done.error
    assert list(ran.done.context) == ["seen"]


class FlowFails(Base):
    async def flow(self) -> None:
        if self.iteration == 0:
            raise KeyError("first")
        await self.get()


def test_iterations_are_the_runs_of_a_flow(target: str) -> None:
    ran = run_slice(FlowFails, target)
    flow = ran.step("flow")
    assert (flow.runs, flow.runs_failed, flow.count) == (6, 2, 4)
    again = aggregate_of(facts_of(plan_workflow(FlowFails)))
    again.absorb(ran.aggregate.export())
    assert again.freeze().steps == ran.result.steps
