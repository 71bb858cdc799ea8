"""A worker on a real store with real executors: what becomes of jobs, and of their processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hyperscale.runtime.tasks import ended
from hyperscale.scheduler.errors import StaleSession, StoreUnavailable
from hyperscale.scheduler.queue.history import Outcome
from hyperscale.scheduler.queue.job import Failure, Job, JobState, new_job
from hyperscale.scheduler.queue.reports import Answer, Completed, Report
from hyperscale.scheduler.queue.spec import JobSpec, RetryPolicy
from hyperscale.scheduler.service import open_worker
from hyperscale.scheduler.settings import SchedulerSettings
from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.sqlite.ground import SqliteGround
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Claim, JobFilter, Submission
from hyperscale.scheduler.worker import reporter
from hyperscale.scheduler.worker.executors.executor import Done, Result, Task
from hyperscale.scheduler.worker.executors.registry import Executors, open_executors
from hyperscale.scheduler.worker.registration import WorkerEvent, WorkerState
from hyperscale.scheduler.worker.reporter import Spool
from hyperscale.scheduler.worker.service import WorkerService
from hyperscale.scheduler.worker.settings import WorkerSettings
from tests.integration.scheduler.waiting import until
from tests.unit.scheduler.store.cases.harness import submit_all
from tests.unit.scheduler.worker.executors.test_executors import gone
from tests.unit.scheduler.worlds import host_of, wall_clock

ONCE = RetryPolicy(max_retries=0)


class FlakyStore(Store):
    """Does not take reports while `away`."""

    away = False
    bugs = 0
    """So many claims raise what no store should."""
    poison = ""
    """Reports of this job do, too."""
    poisoned = 0

    async def claim(self, claim: Claim, now: int) -> list[Job]:
        if self.bugs:
            self.bugs -= 1
            raise ValueError("a bug")
        return await super().claim(claim, now)

    async def report_batch(self, reports: Any, now: int) -> list[Answer]:
        if self.away:
            raise StoreUnavailable("away")
        if any(report.job_id == self.poison for report in reports):
            self.poisoned += 1
            raise ValueError("a bug")
        return await super().report_batch(reports, now)


class Bench:
    def __init__(self, store: FlakyStore, path: Path) -> None:
        self.store = store
        self.settings = WorkerSettings(
            id="worker-1",
            slots=2,
            spool=path / "spool",
            beat_s=0.2,
            dead_after_s=1.0,
            job_beat_s=0.05,
            poll_s=0.2,
            shutdown_timeout_s=20.0,
        )

    async def worker(self, executors: Executors | None = None, **numbers: Any) -> WorkerService:
        executors = executors or open_executors(
            ("time:*", "os:getpid", "operator:add"), command=True
        )
        worker = WorkerService(
            host_of(), self.store, replace(self.settings, **numbers), executors, wall_clock
        )
        await worker.start()
        return worker

    async def submit(self, job_id: str, kind: str, payload: dict[str, str], **fields: Any) -> Job:
        spec = JobSpec(name=job_id, kind=kind, payload=payload, **{"retry": ONCE, **fields})
        now = wall_clock()
        return (await self.store.submit(Submission(job=new_job(job_id, spec, now)), now)).job

    async def job(self, job_id: str) -> Job:
        job = await self.store.job(job_id)
        assert job is not None
        return job

    async def ended(self, job_id: str) -> Job:
        async def over() -> bool:
            return (await self.job(job_id)).ended

        await until(over)
        return await self.job(job_id)

    async def executing(self, job_id: str) -> Job:
        async def begun() -> bool:
            return (await self.job(job_id)).state is JobState.EXECUTING

        await until(begun)
        return await self.job(job_id)


@asynccontextmanager
async def bench(path: Path) -> AsyncIterator[Bench]:
    store = FlakyStore(await SqliteGround.open(path / "jobs.db"))
    assert isinstance(store, FlakyStore)
    try:
        async with asyncio.timeout(100):
            yield Bench(store, path)
    finally:
        await store.close()


def test_a_claim_that_fails_as_none_should_is_not_the_last(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            made.store.bugs = 1
            worker = await made.worker()
            await made.submit("a", "python", {"call": "os:getpid"})
            assert (await made.ended("a")).state is JobState.COMPLETED
            assert made.store.bugs == 0
            await worker.stop()

    asyncio.run(run())


def sleeping(seconds: float) -> dict[str, str]:
    return {"call": "time:sleep", "args": f"[{seconds}]"}


def writing_pid(path: Path) -> dict[str, str]:
    return {"argv": json.dumps(["sh", "-c", f"echo $$ > {path}; exec sleep 600"])}


def test_jobs_run_and_leave_their_output(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as b:
            worker = await b.worker()
            await b.submit("good", "python", {"call": "operator:add", "args": "[1, 2]"})
            await b.submit("bad", "command", {"argv": '["sh", "-c", "echo why; exit 4"]'})
            assert (await b.ended("good")).state is JobState.COMPLETED
            bad = await b.ended("bad")
            assert (bad.state, bad.failure) == (JobState.FAILED, Failure.ERROR)
            (attempt,) = await b.store.attempts("bad")
            assert attempt.exit_code == 4
            assert await b.store.log("bad", attempt.token) == "why\n"
            assert {letter.id for letter in await b.store.letters()} == {"bad"}
            await worker.stop()
            (known,) = await b.store.workers()
            assert known.state is WorkerState.UNAVAILABLE

    asyncio.run(run())


def test_a_kind_it_cannot_run_is_left_to_others(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as b:
            worker = await b.worker()
            await b.submit("strange", "alchemy", {}, priority=0)
            await b.submit("plain", "python", {"call": "operator:add", "args": "[1, 2]"})
            assert (await b.ended("plain")).state is JobState.COMPLETED
            waiting = await b.store.job("strange")
            assert waiting is not None
            assert waiting.state is JobState.PENDING
            await worker.stop()

    asyncio.run(run())


def test_a_job_past_its_timeout_is_killed(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as b:
            worker = await b.worker()
            await b.submit("slow", "command", writing_pid(tmp_path / "pid"), timeout_s=0.5)
            job = await b.ended("slow")
            assert (job.state, job.failure) == (JobState.FAILED, Failure.TIMEOUT)
            assert gone(int((tmp_path / "pid").read_text()))
            await worker.stop()

    asyncio.run(run())


def test_a_job_that_its_breaker_turns_away_waits_free_of_charge(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as b:
            for number in range(15):
                await b.submit(f"j{number:02}", "command", {"argv": '["sh", "-c", "exit 75"]'})
            worker = await b.worker(slots=1)

            async def turned_away() -> bool:
                jobs = (await b.store.jobs(JobFilter())).jobs
                return all(job.ended or "keeps failing" in job.error for job in jobs)

            await until(turned_away)
            jobs = (await b.store.jobs(JobFilter())).jobs
            assert sum(job.state is JobState.FAILED for job in jobs) == 5
            waiting = [job for job in jobs if job.state is JobState.PENDING]
            assert len(waiting) == 10
            for job in waiting:
                assert (job.retries, job.failure) == (0, None)
                assert job.due_at > job.created_at
                assert await b.store.attempts(job.id) == []
            await worker.stop()

    asyncio.run(run())


def test_cancelling_stops_what_runs(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as b:
            worker = await b.worker()
            await b.submit("long", "command", writing_pid(tmp_path / "pid"))
            await b.executing("long")
            await b.store.cancel("long", wall_clock())
            assert (await b.ended("long")).state is JobState.CANCELLED
            await worker.stop()
            if (tmp_path / "pid").exists():
                assert gone(int((tmp_path / "pid").read_text()))

    asyncio.run(run())


def test_a_job_taken_away_is_killed_and_its_report_dropped(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as b:
            worker = await b.worker()
            await b.submit(
                "mine", "python", sleeping(600), retry=RetryPolicy(initial_s=60, max_s=60)
            )
            held = await b.executing("mine")
            await b.store.recover_worker(worker.id, wall_clock())

            async def idle() -> bool:
                return worker.running == 0

            await until(idle)
            job = await b.job("mine")
            assert job.state is JobState.PENDING
            assert job.token > held.token
            await worker.stop()
            assert [a.outcome for a in await b.store.attempts("mine")] == [Outcome.LOST]

    asyncio.run(run())


def test_stopping_finishes_what_runs_and_releases_the_rest(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as b:
            worker = await b.worker(shutdown_timeout_s=1.0)
            await b.submit("short", "python", sleeping(0.3))
            await b.submit("long", "python", sleeping(600))
            await b.executing("short")
            await b.executing("long")
            await worker.stop()
            assert (await b.job("short")).state is JobState.COMPLETED
            long = await b.job("long")
            assert (long.state, long.retries) == (JobState.PENDING, 0)
            assert [a.outcome for a in await b.store.attempts("long")] == [Outcome.RELEASED]

    asyncio.run(run())


def test_reports_survive_the_store_being_away_and_the_process(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as b:
            worker = await b.worker()
            await b.submit("done", "python", sleeping(0.3))
            await b.executing("done")
            b.store.away = True
            spool = Spool(b.settings.spool)

            async def kept() -> bool:
                return len(spool.left()) == 1

            await until(kept)
            await ended(worker._tasks)  # as if the process had died now
            assert (await b.job("done")).state is JobState.EXECUTING
            b.store.away = False
            second = await b.worker(id="worker-2")
            assert (await b.ended("done")).state is JobState.COMPLETED
            await second.stop()
            assert Spool(b.settings.spool).left() == []
            await worker._executors.close()

    asyncio.run(run())


def test_a_spooled_report_with_an_old_token_is_dropped(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as b:
            await b.submit("job", "python", sleeping(600))
            (first,) = await b.store.claim(Claim(worker="ghost", lease_s=60), wall_clock())
            await b.store.recover_worker("ghost", wall_clock())
            old: Report = Completed(job_id="job", worker="ghost", token=first.token)
            Spool(b.settings.spool).keep(old)
            worker = await b.worker()
            job = await b.executing("job")
            assert job.token > first.token

            async def dropped() -> bool:
                return Spool(b.settings.spool).left() == []

            await until(dropped)
            assert (await b.job("job")).state is JobState.EXECUTING
            await b.store.cancel("job", wall_clock())
            await b.ended("job")
            await worker.stop()

    asyncio.run(run())


def test_a_worker_of_another_store_leaves_reports_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def spooled() -> list[Path]:
        return list((tmp_path / "state").rglob("*.json"))

    async def kept() -> bool:
        return len(spooled()) == 1

    async def run() -> None:
        ours = SchedulerSettings(
            store=f"sqlite:{tmp_path / 'jobs.db'}",
            python_allow=("time:*",),
            beat_s=0.2,
            dead_after_s=1.0,
        )
        async with bench(tmp_path) as b:
            async with open_worker(ours, store=b.store):
                await b.submit("done", "python", sleeping(0.3))
                await b.executing("done")
                b.store.away = True
                await until(kept)
            async with open_worker(
                replace(ours, store="redis://other"), store=Store(MemoryGround())
            ):
                pass
            assert await kept()
            b.store.away = False
            async with open_worker(ours, store=b.store):
                assert (await b.ended("done")).state is JobState.COMPLETED
            assert spooled() == []

    asyncio.run(run())


def test_a_report_the_store_fails_on_keeps_no_other_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter, "RETRY_MAX_S", 0.1)

    async def run() -> None:
        async with bench(tmp_path) as b:
            b.store.poison = "bad"
            worker = await b.worker()
            await b.submit("bad", "python", {"call": "os:getpid"})

            async def failed() -> bool:
                return b.store.poisoned > 0

            await until(failed)
            await b.submit("good", "python", {"call": "os:getpid"})
            assert (await b.ended("good")).state is JobState.COMPLETED
            b.store.poison = ""
            assert (await b.ended("bad")).state is JobState.COMPLETED
            await worker.stop()

    asyncio.run(run())


def test_a_job_claimed_ahead_does_not_wait_behind_slow_ones(tmp_path: Path) -> None:
    class Mixed:
        async def run(self, task: Task) -> Result:
            if task.job_id.startswith("slow"):
                await asyncio.Event().wait()
            return Done()

        async def close(self) -> None: ...

    async def run() -> None:
        async with bench(tmp_path) as b:
            worker = await b.worker(Executors({"x": Mixed()}), shutdown_timeout_s=0)
            for _ in range(100):
                worker._prefetch.ran(0.001)
            slow, quick = ["slow0", "slow1"], [f"quick{number:02}" for number in range(20)]
            now = wall_clock()
            specs = [JobSpec(name=i, kind="x", priority=0, retry=ONCE) for i in slow]
            specs += [JobSpec(name=i, kind="x", priority=1, retry=ONCE) for i in quick]
            jobs = [Submission(job=new_job(spec.name, spec, now)) for spec in specs]
            await submit_all(b.store, jobs, now)

            async def spared() -> bool:
                return worker.running == len(slow)

            for job_id in slow:
                await b.executing(job_id)
            await until(spared)
            other = await b.worker(Executors({"x": Mixed()}), id="worker-2")
            for job_id in quick:
                job = await b.ended(job_id)
                assert (job.state, job.retries) == (JobState.COMPLETED, 0)
                outcomes = {attempt.outcome for attempt in await b.store.attempts(job_id)}
                assert outcomes == {Outcome.COMPLETED, Outcome.RELEASED}
            assert worker.running == len(slow)
            await other.stop()
            await worker.stop()

    asyncio.run(run())


def test_draining_by_a_person_and_a_second_process_under_the_id(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as b:
            worker = await b.worker()
            with pytest.raises(StaleSession):
                await b.worker()
            await b.store.move_worker(worker.id, WorkerEvent.DRAIN)

            async def drained() -> bool:
                return worker.draining

            await until(drained)
            async with asyncio.timeout(20):
                await worker.drained()
            await b.submit("later", "python", sleeping(0))
            await b.store.move_worker(worker.id, WorkerEvent.UNDRAIN)
            assert (await b.ended("later")).state is JobState.COMPLETED
            await worker.stop()

    asyncio.run(run())


def test_capabilities_decide_and_progress_is_told(tmp_path: Path) -> None:
    class Steps:
        def __init__(self) -> None:
            self.go = asyncio.Event()

        async def run(self, task: Task) -> Result:
            task.progress(0.5)
            await self.go.wait()
            return Done()

        async def close(self) -> None: ...

    async def run() -> None:
        async with bench(tmp_path) as b:
            steps = Steps()
            worker = await b.worker(Executors({"steps": steps}), capabilities=("gpu",))
            await b.submit("other", "steps", {}, capabilities=("database",))
            await b.submit("mine", "steps", {}, capabilities=("gpu",))

            async def half() -> bool:
                return (await b.job("mine")).progress == 0.5

            await until(half)
            steps.go.set()
            assert (await b.ended("mine")).state is JobState.COMPLETED
            assert (await b.job("other")).state is JobState.PENDING
            await worker.stop()

    asyncio.run(run())


def test_a_job_that_writes_moves_and_a_silent_one_does_not(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import time\nwhile True:\n    print('on')\n    time.sleep(0.05)\n")
    jobs = {
        "python": ("python", {"call": "runpy:run_path", "args": json.dumps([str(script)])}),
        "command": ("command", {"argv": '["sh", "-c", "while echo on; do sleep 0.05; done"]'}),
        "silent": ("command", {"argv": '["sleep", "600"]'}),
    }

    async def run() -> None:
        async with bench(tmp_path) as b:
            executors = open_executors(("runpy:run_path",), command=True)
            worker = await b.worker(executors, slots=3, shutdown_timeout_s=0)
            for name, (kind, payload) in jobs.items():
                await b.submit(name, kind, payload)

            async def moved() -> bool:
                return None not in [(await b.job(n)).progress_at for n in ("python", "command")]

            await until(moved)
            assert (await b.job("silent")).progress_at is None
            await worker.stop()

    asyncio.run(run())


def test_a_worker_replaced_under_its_id_kills_its_jobs_and_ends(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as b:
            worker = await b.worker()
            await b.submit("long", "command", writing_pid(tmp_path / "pid"))

            async def written() -> bool:
                return (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text())

            await until(written)
            (known,) = await b.store.workers()
            usurper = structs.replace(known, instance="another")
            await b.store.register(usurper, wall_clock(), alive_for_s=0)
            await worker.wait()
            assert gone(int((tmp_path / "pid").read_text()))
            await worker.stop()

    asyncio.run(run())
