"""Whole runs on real generator processes against the embedded target."""

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from hyperscale import (
    COUNT,
    CustomResult,
    Metric,
    Provide,
    Use,
    Workflow,
    action,
    check,
    depends,
    feed,
    state,
    step,
)
from hyperscale.engine.run import LocalRun, RunOptions
from hyperscale.engine.source import ClassSource
from hyperscale.errors import BadInput, ExitCode, HyperscaleError
from hyperscale.local import run
from hyperscale.metrics.results import Results
from hyperscale.testing import URL, HTTPResponse
from hyperscale.ui.output import Paint
from hyperscale.ui.verdict import verdict
from hyperscale.workload.plan import Overrides

pytestmark = pytest.mark.usefixtures("base")


@pytest.fixture
def base(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARGET", target)


class Get(Workflow):
    vus = 4
    duration = "1s"

    @step()
    async def home(self) -> HTTPResponse:
        return await self.client.http.get("/")


def go(*workflows: type[Workflow], **settings: Any) -> Results:
    return run(*workflows, base_url=os.environ["TARGET"], **settings)


def test_closed_load_counts_what_the_target_counts(stats: Callable[[], dict[str, Any]]) -> None:
    results = go(Get, workers=2)
    assert results.exit_code == ExitCode.PASSED
    (workflow,) = results.workflows
    (home,) = workflow.steps
    assert home.count == workflow.iterations == stats()["requests"]
    assert home.count > 50
    assert home.statuses == {"200": home.count}
    assert workflow.cores == 2
    assert workflow.vus_max == 4
    assert 0 < home.service.p50_ms <= home.service.p99_ms <= home.service.max_ms
    assert sum(point.requests for point in workflow.series) == home.count


def test_iterations_are_exact_over_cores(stats: Callable[[], dict[str, Any]]) -> None:
    results = go(Get, workers=2, iterations=101)
    assert results.requests == results.workflows[0].iterations == stats()["requests"] == 101


class PerUser(Get):
    duration = None
    iterations_per_vu = 7


def test_iterations_per_vu() -> None:
    assert go(PerUser, workers=2).requests == 28


class Ramp(Get):
    duration = None
    stages = (("500ms", 6), ("500ms", 0))
    think_time = "10ms"


def test_stages_rise_and_fall() -> None:
    (workflow,) = go(Ramp, workers=2).workflows
    assert 4 <= workflow.vus_max <= 8
    assert workflow.steps[0].failed == 0


class Arrivals(Get):
    rate = "200/s"


def test_open_model_keeps_its_schedule() -> None:
    (workflow,) = go(Arrivals, workers=2).workflows
    assert workflow.open_model
    assert workflow.iterations + workflow.dropped_iterations == 200
    assert workflow.steps[0].response.count == workflow.steps[0].count


class TooSlow(Workflow):
    rate = 100
    duration = "1s"
    max_vus = 2

    @step()
    async def wait(self) -> HTTPResponse:
        return await self.client.http.get("/delay/300")


def test_arrivals_that_cannot_start_are_counted() -> None:
    results = go(TooSlow, workers=1)
    (workflow,) = results.workflows
    assert workflow.dropped_iterations + workflow.iterations == 100
    assert workflow.dropped_iterations > 50
    assert "could not be started" in results.saturation


class SlowStart(Workflow):
    rate = 50
    duration = "1s"

    async def on_start(self) -> None:
        await self.client.http.get("/delay/300")

    @step()
    async def home(self) -> HTTPResponse:
        return await self.client.http.get("/")

    async def on_stop(self) -> None:
        await self.client.http.get("/json")


class Blocks(Workflow):
    rate = 50
    duration = "1s"

    @step()
    async def home(self) -> HTTPResponse:
        time.sleep(0.05)  # noqa: ASYNC251 - what it is about
        return await self.client.http.get("/")


@pytest.mark.parametrize("late", [SlowStart, Blocks])
def test_the_last_arrivals_begin_or_are_counted(late: type[Workflow]) -> None:
    """Their users are still starting when the load ends, or the loop is late."""
    (workflow,) = go(late, workers=1).workflows
    assert workflow.iterations + workflow.dropped_iterations == 50


def test_a_request_of_on_stop_is_not_late_because_the_last_arrival_was() -> None:
    (workflow,) = go(SlowStart, workers=1).workflows
    steps = {step.name: step for step in workflow.steps}
    assert steps["home"].response.max_ms > steps["home"].service.max_ms
    assert steps["on_stop"].response.max_ms == steps["on_stop"].service.max_ms


class Warm(Get):
    warmup = "500ms"
    iterations = 20
    duration = None


def test_warmup_runs_and_is_not_counted(stats: Callable[[], dict[str, Any]]) -> None:
    results = go(Warm, workers=1)
    assert results.requests < stats()["requests"]
    assert results.requests == 20  # with those under way when the clock started


class WarmStart(Warm):
    """Its users are still starting when the warm-up is over."""

    vus = 2
    iterations = None
    iterations_per_vu = 3
    warmup = "50ms"

    async def on_start(self) -> None:
        await asyncio.sleep(0.3)


def test_who_was_starting_when_the_warmup_ended_makes_all_its_iterations() -> None:
    assert go(WarmStart, workers=1).requests == 6


class Isolation(Workflow):
    """Each iteration makes a token of its own; the next step must see exactly that one."""

    vus = 40
    iterations = 2000

    @action()
    async def token(self) -> str:
        assert "mine" not in self.context
        self.context["mine"] = f"{self.vu_id}-{self.iteration}"
        return f"{self.vu_id}-{self.iteration}"

    @step("token")
    async def echo(self, token: str = "", mine: str = "") -> HTTPResponse:
        assert token == mine == f"{self.vu_id}-{self.iteration}"
        return await self.client.http.get("/echo", headers={"X-Token": token})

    @check("echo")
    async def came_back(self, token: str = "", echo: HTTPResponse | None = None) -> bool:
        return echo is not None and echo.json()["headers"]["X-Token"] == token


def test_no_value_crosses_virtual_users() -> None:
    (workflow,) = go(Isolation, workers=2).workflows
    (came_back,) = workflow.checks
    assert workflow.steps[0].failed == 0, workflow.steps[0].errors
    assert (came_back.passed, came_back.failed) == (2000, 0), came_back.samples


class Diamond(Workflow):
    vus = 1
    iterations = 3

    @step()
    async def first(self) -> HTTPResponse:
        return await self.client.http.get("/delay/5")

    @step("first")
    async def left(self, first: HTTPResponse | None = None) -> HTTPResponse:
        assert first is not None
        return await self.client.http.get("/delay/60")

    @step("first")
    async def right(self, first: HTTPResponse | None = None) -> HTTPResponse:
        assert first is not None
        return await self.client.http.get("/delay/60")

    @step("left", "right")
    async def last(
        self, left: HTTPResponse | None = None, right: HTTPResponse | None = None
    ) -> HTTPResponse:
        assert left is not None
        assert right is not None
        assert left.started < right.ended, "they overlap"
        assert right.started < left.ended, "they overlap"
        return await self.client.http.get("/")


def test_steps_with_one_parent_overlap_and_the_last_sees_both() -> None:
    (workflow,) = go(Diamond, workers=1).workflows
    assert [(s.name, s.count, s.failed) for s in workflow.steps] == [
        ("first", 3, 0),
        ("left", 3, 0),
        ("right", 3, 0),
        ("last", 3, 0),
    ]


class Login(Workflow):
    vus = 4
    iterations = 8

    @step()
    async def login(self) -> HTTPResponse:
        return await self.client.http.post("/login", json={"user": "a", "password": "b"})

    @state("Shop")
    def token(self) -> Provide[str]:
        return str(self.login.response.json()["token"])


@depends("Login")
class Shop(Workflow):
    vus = 4
    iterations = 8

    @state("Login")
    def known(self, token: str | None = None) -> Use[str]:
        return token or "none"

    @step()
    async def me(self) -> HTTPResponse:
        assert self.context["token"] == self.known()
        return await self.client.http.get(
            "/me", headers={"Authorization": f"Bearer {self.known()}"}
        )


@depends("Login")
class Stranger(Workflow):
    """Asks for a value that Login does not offer to it."""

    vus = 1
    iterations = 1

    @state("Login")
    def known(self, token: str = "nothing") -> Use[str]:
        return token

    @step()
    async def me(self) -> HTTPResponse:
        assert self.known() == "nothing"
        return await self.client.http.get("/")


def test_values_pass_only_between_workflows_that_name_each_other() -> None:
    results = go(Login, Shop, Stranger, workers=2)
    assert results.exit_code == ExitCode.PASSED, [w.steps for w in results.workflows]
    login, shop, stranger = results.workflows
    assert shop.started_s >= login.started_s + login.elapsed_s
    assert shop.failed == stranger.failed == 0


class Setup(Workflow):
    @action()
    async def prepare(self) -> None:
        self.context["greeting"] = "hello"
        self.context["numbers"] = [1, 2, 3]


@depends("Setup")
class AfterSetup(Workflow):
    vus = 3
    iterations = 9

    @step()
    async def greet(self, greeting: str = "") -> HTTPResponse:
        assert greeting == self.context.get("greeting") == "hello"
        assert self.context["numbers"] == [1, 2, 3]
        return await self.client.http.get("/")


def test_context_of_a_setup_workflow_reaches_its_dependants() -> None:
    results = go(Setup, AfterSetup, workers=2)
    assert results.exit_code == ExitCode.PASSED, results.workflows
    setup, after = results.workflows
    assert (setup.cores, setup.requests) == (1, 0)
    assert (after.requests, after.failed) == (9, 0)


class Broken(Workflow):
    @action()
    async def prepare(self) -> None:
        raise KeyError("no such thing")


@depends("Broken")
class AfterBroken(Get):
    pass


def test_dependants_of_a_failed_workflow_do_not_run_and_others_do() -> None:
    results = go(Broken, AfterBroken, Get, workers=1, duration="200ms")
    broken, after, other = results.workflows
    assert "no such thing" in broken.error
    assert "Broken failed" in after.error
    assert after.requests == 0
    assert other.requests > 0
    assert results.exit_code == ExitCode.FAILED


class Once(Workflow):
    vus = 4
    iterations = 12

    async def setup(self) -> None:
        response = await self.client.http.get("/json")
        self.context["from_setup"] = response.status
        self.context["setups"] = self.context.get("setups", 0) + 1

    async def teardown(self) -> None:
        await self.client.http.get("/bytes/7")

    @step()
    async def use(self, from_setup: int = 0, setups: int = 0) -> HTTPResponse:
        assert (from_setup, setups) == (200, 1)
        return await self.client.http.get("/")


def test_setup_and_teardown_run_once_per_run(stats: Callable[[], dict[str, Any]]) -> None:
    results = go(Once, workers=2)
    assert (results.requests, results.failed) == (12, 0), results.workflows[0].steps
    paths = stats()["paths"]
    assert paths["/json"] == 1
    assert paths["/bytes/7"] == 1


class FailingSetup(Get):
    async def setup(self) -> None:
        raise ValueError("the database is empty")


def test_a_failing_setup_starts_no_load(stats: Callable[[], dict[str, Any]]) -> None:
    with pytest.raises(Exception, match="the database is empty"):
        go(FailingSetup, workers=2)
    assert stats()["requests"] == 0


class Rows(Workflow):
    vus = 4
    iterations = 60
    data = feed([{"n": n} for n in range(60)], when_done="stop")

    @step()
    async def one(self, row: dict[str, int] | None = None) -> HTTPResponse:
        assert row == self.row
        assert row is not None
        return await self.client.http.get(f"/bytes/{row['n']}")


def test_each_row_goes_to_one_virtual_user(stats: Callable[[], dict[str, Any]]) -> None:
    results = go(Rows, workers=2)
    assert (results.requests, results.failed) == (60, 0)
    paths = stats()["paths"]
    assert {path: n for path, n in paths.items() if path.startswith("/bytes/")} == {
        f"/bytes/{n}": 1 for n in range(60)
    }


class Credentials(Workflow):
    vus = 4
    iterations_per_vu = 2
    data = feed([{"n": n} for n in range(4)], per="vu")

    async def on_start(self) -> None:
        await self.client.http.get(f"/bytes/{self.row['n']}")

    async def flow(self) -> None:
        await self.client.http.get(f"/delay/{self.row['n']}")


def test_a_user_has_its_row_from_the_start(stats: Callable[[], dict[str, Any]]) -> None:
    results = go(Credentials, workers=2)
    assert [(step.name, step.count) for step in results.workflows[0].steps] == [
        ("on_start", 4),
        ("flow", 8),
    ]
    paths = stats()["paths"]
    assert [paths[f"/bytes/{n}"] for n in range(4)] == [1] * 4
    assert [paths[f"/delay/{n}"] for n in range(4)] == [2] * 4


class Answer(CustomResult):
    pass


class Custom(Workflow):
    vus = 2
    iterations = 10

    @step()
    async def sleep(self) -> Answer:
        await asyncio.sleep(0.02)
        return Answer(ok=self.iteration != 0, error="the first one never works", bytes_in=5)

    @step()
    async def sold(self) -> Metric[COUNT]:
        return Metric(3)


def test_own_client_and_own_metric() -> None:
    (workflow,) = go(Custom, workers=1).workflows
    (sleep,) = workflow.steps
    assert (sleep.count, sleep.failed, sleep.bytes_in) == (10, 2, 50)
    assert sleep.service.min_ms >= 19
    assert sleep.errors[0].samples[0] == "the first one never works"
    (sold,) = workflow.metrics
    assert sold.value == 30


class Stops(Workflow):
    vus = 4
    duration = "1m"
    graceful_stop = "5s"

    @step()
    async def slow(self) -> HTTPResponse:
        return await self.client.http.get("/delay/100")


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the run lives in other processes
            await asyncio.sleep(0.02)


async def _when_loaded(local_run: LocalRun) -> None:
    await _until(lambda: local_run.results().requests > 0)


def _at_rest(local_run: LocalRun) -> Callable[[], bool]:
    """No request was counted for longer than one takes to be made and reported."""
    seen = deque([-1] * 20, maxlen=20)

    def still() -> bool:
        seen.append(local_run.results().requests)
        return seen[0] == seen[-1]

    return still


def _local(*workflows: type[Workflow], workers: int = 2) -> LocalRun:
    flags = Overrides(base_url=os.environ["TARGET"])
    return LocalRun(ClassSource(*workflows), flags, RunOptions(workers=workers))


def test_a_graceful_stop_finishes_iterations_and_keeps_results() -> None:
    async def scenario() -> Results:
        local_run = _local(Stops)
        running = asyncio.create_task(local_run.execute())
        await _when_loaded(local_run)
        local_run.stop()
        return await running

    results = asyncio.run(scenario())
    assert results.exit_code == ExitCode.STOPPED
    assert results.cut == "signal"
    assert results.requests >= 4
    assert results.failed == 0
    assert results.workflows[0].interrupted_iterations == 0


class First(Stops):
    priority = "exclusive"


class Second(First):
    pass


@depends("Second")
class Third(Stops):
    pass


def test_after_a_cut_whatever_was_to_come_says_so() -> None:
    """Second is of the layer that was cut, Third of the next one."""

    async def scenario() -> Results:
        local_run = _local(First, Second, Third)
        running = asyncio.create_task(local_run.execute())
        await _when_loaded(local_run)
        local_run.stop()
        return await running

    results = asyncio.run(scenario())
    assert results.exit_code == ExitCode.STOPPED
    assert all(one.state == "finished" for one in results.workflows)
    cut = "not run, because the run was cut short: stopped by hand"
    errors = {one.name: one.error for one in results.workflows}
    assert errors == {"First": "", "Second": cut, "Third": cut}


class Hangs(Stops):
    @step()
    async def slow(self) -> HTTPResponse:
        if self.iteration == 0:
            return await self.client.http.get("/")
        return await self.client.http.get("/delay/60000")


def test_a_kill_cuts_off_what_is_under_way() -> None:
    async def scenario() -> Results:
        local_run = _local(Hangs)
        running = asyncio.create_task(local_run.execute())
        await _when_loaded(local_run)
        local_run.kill()
        async with asyncio.timeout(10):
            return await running

    results = asyncio.run(scenario())
    assert results.exit_code == ExitCode.STOPPED
    assert results.workflows[0].interrupted_iterations == 4


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_dying_generator_ends_the_run_with_partial_results(number: signal.Signals) -> None:
    async def scenario() -> Results:
        local_run = _local(Stops)
        running = asyncio.create_task(local_run.execute())
        await _when_loaded(local_run)
        os.kill(local_run.generator_pids[1], number)
        async with asyncio.timeout(20):
            return await running

    results = asyncio.run(scenario())
    assert results.exit_code == ExitCode.LOAD_LOST
    assert results.cut == "worker lost"
    assert number.name in results.cut_reason
    assert "2 of 4 VUs" in results.cut_reason
    assert results.requests > 0


def test_pause_resume_and_scale_are_marked_on_the_timeline() -> None:
    async def scenario() -> Results:
        local_run = _local(Stops)
        running = asyncio.create_task(local_run.execute())
        await _when_loaded(local_run)
        local_run.scale(3)
        await _until(lambda: local_run.results().workflows[0].vus == 7)
        local_run.pause()
        assert local_run.results().state == "paused"
        await _until(_at_rest(local_run))
        before = local_run.results().requests
        local_run.resume()
        await _until(lambda: local_run.results().requests > before)
        local_run.scale(-5)
        await _until(lambda: local_run.results().workflows[0].vus == 2)
        local_run.stop()
        return await running

    results = asyncio.run(scenario())
    marks = [mark.text for mark in results.workflows[0].marks]
    assert marks == ["added 3 VUs", "paused", "resumed", "removed 5 VUs"]
    assert results.failed == 0


class Arrives(Get):
    vus = None
    rate = "50/s"
    duration = "1m"
    max_vus = 20


class Repeats(Stops):
    pass


def test_one_workflow_is_changed_and_the_other_is_not() -> None:
    async def scenario() -> Results:
        local_run = _local(Arrives, Repeats)
        running = asyncio.create_task(local_run.execute())
        await _until(lambda: all(w.requests for w in local_run.results().workflows))
        local_run.change_rate(4.0, "Arrives")
        local_run.change_rate(4.0, "Repeats")  # it has none
        local_run.scale(2, "Repeats")
        await _until(lambda: local_run.results().workflows[1].vus == 6)
        await _until(
            lambda: any(
                point.requests >= 150 * point.width_s
                for point in local_run.results().workflows[0].series
            )
        )
        local_run.stop()
        return await running

    arrives, repeats = asyncio.run(scenario()).workflows
    assert [mark.text for mark in arrives.marks] == ["rate changed to 200/s"]
    assert [mark.text for mark in repeats.marks] == ["added 2 VUs"]


class Threshold(Get):
    duration = "1m"
    thresholds = ("p(50)<0.0001 abort",)


def test_a_threshold_may_abort_the_run() -> None:
    results = go(Threshold, workers=1)
    assert results.exit_code == ExitCode.THRESHOLDS_CROSSED
    assert results.cut == "threshold"
    assert results.elapsed_s < 30
    assert results.thresholds[0].aborted_at_s is not None


def test_a_run_longer_than_its_timeout_ends() -> None:
    results = go(Stops, workers=1, timeout="4s")
    assert results.cut == "timeout"
    assert results.exit_code == ExitCode.FAILED
    assert results.requests > 0


class Raises(Workflow):
    vus = 2
    iterations = 6

    @step()
    async def bad(self) -> HTTPResponse:
        raise RuntimeError("out of cheese")

    @step("bad")
    async def after(self, bad: HTTPResponse | None = None) -> HTTPResponse:
        return await self.client.http.get("/")


def test_a_raising_step_is_a_failure_and_the_user_goes_on() -> None:
    (workflow,) = go(Raises, workers=1).workflows
    bad, after = workflow.steps
    assert (bad.runs, bad.runs_failed, bad.count, bad.failed) == (6, 6, 0, 0)
    assert bad.errors[0].outcome == "exception"
    assert "out of cheese" in bad.errors[0].samples[0]
    assert (after.count, after.runs, after.skips) == (0, 0, {"bad failed": 6})


class Unset(Workflow):
    iterations = 2

    @step()
    async def ask(self) -> HTTPResponse:
        return await self.client.http.get(os.environ["NOT_HANDED_OVER"])


def test_a_step_that_lacks_a_variable_says_how_to_pass_it() -> None:
    (workflow,) = go(Unset, workers=1).workflows
    (error,) = workflow.steps[0].errors
    assert error.samples[0].endswith("(pass the variable to the test: -e NOT_HANDED_OVER)")


class Nowhere(Workflow):
    vus = 1
    duration = "1s"

    @step()
    async def get(self, url: URL = URL("http://127.0.0.1:9/")) -> HTTPResponse:
        return await self.client.http.get(url)


def test_nothing_succeeded_is_not_success() -> None:
    results = run(Nowhere, workers=1)
    assert results.exit_code == ExitCode.FAILED
    assert results.workflows[0].steps[0].errors[0].outcome == "refused"


def test_blocking_user_code_is_killed_and_reported() -> None:
    class Blocks(Workflow):
        vus = 1
        duration = "1s"
        graceful_stop = 0

        @step()
        async def forever(self) -> HTTPResponse:
            import time

            if self.iteration == 0:
                return await self.client.http.get("/")
            while True:
                time.sleep(0.01)  # noqa: ASYNC251 - the mistake this test is about

    async def scenario() -> Results:
        local_run = _local(Blocks, workers=1)
        running = asyncio.create_task(local_run.execute())
        await _until(lambda: local_run.results().workflows[0].state == "running")
        local_run.kill()
        async with asyncio.timeout(30):
            return await running

    results = asyncio.run(scenario())
    assert results.exit_code == ExitCode.STOPPED


class Asks(Get):
    iterations = 1

    @step()
    async def get(self) -> HTTPResponse:
        assert (os.environ["GIVEN"], os.environ["CHANGED"]) == ("1", "2")
        return await self.client.http.get("/")


def test_variables_of_a_run_are_not_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHANGED", "before")
    before = dict(os.environ)
    results = go(Asks, workers=1, env={"GIVEN": "1", "CHANGED": "2"})
    assert results.passed, results.workflows
    assert dict(os.environ) == before


def test_bad_settings_are_refused_before_anything_starts() -> None:
    with pytest.raises(BadInput, match="vus"):
        go(Get, vus=0)
    with pytest.raises(BadInput, match="workers"):
        go(Get, workers=0)
    with pytest.raises(BadInput, match="open only"):
        go(Get, vus=1_000_000)


class ExitsInTasks(Workflow):
    vus = 2
    iterations = 6

    async def flow(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.exits())

    @step()
    async def exits(self) -> HTTPResponse:
        await self.client.http.get("/")
        raise SystemExit(3)


def test_an_exit_in_a_task_is_a_failed_step_and_the_run_goes_on(
    stats: Callable[[], dict[str, Any]],
) -> None:
    results = go(ExitsInTasks, workers=1)
    (workflow,) = results.workflows
    (exits,) = workflow.steps
    assert not results.lost
    assert workflow.iterations == exits.runs == exits.runs_failed == 6
    assert exits.count == stats()["requests"] == 6


class Tidies(Get):
    iterations = 4

    async def setup(self) -> None:
        await self.client.http.get("/json")

    async def teardown(self) -> None:
        await self.client.http.get("/json")
        raise KeyError("tidy")


def test_requests_of_setup_and_teardown_are_told_apart(
    stats: Callable[[], dict[str, Any]],
) -> None:
    results = go(Tidies, workers=1)
    (workflow,) = results.workflows
    assert workflow.unmeasured == {"setup": 1, "teardown": 1}
    assert workflow.requests + 2 == stats()["requests"] == 6
    (warning,) = [text for text in results.warnings if "teardown" in text]
    assert "KeyError: 'tidy' (test_local_run.py:" in warning
    assert "in teardown)" in warning


class NeedsKey(Get):
    async def setup(self) -> None:
        os.environ["NO_SUCH_KEY"]


class TakesBadly(Get):
    @state("Get")
    def taken(self) -> Use[int]:
        raise ValueError("not taken")


@pytest.mark.parametrize(
    ("workflow", "message", "hint"),
    [
        (NeedsKey, "setup() of NeedsKey raised KeyError: 'NO_SUCH_KEY'", "-e NO_SUCH_KEY"),
        (TakesBadly, "taken() of TakesBadly raised ValueError: not taken", "--debug"),
    ],
)
def test_errors_before_the_load_say_where(
    workflow: type[Workflow], message: str, hint: str
) -> None:
    async def failure() -> HyperscaleError | None:
        run = LocalRun(ClassSource(workflow), options=RunOptions(workers=1))
        await run.execute()
        return run.failure

    failed = asyncio.run(failure())
    assert failed is not None
    assert message in failed.message
    assert "(test_local_run.py:" in failed.message
    assert hint in failed.hint
    assert "Traceback" in failed.detail
    assert "test_local_run.py" in failed.detail


class OddWords(Workflow):
    vus = 1
    iterations = 2

    async def flow(self) -> None:
        await self.client.http.get("/", tags={"page": 5})  # type: ignore[dict-item]
        await self.odd()
        self.metrics.counter("half a character \ud800").add()

    @step()
    async def odd(self) -> HTTPResponse:
        if self.iteration:
            self.stop_test(404)  # type: ignore[arg-type]
        self.skip(5)  # type: ignore[arg-type]


def test_words_of_the_author_that_are_no_text_end_no_run() -> None:
    results = go(OddWords)
    (workflow,) = results.workflows
    tags = [request.tags for step in workflow.steps for request in step.requests]
    assert tags == [{"page": "5"}]
    assert [step.skips for step in workflow.steps if step.skips] == [{"5": 1}]
    assert [metric.name for metric in workflow.metrics] == ["half a character ?"]
    assert (results.cut, results.cut_reason) == ("test", "404")


class BadMetric(Workflow):
    vus = 1
    iterations = 3

    async def flow(self) -> None:
        await self.home()
        self.metrics.trend(5).add(1)  # type: ignore[arg-type]

    @step()
    async def home(self) -> HTTPResponse:
        return await self.client.http.get("/")


def test_a_flow_that_raises_in_every_iteration_fails_the_run() -> None:
    results = go(BadMetric)
    assert results.exit_code == ExitCode.FAILED
    home, flow = results.workflows[0].steps
    assert (home.runs, home.runs_failed) == (3, 0)
    assert (flow.runs, flow.runs_failed) == (3, 3)
    assert "name of a metric is 5" in flow.errors[0].samples[0]
    assert "the flow raised in every iteration" in verdict(results, Paint(False))


class TakenName(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def home(self) -> HTTPResponse:
        self.metrics.trend("http_req_duration").add(3.0)
        return await self.client.http.get("/")


def test_a_metric_of_ones_own_takes_no_name_that_is_measured_already() -> None:
    results = go(TakenName)
    (home,) = results.workflows[0].steps
    assert "metric 'http_req_duration' is measured already" in home.errors[0].samples[0]
    assert results.workflows[0].metrics == []
