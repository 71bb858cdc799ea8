"""Jobs over HTTP: outcomes of submissions, the list, history, logs, cancel and retry."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.http.access import Role
from hyperscale.scheduler.queue.job import Failure, Job
from hyperscale.scheduler.queue.reports import Accepted, Failed, Started
from hyperscale.scheduler.store.types import Claim
from tests.unit.scheduler.http.harness import WORK, Api, tokens, with_api

JOB = {"name": "probe", **WORK}


async def failed_job(api: Api) -> Job:
    submitted = await api.post("/api/v1/jobs", {**JOB, "max_retries": 0})
    now = api.scheduler.now()
    (job,) = await api.store.claim(Claim(worker="w-1"), now)
    assert job.id == submitted["job_id"]
    about = {"job_id": job.id, "worker": "w-1", "token": job.token}
    await api.store.report(Started(**about, lease_s=60), now + 1)
    answer = await api.store.report(
        Failed(**about, failure=Failure.PERMANENT, error="no such host", log="tried\nfailed"),
        now + 2_000_001,
    )
    assert isinstance(answer, Accepted)
    return answer.job


def test_a_new_job_is_201_and_can_be_looked_at() -> None:
    async def test(api: Api) -> None:
        submitted = await api.post("/api/v1/jobs", JOB)
        assert submitted["status"] == "PENDING"
        job = await api.get(f"/api/v1/jobs/{submitted['job_id']}")
        assert job["name"] == "probe"
        assert job["priority"] == 500
        assert job["payload"] == {"url": "http://127.0.0.1:1/"}
        assert job["max_retries"] == 3

    with_api(test)


def test_the_same_key_is_200_with_the_first_job_and_other_content_409() -> None:
    async def test(api: Api) -> None:
        body = {**JOB, "idempotency_key": "k1"}
        answers = await asyncio.gather(
            *(api.call("POST", "/api/v1/jobs", body) for _ in range(100))
        )
        assert sorted(answer.status_code for answer in answers) == [200] * 99 + [201]
        assert len({answer.json()["job_id"] for answer in answers}) == 1
        other = await api.call("POST", "/api/v1/jobs", {**body, "priority": 1})
        assert other.status_code == 409
        assert other.json()["code"] == "idempotency-conflict"

    with_api(test)


def test_section_22_a_cron_expression_makes_a_schedule() -> None:
    async def test(api: Api) -> None:
        body = {
            "name": "test",
            "cron_expression": "* * * * *",
            "priority": 100,
            "payload": {"command": "echo hello"},
        }
        submitted = await api.post("/api/v1/jobs", body)
        assert submitted["status"] == "SCHEDULED"
        assert submitted["next_run"]
        schedule = await api.get(f"/api/v1/schedules/{submitted['schedule_id']}")
        assert schedule["job"]["kind"] == "command"
        assert schedule["job"]["payload"] == {"argv": '["echo","hello"]'}
        keyed = {**body, "idempotency_key": "k"}
        first = await api.post("/api/v1/jobs", keyed)
        again = await api.post("/api/v1/jobs", keyed, expect=200)
        assert again["schedule_id"] == first["schedule_id"]
        changed = await api.call("POST", "/api/v1/jobs", {**keyed, "cron_expression": "@daily"})
        assert changed.status_code == 409

    with_api(test)


def test_a_bad_cron_expression_says_where() -> None:
    async def test(api: Api) -> None:
        answer = await api.call("POST", "/api/v1/jobs", {**JOB, "cron_expression": "0 25 * * *"})
        assert answer.status_code == 400
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["code"] == "invalid-cron"
        assert problem["details"][0]["path"] == "/body/cron_expression"
        assert problem["details"][0]["position"] == 2
        assert "hour" in problem["details"][0]["message"]

    with_api(test)


def test_missing_and_unknown_fields_are_listed_with_their_paths() -> None:
    async def test(api: Api) -> None:
        answer = await api.call("POST", "/api/v1/jobs", {"max_retries": -1, "colour": "red"})
        assert answer.status_code == 400
        paths = {detail["path"] for detail in answer.json()["details"]}
        assert paths == {"/body/name", "/body/payload", "/body/max_retries", "/body/colour"}

    with_api(test)


def test_an_unknown_zone_is_refused_also_where_it_changes_nothing() -> None:
    async def test(api: Api) -> None:
        for body in ({}, {"run_at": "2030-01-01T00:00:00Z"}):
            answer = await api.call("POST", "/api/v1/jobs", {**JOB, **body, "timezone": "Mars/X"})
            assert answer.status_code == 400
            assert "no time zone 'Mars/X'" in answer.text

    with_api(test)


def test_half_a_character_is_refused_wherever_a_text_comes_in() -> None:
    async def post(api: Api, path: str, body: dict[str, Any], **headers: str) -> int:
        headers["content-type"] = "application/json"
        sent = json.dumps(body)
        return (await api.client.post(path, content=sent, headers=headers)).status_code

    async def test(api: Api) -> None:
        halved = {**JOB, "payload": {"url": "http://127.0.0.1:1/\ud800"}}
        assert await post(api, "/api/v1/jobs", halved) == 400
        named = {**JOB, "payload": {**JOB["payload"], "\ud800": "x"}}
        assert await post(api, "/api/v1/jobs", named) == 400
        assert await post(api, "/api/v1/jobs", {**JOB, "tags": {"a": "\ud800"}}) == 400
        assert await post(api, "/api/v1/jobs", {**JOB, "idempotency_key": "\ud800"}) == 400
        submitted = await api.post("/api/v1/jobs", JOB)
        (held,) = await api.store.claim(Claim(worker="w-1", start=True), api.scheduler.now())
        about = {"job_id": held.id, "worker": "w-1", "token": held.token}
        report = {"report": "completed", **about, "log": "\ud800"}
        assert await post(api, "/api/v1/messages", report, **{"Message-Type": "report"}) == 400
        job = await api.get(f"/api/v1/jobs/{submitted['job_id']}")
        assert job["state"] == "EXECUTING"

    with_api(test)


def test_a_priority_out_of_range_is_adjusted_and_told() -> None:
    async def test(api: Api) -> None:
        submitted = await api.post("/api/v1/jobs", {**JOB, "priority": 9999})
        assert submitted["message"] == "priority 9999 was adjusted to 2000"

    with_api(test)


def test_a_job_no_worker_can_run_is_told_so() -> None:
    async def test(api: Api) -> None:
        assert (await api.post("/api/v1/jobs", JOB))["message"] is None  # nobody is there to tell
        beat = {"worker_id": "w-1", "instance": "i-1", "capacity": 2, "sequence_number": 1}
        able = {**beat, "metadata": {"kinds": f"loadtest,{JOB['kind']}"}}
        await api.post("/api/v1/workers/heartbeat", able, expect=200)
        assert (await api.post("/api/v1/jobs", JOB))["message"] is None
        gpu = await api.post("/api/v1/jobs", {**JOB, "capabilities": ["gpu"]})
        kind = JOB["kind"]
        expected = f"no worker runs {kind} jobs with gpu at the moment: it waits for one"
        assert gpu["message"] == expected

    with_api(test)


def test_a_store_that_does_not_answer_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    async def down(*_: Any) -> None:
        raise StoreUnavailable("the store does not answer")

    async def test(api: Api) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(api.scheduler.store, "submit", down)
            answer = await api.call("POST", "/api/v1/jobs", JOB)
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert (await api.get("/api/v1/jobs"))["jobs"] == []

    with_api(test)


def test_the_list_has_pages_and_filters() -> None:
    async def test(api: Api) -> None:
        for number in range(5):
            tags = {"team": "a" if number % 2 else "b"}
            await api.post("/api/v1/jobs", {**JOB, "name": f"job-{number}", "tags": tags})
        first = await api.get("/api/v1/jobs?limit=3")
        rest = await api.get(f"/api/v1/jobs?limit=3&cursor={first['cursor']}")
        names = [job["name"] for job in first["jobs"] + rest["jobs"]]
        assert sorted(names) == [f"job-{number}" for number in range(5)]
        assert rest["cursor"] == ""
        tagged = await api.get("/api/v1/jobs?tag=team=a&state=PENDING")
        assert {job["name"] for job in tagged["jobs"]} == {"job-1", "job-3"}
        bad = await api.call("GET", "/api/v1/jobs?cursor=nonsense")
        assert bad.status_code == 400

    with_api(test)


def test_history_logs_retry_and_the_dead_letter() -> None:
    async def test(api: Api) -> None:
        job = await failed_job(api)
        (attempt,) = (await api.get(f"/api/v1/jobs/{job.id}/history"))["attempts"]
        assert attempt["outcome"] == "FAILED"
        assert attempt["error"] == "no such host"
        assert attempt["duration_s"] == 2.0
        assert (await api.get(f"/api/v1/jobs/{job.id}/logs"))["log"] == "tried\nfailed"
        letters = await api.get("/api/v1/dead-letters")
        assert [letter["id"] for letter in letters["letters"]] == [job.id]
        replayed = await api.post(f"/api/v1/dead-letters/{job.id}/replay")
        assert replayed["retry_of"] == job.id
        assert (await api.get("/api/v1/dead-letters"))["letters"] == []
        again = await api.post(f"/api/v1/jobs/{job.id}/retry")
        assert again["state"] == "PENDING"

    with_api(test)


def test_cancel_ends_what_waits_and_an_ended_job_is_409() -> None:
    async def test(api: Api) -> None:
        submitted = await api.post("/api/v1/jobs", JOB)
        path = f"/api/v1/jobs/{submitted['job_id']}"
        assert (await api.post(f"{path}/cancel", expect=200))["state"] == "CANCELLED"
        failed = await failed_job(api)
        refused = await api.call("POST", f"/api/v1/jobs/{failed.id}/cancel")
        assert refused.status_code == 409
        assert (await api.call("GET", "/api/v1/jobs/nobody")).status_code == 404

    with_api(test)


def test_roles_and_tokens() -> None:
    async def test(api: Api) -> None:
        assert (await api.call("GET", "/api/v1/jobs")).status_code == 401
        assert (await api.call("GET", "/health/live")).status_code == 200
        assert (await api.call("GET", "/api/v1/jobs", role=Role.VIEWER)).status_code == 200
        denied = await api.call("POST", "/api/v1/jobs", JOB, role=Role.VIEWER)
        assert denied.status_code == 403
        made = await api.call("POST", "/api/v1/jobs", JOB, role=Role.OPERATOR)
        assert made.status_code == 201
        assert (await api.call("GET", "/api/v1/audit", role=Role.OPERATOR)).status_code == 403
        rows = (await api.call("GET", "/api/v1/audit", role=Role.ADMIN)).json()["rows"]
        assert [(row["actor"], row["outcome"]) for row in rows] == [
            ("viewer", "denied"),
            ("operator", "asked"),
            ("operator", "done"),
            ("operator", "denied"),
        ]

    with_api(test, tokens())


def test_a_correlation_id_follows_the_job() -> None:
    async def test(api: Api) -> None:
        answer = await api.call("POST", "/api/v1/jobs", JOB, x_correlation_id="order-17")
        assert answer.headers["x-correlation-id"] == "order-17"
        job = await api.get(f"/api/v1/jobs/{answer.json()['job_id']}")
        assert job["correlation_id"] == "order-17"

    with_api(test)
