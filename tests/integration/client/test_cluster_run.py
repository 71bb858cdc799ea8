"""A run on a cluster seen as a local one: results live and final, levers, the end of managers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hyperscale import Workflow, step
from hyperscale.engine.run import RunOptions
from hyperscale.engine.source import ClassSource
from hyperscale.errors import BadInput, ExitCode
from hyperscale.metrics.results import Results
from hyperscale.nodes.client import managers as transport
from hyperscale.nodes.client.cluster_run import ClusterRun
from hyperscale.nodes.client.errors import ReconnectFailed
from hyperscale.nodes.client.settings import ClusterSettings, read_cluster
from hyperscale.nodes.protocol.jobs import SteerJob
from hyperscale.testing import URL, HTTPResponse
from hyperscale.workload.plan import Overrides
from tests.integration.client.scripted import Book, Job, managers, until


class Quick(Workflow):
    vus = 5
    duration = "1s"

    @step()
    async def get(self, url: URL = "http://127.0.0.1:1/") -> HTTPResponse:
        return await self.client.http.get(url)


def settings(addresses: list[str]) -> ClusterSettings:
    return read_cluster({"manager": addresses}, {"XDG_CACHE_HOME": "/nowhere"}, {})


class Arrives(Quick):
    vus = None
    rate = "10/s"


def submitted(addresses: list[str], *workflows: type[Workflow]) -> ClusterRun:
    options = RunOptions(name="evening", command="hyperscale run x.py")
    source = ClassSource(*(workflows or (Quick,)))
    return ClusterRun.submit(settings(addresses), source, None, options)


def played(
    tmp_path: Path, scenario: Callable[[Book, list[str]], Any], count: int = 1
) -> tuple[Book, Any]:
    book = Book()

    async def play() -> Any:
        async with managers(book, tmp_path, count) as addresses:
            return await asyncio.wait_for(scenario(book, addresses), 30)

    return book, asyncio.run(play())


def test_results_grow_with_the_job_and_end_as_the_cluster_says(tmp_path: Path) -> None:
    async def scenario(book: Book, addresses: list[str]) -> Results:
        run = submitted(addresses)
        assert run.results().state == "preparing"
        running = asyncio.create_task(run.execute())
        await run.accepted.wait()
        job = book.only
        assert run.job_id == job.ask.job_id
        await until(lambda: job.watchers)
        job.become("queued", "no workers yet")
        await until(lambda: run.results().warnings)
        assert run.results().warnings == ["the job waits: no workers yet"]
        job.become("running", Quick="running")
        job.load("Quick", 40, failed=2, vus=7)
        await until(lambda: run.results().requests == 40)
        now = run.results()
        assert (now.name, now.state, now.failed) == ("evening", "running", 2)
        assert (now.workflows[0].state, now.workflows[0].vus) == ("running", 7)
        assert now.workflows[0].steps[0].service.count == 40
        job.paused = True
        job.become("running")
        await until(lambda: run.results().state == "paused")
        job.end("Quick")
        job.finish(exit_code=ExitCode.THRESHOLDS_CROSSED)
        ended = await running
        assert run.results() is ended
        assert run.failure is None
        return ended

    _, ended = played(tmp_path, scenario)
    assert ended.state == "finished"
    assert ended.requests == 40
    assert ended.exit_code == ExitCode.THRESHOLDS_CROSSED


def test_totals_do_not_go_back_when_a_new_manager_knows_less(tmp_path: Path) -> None:
    async def scenario(book: Book, addresses: list[str]) -> Results:
        run = submitted(addresses)
        running = asyncio.create_task(run.execute())
        await until(lambda: book.jobs and book.only.watchers)
        job = book.only
        job.become("running", Quick="running")
        for _ in range(5):
            job.load("Quick", 10)
        await until(lambda: run.results().requests == 50)
        forgetful = Job(job.ask)
        forgetful.become("running", Quick="running")
        forgetful.load("Quick", 30)
        book.jobs[run.job_id] = forgetful
        await book.managers[0].stop()
        await until(lambda: forgetful.watchers)
        forgetful.load("Quick", 15)
        seen = [run.results().requests]
        forgetful.load("Quick", 15)
        await until(lambda: seen.append(run.results().requests) or seen[-1] == 60)
        assert seen == sorted(seen)
        assert set(seen) <= {50, 60}
        forgetful.end("Quick")
        forgetful.finish()
        return await running

    _, ended = played(tmp_path, scenario, 2)
    assert ended.requests == 60


def test_a_cluster_that_does_not_come_back_is_said_with_the_way_to_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(book: Book, addresses: list[str]) -> ClusterRun:
        run = submitted(addresses)
        running = asyncio.create_task(run.execute())
        await until(lambda: book.jobs and book.only.watchers)
        book.only.become("running", Quick="running")
        book.only.load("Quick", 5)
        await until(lambda: run.results().requests == 5)
        monkeypatch.setattr(transport, "PATIENCE_S", 0.2)
        await book.managers[0].stop()
        with pytest.raises(ReconnectFailed, match="tells nothing more of job") as caught:
            await running
        assert f"hyperscale attach {run.job_id}" in caught.value.hint
        return run

    _, run = played(tmp_path, scenario)
    assert (run.results().state, run.results().requests) == ("finished", 5)


def test_stopping_is_asked_of_the_job_and_the_third_time_we_leave(tmp_path: Path) -> None:
    async def scenario(book: Book, addresses: list[str]) -> Results:
        run = submitted(addresses)
        run.stop()  # before the job has a name: it is asked as soon as it has one
        running = asyncio.create_task(run.execute())
        await until(lambda: book.jobs and book.only.steered == [("stop", 0)])
        run.kill()
        await until(lambda: book.only.steered[-1] == ("cancel", 0))
        assert not running.done()
        run.kill()
        return await running

    _, ended = played(tmp_path, scenario)
    assert (ended.state, ended.cut, ended.exit_code) == ("finished", "signal", ExitCode.STOPPED)


def test_who_leaves_before_the_cluster_answers_knows_the_job(tmp_path: Path) -> None:
    async def scenario(book: Book, addresses: list[str]) -> Results:
        book.silent = True
        run = submitted(addresses)
        running = asyncio.create_task(run.execute())
        await until(lambda: book.jobs)
        run.stop()
        run.kill()
        run.kill()
        return await running

    book, ended = played(tmp_path, scenario)
    assert (ended.state, ended.cut, ended.exit_code) == ("finished", "signal", ExitCode.STOPPED)
    assert "before the cluster answered" in ended.cut_reason
    assert f"hyperscale cancel {book.only.ask.job_id}" in ended.cut_reason


def test_who_leaves_before_anything_is_sent_left_no_job(tmp_path: Path) -> None:
    async def scenario(book: Book, addresses: list[str]) -> Results:
        run = submitted(addresses)
        running = asyncio.create_task(run.execute())
        running.get_loop().call_soon(run.leave)  # right after the run has begun
        return await running

    book, ended = played(tmp_path, scenario)
    assert book.jobs == {}
    assert ended.cut_reason == "left before the job was submitted"


def test_levers_reach_the_job(tmp_path: Path) -> None:
    async def scenario(book: Book, addresses: list[str]) -> list[str]:
        def carried_out(job: Job, ask: SteerJob) -> None:
            if ask.action == "cancel":
                job.finish("cancelled", "by hand", ExitCode.STOPPED, "signal")

        book.on_steer = carried_out
        run = submitted(addresses)
        troubles: list[str] = []
        run.on_trouble = troubles.append
        running = asyncio.create_task(run.execute())
        await until(lambda: book.jobs and book.only.watchers)
        job = book.only
        run.scale(2)
        job.become("running", Quick="running")
        job.load("Quick", 1, vus=10)
        await until(lambda: run.results().workflows[0].vus == 10)
        run.pause()
        run.resume()
        run.scale(2)
        run.scale(-50)
        await until(lambda: len(job.steered) == 4)
        assert sorted(job.steered) == [("pause", 0), ("resume", 0), ("scale", 1), ("scale", 12)]
        run.stop()
        run.kill()
        ended = await running
        assert (ended.cut, ended.exit_code) == ("signal", ExitCode.STOPPED)
        return troubles

    _, troubles = played(tmp_path, scenario)
    assert troubles == ["scale: no workflow of the job has virtual users now"]


def test_each_workflow_is_scaled_from_what_it_has(tmp_path: Path) -> None:
    async def scenario(book: Book, addresses: list[str]) -> list[str]:
        run = submitted(addresses, Quick, Arrives)
        troubles: list[str] = []
        run.on_trouble = troubles.append
        running = asyncio.create_task(run.execute())
        await until(lambda: book.jobs and book.only.watchers)
        job = book.only
        job.rate_percent = 110  # changed by somebody else before
        job.become("running", Quick="running", Arrives="running")
        job.load("Quick", 1, vus=10)
        job.load("Arrives", 1, vus=3)
        await until(lambda: [w.vus for w in run.results().workflows] == [10, 3])
        run.scale(2, "Quick")
        run.scale(1)
        run.change_rate(1.1, "Arrives")
        run.change_rate(0.9)
        run.change_rate(1.1, "Quick")
        run.scale(1, "Arrives")
        await until(lambda: len(job.steered) == 4)
        assert sorted(zip(job.steered, job.concerned, strict=True)) == [
            (("rate", 99), "Arrives"), (("rate", 121), "Arrives"),
            (("scale", 11), "Quick"), (("scale", 12), "Quick"),
        ]  # fmt: skip
        job.finish("cancelled", "by hand", ExitCode.STOPPED, "signal")
        await running
        return troubles

    _, troubles = played(tmp_path, scenario)
    assert troubles == [
        "rate: Quick has no arrivals now",
        "scale: Arrives makes its load by arrivals",
    ]


@pytest.mark.parametrize("exit_code", [ExitCode.BAD_INPUT, ExitCode.FAILED])
def test_a_test_that_cannot_be_carried_out_is_a_failure_with_its_hint(
    tmp_path: Path, exit_code: ExitCode
) -> None:
    async def scenario(book: Book, addresses: list[str]) -> ClusterRun:
        def fails(job: Job) -> None:
            job.end("Quick", "failed", error="no module named shop", hint="bundle it")
            job.finish("failed", "no module named shop", exit_code, "error")

        book.on_job = fails
        run = submitted(addresses)
        assert (await run.execute()).exit_code == exit_code
        return run

    _, run = played(tmp_path, scenario)
    assert run.failure is not None
    assert run.failure.exit_code == exit_code
    assert (run.failure.message, run.failure.hint) == ("no module named shop", "bundle it")


def test_a_job_can_be_left_and_come_back_to(tmp_path: Path) -> None:
    async def scenario(book: Book, addresses: list[str]) -> Results:
        run = submitted(addresses)
        await run.detach()
        job = book.only
        job.become("running", Quick="running")
        job.load("Quick", 12)
        first = ClusterRun.attach(settings(addresses), run.job_id)
        looking = asyncio.create_task(first.execute())
        await until(lambda: first.results().requests == 12)
        assert first.results().name == "evening"
        first.leave()
        assert (await looking).cut_reason == "left; the job goes on"
        assert job.steered == []
        again = ClusterRun.attach(settings(addresses), run.job_id)
        looking = asyncio.create_task(again.execute())
        await until(lambda: job.watchers)
        job.load("Quick", 8)
        job.end("Quick")
        job.finish()
        return await looking

    _, ended = played(tmp_path, scenario)
    assert ended.requests == 20


def test_what_cannot_be_planned_is_not_sent(tmp_path: Path) -> None:
    async def scenario(book: Book, addresses: list[str]) -> None:
        odd = Overrides(duration="soon")
        with pytest.raises(BadInput, match="soon"):
            ClusterRun.submit(settings(addresses), ClassSource(Quick), odd)

    book, _ = played(tmp_path, scenario)
    assert book.submissions == []
