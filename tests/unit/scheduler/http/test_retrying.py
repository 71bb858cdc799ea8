"""A store that is away for a moment, for good, or only in its answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hyperscale.cluster.overload.backoff import Backoff
from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.http import context
from tests.unit.scheduler.http.harness import WORK, Api, with_api

JOB = {"name": "probe", **WORK}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "BACKOFF", Backoff(base_delay_s=0.001, delay_max_s=0.001))


def failing(
    monkeypatch: pytest.MonkeyPatch, api: Api, name: str, times: int, after: bool = False
) -> list[int]:
    """The store's method fails `times` times: before it did anything, or `after` it was done."""
    real: Callable[..., Any] = getattr(api.store, name)
    calls: list[int] = []

    async def call(*args: Any) -> Any:
        calls.append(1)
        if len(calls) <= times:
            if after:
                await real(*args)
            raise StoreUnavailable("no answer")
        return await real(*args)

    monkeypatch.setattr(api.scheduler.store, name, call, raising=False)
    return calls


async def job_count(api: Api) -> int:
    return sum((await api.store.counts()).states.values())


def test_a_moment_without_a_store_is_not_the_clients_business(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(api: Api) -> None:
        calls = failing(monkeypatch, api, "submit", 2)
        assert (await api.post("/api/v1/jobs", JOB))["created"] is True
        assert len(calls) == 3
        assert await job_count(api) == 1

    with_api(test)


def test_a_store_that_stays_away_is_503_with_a_time_to_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(api: Api) -> None:
        calls = failing(monkeypatch, api, "submit", 1000)
        answer = await api.call("POST", "/api/v1/jobs", JOB)
        assert (answer.status_code, answer.json()["code"]) == (503, "store-unavailable")
        assert int(answer.headers["retry-after"]) >= 1
        assert len(calls) == context.TRIES
        assert await job_count(api) == 0

    with_api(test)


@pytest.mark.parametrize("more", [{}, {"idempotency_key": "k"}, {"job_id": "mine"}])
def test_a_job_whose_answer_was_lost_is_made_once_and_told_as_new(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, str]
) -> None:
    async def test(api: Api) -> None:
        failing(monkeypatch, api, "submit", 1, after=True)
        assert (await api.post("/api/v1/jobs", {**JOB, **more}))["created"] is True
        assert await job_count(api) == 1

    with_api(test)


def test_a_schedule_whose_answer_was_lost_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(api: Api) -> None:
        failing(monkeypatch, api, "create_schedule", 1, after=True)
        made = await api.post("/api/v1/jobs", {**JOB, "cron_expression": "@daily"})
        assert made["created"] is True
        assert len(await api.store.schedules()) == 1

    with_api(test)


def test_an_id_that_somebody_else_has_is_still_409(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(api: Api) -> None:
        await api.post("/api/v1/jobs", {**JOB, "job_id": "mine"})
        failing(monkeypatch, api, "submit", 1)
        answer = await api.call("POST", "/api/v1/jobs", {**JOB, "job_id": "mine"})
        assert answer.status_code == 409

    with_api(test)


def test_nothing_is_done_that_the_audit_log_cannot_know_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(api: Api) -> None:
        failing(monkeypatch, api, "audit", 1000)
        answer = await api.call("POST", "/api/v1/jobs", JOB)
        assert (answer.status_code, answer.json()["code"]) == (503, "store-unavailable")
        assert await job_count(api) == 0

    with_api(test)


def test_what_was_done_is_answered_although_the_row_of_its_end_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(api: Api) -> None:
        submit = api.store.submit

        async def submitted_last(*args: Any) -> Any:
            failing(monkeypatch, api, "audit", 1000)
            return await submit(*args)

        monkeypatch.setattr(api.store, "submit", submitted_last)
        assert (await api.post("/api/v1/jobs", JOB))["created"] is True
        rows = await api.store.audits()
        assert [(row.action, row.outcome) for row in rows] == [("job.submit", "asked")]

    with_api(test)
