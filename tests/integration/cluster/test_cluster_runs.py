"""Jobs on a cluster of real processes as users meet them: run, watched, steered, cancelled.

One cluster serves all of these tests; each leaves every core free.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import ExitCode
from tests.fixtures.recording_http import recording
from tests.fixtures.services import honeycomb
from tests.integration.cluster.fleet import OPEN, Fleet, until
from tests.integration.cluster.loads import steady, write
from tests.integration.cluster.witness import Witness
from tests.integration.reporting.worlds import ask_sqlite

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("cluster")
    with Fleet(folder, managers=1, workers=2, cores=1) as fleet:
        yield fleet.start()


@pytest.fixture
def fleet(pool: Fleet) -> Iterator[Fleet]:
    yield pool
    pool.wait_until_idle()


@pytest.fixture
def witness() -> Iterator[Witness]:
    with Witness() as made:
        yield made


def steps_of(results: dict[str, Any]) -> dict[str, int]:
    return {step["name"]: step["count"] for one in results["workflows"] for step in one["steps"]}


def test_reporters_of_a_job_count_what_the_target_counted(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    """Live and at the end, by the command that watches it."""
    words = (EXAMPLES / "quickstart.py", "-d", "2s", "-u", 2, "-e", f"TARGET={witness.url}")
    store = tmp_path / "a.db"
    with recording() as recorder:
        config, in_honeycomb = honeycomb(recorder, tmp_path)
        live = f"honeycomb://127.0.0.1:{recorder.port}/load?secure=false"
        sent = ("-o", live, "-o", f"sqlite://{store}")
        env = {"TARGET": witness.url, "HONEYCOMB_API_KEY": getattr(config, "api_key", "")}
        ended = fleet.hyperscale("run", *words, *fleet.there, *sent, **env)
        assert ended.code == ExitCode.PASSED, ended
        assert in_honeycomb() == witness.requests
        assert len(recorder.of("POST", "/1/batch/load")) > 1
    ((stored,),) = ask_sqlite(store, "select requests from hyperscale_runs")
    assert stored == witness.requests


def shape(value: Any) -> Any:
    """Which fields there are, not what is in them; `name: count` tables differ from run to run."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__ if not isinstance(value, int | float) else "number"


def test_the_quickstart_reads_the_same_as_on_one_machine(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    there, here = tmp_path / "there.json", tmp_path / "here.json"
    words = (EXAMPLES / "quickstart.py", "-d", "1s", "-u", 4, "-e", f"TARGET={witness.url}")
    env = {"TARGET": witness.url}
    cluster = fleet.hyperscale("run", *words, *fleet.there, "--json", there, **env)
    assert cluster.code == ExitCode.PASSED, cluster
    results = json.loads(there.read_text())
    assert steps_of(results) == {"home": witness.requests}
    witness.reset()
    local = fleet.hyperscale("run", *words, "--json", here, "-w", 2, **env)
    assert local.code == ExitCode.PASSED, local

    def labels(text: str) -> list[str]:
        found = re.findall(r"^  (\w+)\.\.+:", text, re.MULTILINE)
        return [label for label in found if label != "http_req_looking_up"]  # if it took any time

    assert labels(cluster.out) == labels(local.out) != []
    mine = json.loads(here.read_text())
    for one in (results, mine):
        made = sum(step["count"] for step in one["workflows"][0]["steps"])
        cost = one["generator"]
        assert 0 < cost["cpu_seconds"] == one["workflows"][0]["cpu_seconds"]
        assert cost["requests_per_cpu_second"] == pytest.approx(made / cost["cpu_seconds"])
    for one in (results, mine):
        one["core_use"], one["saturation"] = [], []  # a busy machine has more to say here
    assert shape(results) == shape(mine)


TWO_LAYERS = """
class SignIn(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def login(self, url: URL = TARGET + "/login") -> HTTPResponse:
        return await self.client.http.post(url, json={"user": "ada", "password": "secret"})

    @state("Browse")
    def token(self) -> Provide[str]:
        return self.login.response.json()["token"]


@depends("SignIn")
class Browse(Workflow):
    vus = 4
    iterations = 40

    @state("SignIn")
    def bearer(self, token: str = "") -> Use[str]:
        return f"Bearer {token}"

    @step()
    async def profile(self, url: URL = TARGET + "/me") -> HTTPResponse:
        return await self.client.http.get(url, headers={"Authorization": self.bearer()})
"""


def test_state_goes_from_one_workflow_to_the_next(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    """The token reaches both workers; without it the target would answer 401."""
    ended = fleet.hyperscale("run", write(tmp_path, witness.url, TWO_LAYERS), *fleet.there)
    assert ended.code == ExitCode.PASSED, ended
    results = fleet.results(re.findall(r"job (\w+) accepted", ended.err)[0])
    assert steps_of(results) == {"login": 1, "profile": 40}
    assert {one["name"]: one["cores"] for one in results["workflows"]}["Browse"] == 2
    assert all(step["failed"] == 0 for one in results["workflows"] for step in one["steps"])
    assert witness.paths().get("/me") == 40


PROGRAM = """
import asyncio
import random

from hyperscale import Workflow, step
from hyperscale.client import HyperscaleClient
from hyperscale.errors import HyperscaleError
from hyperscale.testing import URL, HTTPResponse

DICE = random.Random()


class Once(Workflow):
    iterations = 3
    names = {{"alpha", "beta", "gamma", "delta"}}

    @step()
    async def get(self, url: URL = {url!r}) -> HTTPResponse:
        assert DICE.random() < 1 and "alpha" in self.names
        return await self.client.http.get(url)


async def main():
    async with HyperscaleClient() as client:
        try:
            print(await client.submit_job([Once], idempotency_key="nightly:1:0123456789abcdef"))
        except HyperscaleError as error:
            print(type(error).__name__, error.message)


asyncio.run(main())
"""


def test_a_program_that_is_started_again_finds_its_job(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    def started(path: str = "/", **env: str) -> str:
        file = tmp_path / "program.py"
        file.write_text(PROGRAM.format(url=witness.url + path))
        return fleet.program(file, **env)

    job_id = started(PYTHONHASHSEED="1")
    assert started(PYTHONHASHSEED="2") == job_id
    assert started("/other") == (
        f"JobNotAccepted the cluster does not take the job: its key belongs to job {job_id}, "
        "which is another test"
    )
    fleet.wait_for_end(job_id)
    shown = fleet.hyperscale("status", "--key", "nightly:1:0123456789abcdef")
    assert f"job {job_id}" in shown.out
    assert witness.requests == 3


CONTEXT = """
import asyncio


class Late(Workflow):
    async def setup(self) -> None:
        self.context["both"] = "setup"
        self.context["kept"] = "setup"

    @action()
    async def write(self) -> None:
        await asyncio.sleep(0.7)
        self.context["both"] = "late"
        self.context["named"] = "late"


class Early(Workflow):
    @action()
    async def write(self) -> None:
        self.context["named"] = "early"


class Measured(Workflow):
    iterations = 1

    async def setup(self) -> None:
        self.context["measured"] = "yes"

    @step()
    async def get(self, url: URL = TARGET + "/") -> HTTPResponse:
        return await self.client.http.get(url)


@depends("Late", "Early", "Measured")
class Last(Workflow):
    iterations = 1

    @step()
    async def found(self) -> HTTPResponse:
        words = [self.context.get(key, "-") for key in ("both", "kept", "named", "measured")]
        return await self.client.http.get(TARGET + "/" + "/".join(words))


@depends("Last")
class Stranger(Workflow):
    iterations = 1

    @step()
    async def nothing(self) -> HTTPResponse:
        return await self.client.http.get(f"{TARGET}/{len(self.context)}")
"""


def test_a_context_is_the_same_here_and_there(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    """Early wrote first, but it is named after Late; setup() comes before the steps; who depends on
    Last gets nothing of what Last was given."""
    file = write(tmp_path, witness.url, CONTEXT)
    found = []
    for where in (("-w", 2), fleet.there):
        witness.reset()
        fleet.hyperscale("run", file, *where)  # the witness knows none of these paths: no pass
        found.append(witness.paths())
    assert found[0] == found[1] == {"/": 1, "/late/setup/early/yes": 1, "/0": 1}


TOO_MUCH = """
def made(number):
    async def write(self) -> None:
        self.context[f"key{number}"] = os.urandom(3_900_000)

    return type(f"P{number}", (Workflow,), {"write": action()(write), "__module__": __name__})


P0, P1, P2, P3, P4, P5, P6, P7, P8 = map(made, range(9))


@depends(*(f"P{number}" for number in range(9)))
class Last(Workflow):
    iterations = 1

    @step()
    async def get(self, url: URL = TARGET + "/") -> HTTPResponse:
        return await self.client.http.get(url)
"""


def test_what_is_too_much_for_a_worker_says_how_much_that_is(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    ended = fleet.hyperscale("run", write(tmp_path, witness.url, TOO_MUCH), *fleet.there)
    results = fleet.results(re.findall(r"job (\w+) accepted", ended.err)[0])
    (last,) = [one for one in results["workflows"] if one["name"] == "Last"]
    assert re.search(
        r"not run, because it takes 35\.\d MB to send it to a worker, and at most 33\.6 MB can be: "
        r"what P0, .*, P8 left \(35\.\d MB\)",
        last["error"],
    ), last["error"]
    assert witness.requests == 0


ROWS = """
class Rows(Workflow):
    vus = 4
    iterations = 60
    data = "rows.csv"

    async def setup(self) -> None:
        with open({marks!r} + "/setup", "a") as file:
            file.write("x")

    async def teardown(self) -> None:
        with open({marks!r} + "/teardown", "a") as file:
            file.write("x")

    @step()
    async def use(self, row: dict[str, str], url: URL = TARGET + "/") -> HTTPResponse:
        with open({marks!r} + "/rows", "a") as file:
            file.write(row["id"] + "\\n")
        return await self.client.http.get(url)
"""


def test_rows_are_given_once_and_setup_and_teardown_run_once(
    witness: Witness, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("id\n" + "".join(f"{n}\n" for n in range(60)))
    file = write(tmp_path, witness.url, ROWS.format(marks=str(tmp_path)))
    with Fleet(tmp_path, workers=2, worker_env=OPEN) as fleet:
        ended = fleet.start().hyperscale("run", file, *fleet.there)
    assert ended.code == ExitCode.PASSED, ended
    used = (tmp_path / "rows").read_text().split()
    assert sorted(used, key=int) == [str(n) for n in range(60)]
    assert (tmp_path / "setup").read_text() == "x"
    assert (tmp_path / "teardown").read_text() == "x"


def test_the_client_is_killed_and_another_attaches(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    file = steady(tmp_path, witness.url, duration="4s")
    with fleet.running("run", file, *fleet.there) as run:
        run.wait_until_said("accepted")
        job_id = re.findall(r"job (\w+) accepted", run.said)[0]
        fleet.wait_until_running(job_id, 50)
        run.signal(signal.SIGKILL)
    ended = fleet.hyperscale("attach", job_id)
    assert ended.code == ExitCode.PASSED, ended
    assert f"✓ passed: {witness.requests:,} requests" in ended.out
    again = fleet.hyperscale("results", job_id)
    assert again.out.splitlines()[-1] == ended.out.splitlines()[-1]


def test_one_key_is_one_job(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    file = steady(tmp_path, witness.url, iterations=30)
    key = ("--idempotency-key", "pipeline:7:0123456789abcdef")
    first = fleet.hyperscale("submit", file, *key)
    assert first.code == ExitCode.PASSED, first
    second = fleet.hyperscale("submit", file, *key)
    assert second.code == ExitCode.PASSED, second
    assert "exists already under this key" in second.err
    assert witness.requests == 30
    other = fleet.hyperscale("submit", steady(tmp_path, witness.url, iterations=31), *key)
    assert other.code != ExitCode.PASSED
    assert witness.requests == 30


def test_pause_resume_and_scale(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    job_id = fleet.detached(steady(tmp_path, witness.url, duration="12s", think="20ms"))
    fleet.wait_until_running(job_id, 20)
    assert "paused" in fleet.hyperscale("pause", job_id).out

    def still() -> bool:
        looks = witness.looks[-10:]
        return len(looks) == 10 and looks[0].requests == looks[-1].requests

    until(still, "the load to stand still")
    assert fleet.job(job_id).paused
    before = witness.requests
    assert "resumed" in fleet.hyperscale("resume", job_id).out
    witness.wait_for_requests(before)
    scaled = fleet.hyperscale("scale", job_id, "--vus", 12)
    assert scaled.code == 0, scaled
    assert "12 virtual users" in scaled.out
    assert fleet.wait_for_end(job_id).exit_code == ExitCode.PASSED
    results = fleet.results(job_id)
    (workflow,) = results["workflows"]
    assert steps_of(results) == {"get": witness.requests}
    assert workflow["vus_max"] == 12
    marks = [mark["text"] for mark in workflow["marks"]]
    assert marks == ["paused", "resumed", "scaled to 12 VUs"]


# -- cancelling ----------------------------------------------------------------------------------

SLOW_SETUP = """
import asyncio

class Slow(Workflow):
    vus = 1
    iterations = 1

    async def setup(self) -> None:
        await self.client.http.get(TARGET + "/json")
        await asyncio.sleep(60)

    @step()
    async def get(self, url: URL = TARGET + "/") -> HTTPResponse:
        return await self.client.http.get(url)
"""

CHAIN = """
class First(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def one(self, url: URL = TARGET + "/json") -> HTTPResponse:
        return await self.client.http.get(url)

@depends("First")
class Second(Workflow):
    vus = 1
    duration = "60s"

    @step()
    async def two(self, url: URL = TARGET + "/delay/100") -> HTTPResponse:
        return await self.client.http.get(url)
"""


def cancel(fleet: Fleet, job_id: str) -> None:
    ended = fleet.hyperscale("cancel", job_id)
    assert ended.code == 0, ended
    assert f"job {job_id} ended as cancelled" in ended.out
    view = fleet.job(job_id)
    assert (view.status, view.exit_code) == ("cancelled", ExitCode.STOPPED)
    assert all(not one.workers for one in view.workflows), view


def assert_silent(witness: Witness) -> None:
    """A cancelled job sends nothing any more: nothing in the next ten looks."""
    seen = len(witness.looks)
    until(lambda: len(witness.looks) >= seen + 12, "ten looks at the target")
    assert witness.looks[seen + 1].requests == witness.looks[-1].requests


def test_cancel_while_it_runs(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    job_id = fleet.detached(steady(tmp_path, witness.url, duration="60s"))
    fleet.wait_until_running(job_id, 50)
    cancel(fleet, job_id)
    assert_silent(witness)
    assert witness.requests - sum(steps_of(fleet.results(job_id)).values()) in range(5)


def test_cancel_while_it_waits_in_the_queue(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    first = fleet.detached(steady(tmp_path, witness.url, duration="60s"))
    fleet.wait_until_running(first, 20)
    second = fleet.detached(steady(tmp_path, witness.url, duration="60s", path="/json"))
    assert fleet.job(second).position == 1
    cancel(fleet, second)
    assert "/json" not in witness.paths()
    cancel(fleet, first)


def test_cancel_while_it_is_dispatched(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    """At once after the submission, wherever that is."""
    for _ in range(3):
        cancel(fleet, fleet.detached(steady(tmp_path, witness.url, duration="60s")))
    assert_silent(witness)


def test_cancel_while_it_prepares(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    job_id = fleet.detached(write(tmp_path, witness.url, SLOW_SETUP))
    until(lambda: "/json" in witness.paths(), "setup() at work")
    cancel(fleet, job_id)
    assert "/" not in witness.paths()


def test_cancel_between_layers(fleet: Fleet, witness: Witness, tmp_path: Path) -> None:
    job_id = fleet.detached(write(tmp_path, witness.url, CHAIN))
    until(lambda: "/json" in witness.paths(), "the first layer at work")
    cancel(fleet, job_id)
    assert_silent(witness)


def test_a_cancelled_job_cannot_be_cancelled_again_into_something_else(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    job_id = fleet.detached(steady(tmp_path, witness.url, iterations=5))
    assert fleet.wait_for_end(job_id).exit_code == ExitCode.PASSED
    refused = fleet.hyperscale("cancel", job_id)
    assert refused.code == ExitCode.FAILED, refused
    assert fleet.job(job_id).status == "completed"


def test_ctrl_c_of_the_client_stops_the_load(
    fleet: Fleet, witness: Witness, tmp_path: Path
) -> None:
    file = steady(tmp_path, witness.url, duration="60s")
    with fleet.running("run", file, *fleet.there) as run:
        witness.wait_for_requests(50)
        run.signal(signal.SIGINT)
        ended = run.ended()
    assert ended.code == ExitCode.STOPPED, ended
    assert_silent(witness)
    assert f"{witness.requests:,} requests" in ended.out
