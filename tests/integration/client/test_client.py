"""`HyperscaleClient` against managers that follow a script."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import structlog

from hyperscale import Workflow, step
from hyperscale.client import (
    HyperscaleClient,
    JobCancelled,
    JobFailed,
    JobNotAccepted,
    JobStatusPush,
    JobSubmission,
    NoGatesAvailable,
    ReconnectFailed,
    UnknownJob,
    WindowedStatsPush,
    WorkflowResultPush,
)
from hyperscale.errors import BadInput, ExitCode, RunFailed
from hyperscale.nodes.client import managers as transport
from hyperscale.nodes.protocol.jobs import JobAck
from hyperscale.runtime import logs
from hyperscale.testing import URL, HTTPResponse
from tests.integration.client.scripted import Book, Job, ScriptedManager, managers, until


class Quick(Workflow):
    vus = 5
    duration = "1s"

    @step()
    async def get(self, url: URL = "http://127.0.0.1:1/") -> HTTPResponse:
        return await self.client.http.get(url)


class Slow(Quick):
    duration = "10s"


def run(coroutine: Any) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 30))


def test_a_job_from_submission_to_its_results(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []

    async def on_status(push: JobStatusPush) -> None:
        await asyncio.sleep(0)
        told.append(("status", push.status + ("!" if push.is_final else "")))

    def on_progress(push: WindowedStatsPush) -> None:
        told.append(("progress", f"{push.workflow_id} {push.total_completed}"))

    def on_result(push: WorkflowResultPush) -> None:
        told.append(("result", push.workflow_id))

    async def scenario() -> None:
        book = Book()
        async with managers(book, tmp_path) as addresses, HyperscaleClient(addresses) as client:
            job_id = await client.submit_job(
                [Quick, Slow],
                vus=3,
                on_status_update=on_status,
                on_progress_update=on_progress,
                on_workflow_result=on_result,
            )
            job = book.only
            assert job.ask.job_id == job_id
            assert {w.name: w.load.peak_vus for w in job.body.workflows} == {"Quick": 2, "Slow": 1}
            await until(lambda: job.watchers)
            job.become("running", Quick="running", Slow="running")
            job.load("Quick", 40, failed=2)
            job.end("Quick")
            results = client.stream_workflow_results(job_id)
            first = await anext(results)
            assert (first.workflow_id, first.status) == ("Quick", "completed")
            assert first.result is not None
            assert first.result.requests == 40
            job.load("Slow", 7)
            job.end("Slow")
            job.finish()
            assert [push.workflow_id async for push in results] == ["Slow"]
            outcome = await client.wait_for_completion(job_id)
            assert outcome.status == "completed"
            assert outcome.results is not None
            assert outcome.results.requests == 47
            assert await client.get_datacenters() == ["eu-1"]
            assert [view.job_id for view in await client.jobs()] == [job_id]
            assert (await client.get_job_status(job_id)).status == "completed"
            assert [worker.worker for worker in await client.workers()] == ["w1"]

    run(scenario())
    # A workflow's last progress is told before its result; the final status is the last word.
    assert [entry for entry in told if entry[0] != "status"] == [
        ("progress", "Quick 38"),
        ("result", "Quick"),
        ("progress", "Slow 7"),
        ("result", "Slow"),
    ]
    assert [text for kind, text in told if kind == "status"] == [
        "submitted",
        "running",
        "completed!",
    ]
    assert told[-1] == ("status", "completed!")


@pytest.mark.parametrize(
    ("status", "error"), [("failed", JobFailed), ("cancelled", JobCancelled), ("partial", None)]
)
def test_a_stream_opened_after_the_end_gives_all_and_then_says_how_it_ended(
    tmp_path: Path, status: str, error: type[Exception] | None
) -> None:
    def ended(job: Job) -> None:
        job.load("Quick", 3)
        job.end("Quick")
        job.end("Slow", "failed", error="the disk is full")
        job.finish(status, "the disk is full", ExitCode.FAILED)

    async def scenario() -> None:
        book = Book()
        book.on_job = ended
        async with managers(book, tmp_path) as addresses, HyperscaleClient(addresses) as client:
            job_id = await client.submit_job([Quick, Slow])
            for _ in range(2):
                results = client.stream_workflow_results(job_id)
                assert (await anext(results)).workflow_id == "Quick"
                assert (await anext(results)).workflow_id == "Slow"
                with pytest.raises(error or StopAsyncIteration):
                    await anext(results)
            outcome = await client.wait_for_completion(job_id)
            assert (outcome.status, outcome.reason) == (status, "the disk is full")

    run(scenario())


def test_a_callback_that_raises_is_called_again_and_complained_of_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In a program that has set up no logs: the complaint shows where, and no variable."""
    calls: list[str] = []

    def broken(push: WorkflowResultPush) -> None:
        password = f"hunter{len('xx')}"
        calls.append(push.workflow_id)
        raise ZeroDivisionError(f"{len(password)} letters")

    async def scenario() -> None:
        book = Book()
        async with managers(book, tmp_path) as addresses, HyperscaleClient(addresses) as client:
            job_id = await client.submit_job([Quick, Slow], on_workflow_result=broken)
            book.only.end("Quick")
            book.only.end("Slow")
            book.only.finish()
            assert (await client.wait_for_completion(job_id)).status == "completed"

    structlog.reset_defaults()
    try:
        run(scenario())
        assert logs.configure().stop()  # what was to be written before is written
    finally:
        structlog.reset_defaults()
    said = capfd.readouterr()
    assert calls == ["Quick", "Slow"]
    assert said.err.count('"event":"callback raised"') == 1
    assert "in broken" in said.err
    assert "ZeroDivisionError: 7 letters" in said.err
    assert "hunter2" not in said.out + said.err


def test_unknown_jobs_are_named(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with managers(Book(), tmp_path) as addresses, HyperscaleClient(addresses) as client:
            with pytest.raises(UnknownJob, match="no job nothing is known"):
                await client.wait_for_completion("nothing")
            with pytest.raises(UnknownJob):
                await anext(client.stream_workflow_results("nothing"))
            with pytest.raises(UnknownJob):
                await client.cancel_job("nothing")
            with pytest.raises(UnknownJob):
                await client.reconnect_to_job("nothing")

    run(scenario())


def test_a_submission_whose_answer_is_lost_does_not_become_two_jobs(tmp_path: Path) -> None:
    async def scenario() -> None:
        book = Book()
        async with managers(book, tmp_path, 2) as addresses:
            book.managers[0].lose_answers = 1
            async with HyperscaleClient(addresses) as client:
                job_id = await client.submit_job([Quick])
                assert len(book.submissions) == 2
                assert len({ask.job_id for ask in book.submissions}) == 1
                assert len({ask.idempotency_key for ask in book.submissions}) == 1
                assert list(book.jobs) == [job_id]

    run(scenario())


def test_the_same_key_again_is_the_same_job(tmp_path: Path) -> None:
    key = "nightly:7:0123456789abcdef"

    async def scenario() -> None:
        book = Book()
        async with managers(book, tmp_path) as addresses:
            async with HyperscaleClient(gate_addrs=addresses) as client:
                first = await client.submit_job([Quick], idempotency_key=key)
            async with HyperscaleClient(gate_tcp_addrs=addresses) as client:
                given = JobSubmission(workflows=[Quick], idempotency_key=key)
                assert await client.submit_job(given) == first
                assert await client.submit_job([Quick]) != first
                assert (await client.get_job_status(idempotency_key=key)).job_id == first
                with pytest.raises(UnknownJob):
                    await client.get_job_status(idempotency_key="nightly:8:0123456789abcdef")
                with pytest.raises(BadInput, match="takes a job's id, or an idempotency_key"):
                    await client.get_job_status(first, idempotency_key=key)
                with pytest.raises(BadInput, match="idempotency key"):
                    await client.submit_job([Quick], idempotency_key="nightly")
        assert len(book.jobs) == 2

    run(scenario())


def test_a_full_queue_is_waited_for_and_a_no_is_a_no(tmp_path: Path) -> None:
    def full(ask: Any) -> JobAck:
        return JobAck(job_id=ask.job_id, accepted=False, error="full", retry_after_s=0.01)

    def no(ask: Any) -> JobAck:
        return JobAck(job_id=ask.job_id, accepted=False, error="too many workflows", hint="fewer")

    async def scenario() -> None:
        book = Book()
        async with managers(book, tmp_path) as addresses, HyperscaleClient(addresses) as client:
            book.answers = [full, full]
            await client.submit_job([Quick])
            assert len(book.submissions) == 3
            book.answers = [no]
            with pytest.raises(JobNotAccepted, match="too many workflows") as caught:
                await client.submit_job([Quick])
            assert caught.value.hint == "fewer"
            book.answers = []
            await client.submit_job(JobSubmission(workflows=[Quick], target_datacenters=["mars"]))
            assert book.submissions[-1].datacenters == {"mars": 0}

    run(scenario())


def test_steering_reaches_the_job(tmp_path: Path) -> None:
    async def scenario() -> None:
        book = Book()
        async with managers(book, tmp_path) as addresses, HyperscaleClient(addresses) as client:
            job_id = await client.submit_job([Quick, Slow])
            assert await client.pause_job(job_id) == 2
            await client.resume_job(job_id)
            await client.scale_job(job_id, 50)
            await client.stop_job(job_id)
            await client.cancel_job(job_id)
            await client.cancel_job(job_id)
            assert book.only.steered == [
                ("pause", 0),
                ("resume", 0),
                ("scale", 50),
                ("stop", 0),
                ("cancel", 0),
                ("cancel", 0),
            ]

    run(scenario())


def test_the_death_of_the_manager_that_is_followed_costs_nothing(tmp_path: Path) -> None:
    """Only one manager is named; the other is learned from it."""

    async def scenario() -> None:
        book = Book()
        async with managers(book, tmp_path, 2) as addresses:
            totals: list[int] = []
            async with HyperscaleClient([addresses[0]]) as client:
                job_id = await client.submit_job(
                    [Quick], on_progress_update=lambda push: totals.append(push.total_completed)
                )
                job = book.only
                await until(lambda: job.watchers)
                job.become("running", Quick="running")
                job.load("Quick", 10)
                await until(lambda: totals)
                await book.managers[0].stop()
                await until(lambda: not job.watchers)
                job.load("Quick", 10)
                await until(lambda: job.watchers)
                job.load("Quick", 10)
                job.end("Quick")
                job.finish()
                outcome = await client.wait_for_completion(job_id)
                assert outcome.results is not None
                assert outcome.results.requests == 30
                assert totals == sorted(totals)
                assert totals[-1] == 30

    run(scenario())


def test_a_later_program_comes_back_to_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        book = Book()
        async with managers(book, tmp_path) as addresses:
            async with HyperscaleClient(addresses) as client:
                job_id = await client.submit_job([Quick])
            book.only.end("Quick")
            seen: list[str] = []
            async with HyperscaleClient(addresses) as client:
                view = await client.reconnect_to_job(
                    job_id, on_workflow_result=lambda push: seen.append(push.workflow_id)
                )
                assert view.job_id == job_id
                book.only.finish()
                assert (await client.wait_for_completion(job_id)).status == "completed"
                assert seen == ["Quick"]
                monkeypatch.setattr(transport, "PATIENCE_S", 0.2)
                await book.managers[0].stop()
                with pytest.raises(ReconnectFailed, match="no manager can be reached"):
                    await client.reconnect_to_job(job_id, max_retries=2)

    run(scenario())


def test_nobody_there_is_said_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_CONTACT_S", 0.3)

    async def scenario() -> None:
        client = HyperscaleClient(["127.0.0.1:1"])
        with pytest.raises(NoGatesAvailable, match=r"no manager can be reached at 127.0.0.1:1"):
            await client.start()
        with pytest.raises(RunFailed, match="not started"):
            await client.jobs()

    run(scenario())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cluster": "other"}, "this is cluster 'other', not 'default'"),
        ({"environment": "prod"}, "this is environment 'prod', not 'dev'"),
        ({"protocol": (9, 0)}, "protocol 1.* cannot talk to 9.0"),
    ],
)
def test_a_client_of_another_cluster_is_told_at_once(
    tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    async def scenario() -> None:
        manager = ScriptedManager(Book(), tmp_path, **options)
        address = await manager.start()
        try:
            with pytest.raises(RunFailed, match=sentence) as caught:
                await HyperscaleClient([address]).start()
            assert caught.value.hint
            assert manager.connections == 0
        finally:
            await manager.stop()

    run(scenario())
