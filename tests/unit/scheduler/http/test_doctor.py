"""Faults put into a running scheduler, and their names out of its doctor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.http import operations
from hyperscale.scheduler.instants import Instant, after
from hyperscale.scheduler.queue.job import Failure, new_job
from hyperscale.scheduler.queue.reports import Failed, Started
from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.schedules.schedule import Schedule, ScheduleDefinition
from hyperscale.scheduler.store.types import PAGE_MAX, Claim, Submission
from tests.integration.scheduler.waiting import until
from tests.unit.scheduler.http.harness import WORK, Api, with_api
from tests.unit.scheduler.store.cases.harness import submit_all

SPEC = JobSpec(name="probe", kind="http")
BEAT = {"worker_id": "w-1", "instance": "i-1", "capacity": 1, "sequence_number": 1}


async def names(api: Api) -> list[str]:
    return [one["name"] for one in (await api.get("/api/v1/doctor"))["findings"]]


async def healthy(api: Api, *workers: str) -> None:
    for worker in workers or ("w-1",):
        await api.post("/api/v1/workers/heartbeat", {**BEAT, "worker_id": worker}, expect=200)

    async def well() -> bool:
        return await names(api) == []

    await until(well)


def later(api: Api, seconds: float) -> None:
    """For whoever asks; its leader goes by the old clock, as if it hung."""
    now: Callable[[], Instant] = api.scheduler.now
    api.scheduler.now = lambda: after(now(), seconds)


def test_a_store_that_is_away_is_named() -> None:
    async def test(api: Api) -> None:
        await healthy(api)

        async def away(*_: Any, **__: Any) -> Any:
            raise StoreUnavailable("connection refused")

        api.scheduler.store.jobs = away  # type: ignore[method-assign]
        (found,) = (await api.get("/api/v1/doctor"))["findings"]
        assert (found["name"], found["severity"]) == ("store away", "critical")
        assert found["sentence"] == "the store does not answer: connection refused"

    with_api(test)


def test_a_zone_nobody_knows_is_named() -> None:
    async def test(api: Api) -> None:
        await healthy(api)
        now = api.scheduler.now()
        definition = ScheduleDefinition(name="s", job=SPEC, cron="* * * * *", zone="Mars/Phobos")
        gone = Schedule(
            id="gone", definition=definition, created_at=now, updated_at=now, cursor=now,
            next_at=now,
        )  # fmt: skip
        await api.store.create_schedule(gone)

        async def named() -> bool:
            return await names(api) == ["set aside"]

        await until(named)

    with_api(test)


def test_promotion_and_ticks_that_stand_still_are_named() -> None:
    async def test(api: Api) -> None:
        await healthy(api)
        now = api.scheduler.now()
        delayed = new_job("delayed", SPEC, now, due_at=after(now, 100))
        await api.store.submit(Submission(job=delayed), now)
        await api.post("/api/v1/schedules", {"id": "s-1", "cron": "* * * * *", "job": WORK})
        assert await names(api) == []
        later(api, 200)
        assert {"unpromoted", "drifting"} <= set(await names(api))

    with_api(test)


def test_full_workers_and_a_long_queue_are_named() -> None:
    async def test(api: Api) -> None:
        await healthy(api)
        await api.post("/api/v1/jobs", {"name": "waits", **WORK})
        full = {**BEAT, "current_jobs": 1}
        assert (await api.post("/api/v1/workers/heartbeat", full, expect=200))["state"] == "BUSY"
        assert await names(api) == []
        later(api, 61)
        assert "exhausted" in await names(api)

    with_api(test)


def test_silence_of_most_workers_is_named() -> None:
    async def test(api: Api) -> None:
        await healthy(api, "w-1", "w-2", "w-3")
        later(api, 31)
        assert await names(api) == ["mass silence"]

    with_api(test)


def test_a_storm_of_retries_is_named() -> None:
    async def test(api: Api) -> None:
        await healthy(api)
        now = api.scheduler.now()
        for number in range(20):
            await api.store.submit(Submission(job=new_job(f"j-{number}", SPEC, now)), now)
        for job in await api.store.claim(Claim(worker="w-1", limit=20), now):
            about = {"job_id": job.id, "worker": "w-1", "token": job.token}
            await api.store.report(Started(**about, lease_s=60), now)
            failed = Failed(**about, failure=Failure.ERROR, error="no answer")
            await api.store.report(failed, now)
        assert await names(api) == ["retry storm"]

    with_api(test)


def test_newer_jobs_hide_none_and_what_was_not_looked_at_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(api: Api) -> None:
        await healthy(api)
        now = api.scheduler.now()
        gpu = JobSpec(name="probe", kind="http", capabilities=("gpu",))
        await api.store.submit(Submission(job=new_job("old", gpu, now)), now)
        delayed = [
            Submission(job=new_job(f"new-{n}", SPEC, after(now, 1), due_at=after(now, 3600)))
            for n in range(PAGE_MAX + 1)
        ]
        await submit_all(api.store, delayed, now)
        assert await names(api) == ["unrunnable"]
        monkeypatch.setattr(operations, "LOOKED_AT_MAX", PAGE_MAX)
        assert await names(api) == ["not all seen"]

    with_api(test)
