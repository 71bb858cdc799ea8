"""Schedules over HTTP."""

from __future__ import annotations

from tests.unit.scheduler.http.harness import WORK, Api, with_api

NIGHTLY = {"id": "nightly", "cron": "0 2 * * *", "timezone": "Europe/Berlin", "job": WORK}


def test_made_looked_at_changed_and_removed() -> None:
    async def test(api: Api) -> None:
        made = await api.post("/api/v1/schedules", NIGHTLY)
        assert made["version"] == 1
        assert made["next_run"]
        assert (await api.get("/api/v1/schedules/nightly"))["cron"] == "0 2 * * *"
        assert [one["id"] for one in (await api.get("/api/v1/schedules"))["schedules"]] == [
            "nightly"
        ]
        body = {"cron": "0 3 * * *", "job": WORK, "version": 1, "overlap": "skip"}
        changed = await api.call("PUT", "/api/v1/schedules/nightly", body)
        assert changed.json()["version"] == 2
        assert changed.json()["overlap"] == "skip"
        stale = await api.call("PUT", "/api/v1/schedules/nightly", body)
        assert (stale.status_code, stale.json()["code"]) == (409, "version-conflict")
        again = await api.call("POST", "/api/v1/schedules", NIGHTLY)
        assert (again.status_code, again.json()["code"]) == (409, "already-exists")
        assert (await api.call("DELETE", "/api/v1/schedules/nightly")).status_code == 200
        assert (await api.call("GET", "/api/v1/schedules/nightly")).status_code == 404

    with_api(test)


def test_paused_resumed_and_run_by_hand() -> None:
    async def test(api: Api) -> None:
        await api.post("/api/v1/schedules", NIGHTLY)
        paused = await api.post("/api/v1/schedules/nightly/pause", expect=200)
        assert paused["paused"] is True
        assert paused["next_run"] is None
        resumed = await api.post("/api/v1/schedules/nightly/resume", expect=200)
        assert resumed["next_run"]
        (job_id,) = (await api.post("/api/v1/schedules/nightly/run"))["jobs"]
        jobs = await api.get("/api/v1/jobs?schedule_id=nightly")
        assert [job["id"] for job in jobs["jobs"]] == [job_id]

    with_api(test)


def test_a_backfill_runs_each_past_tick_once() -> None:
    async def test(api: Api) -> None:
        await api.post("/api/v1/schedules", {**NIGHTLY, "timezone": "UTC"})
        span = {"start": "2024-01-01T00:00:00Z", "end": "2024-01-04T00:00:00Z"}
        filled = await api.post("/api/v1/schedules/nightly/backfill", span)
        assert len(filled["jobs"]) == 3
        again = await api.post("/api/v1/schedules/nightly/backfill", span)
        assert (again["jobs"], again["existing"]) == ([], 3)
        wrong = {"start": span["end"], "end": span["start"]}
        refused = await api.call("POST", "/api/v1/schedules/nightly/backfill", wrong)
        assert refused.status_code == 400

    with_api(test)


def test_the_future_of_a_schedule_and_of_a_bare_expression() -> None:
    async def test(api: Api) -> None:
        await api.post("/api/v1/schedules", NIGHTLY)
        assert len((await api.get("/api/v1/schedules/nightly/preview?count=3"))["runs"]) == 3
        body = {"cron": "0 9 * * 1-5", "count": 2}
        told = await api.post("/api/v1/schedules/preview", body, expect=200)
        assert len(told["runs"]) == 2
        assert "09:00" in told["words"]
        bad = await api.call("POST", "/api/v1/schedules/preview", {"cron": "61 * * * *"})
        assert bad.json()["details"][0]["path"] == "/body/cron"
        nowhere = await api.call(
            "POST", "/api/v1/schedules/preview", {"cron": "@daily", "timezone": "Mars/Base"}
        )
        assert nowhere.status_code == 400

    with_api(test)


def test_a_schedule_needs_one_kind_of_time() -> None:
    async def test(api: Api) -> None:
        for times in ({}, {"cron": "@daily", "run_at": "2030-01-01T00:00:00Z"}):
            answer = await api.call(
                "POST", "/api/v1/schedules", {"id": "x-1", "job": WORK, **times}
            )
            assert answer.status_code == 400

    with_api(test)


def test_the_zone_at_the_end_of_an_expression_is_shown_and_contradicted_by_none() -> None:
    async def test(api: Api) -> None:
        body = {**NIGHTLY, "cron": "0 3 * * * Asia/Kolkata", "timezone": "UTC"}
        made = await api.post("/api/v1/schedules", body)
        assert made["timezone"] == "Asia/Kolkata"
        other = {**body, "id": "other", "timezone": "Europe/Berlin"}
        refused = await api.call("POST", "/api/v1/schedules", other)
        assert refused.status_code == 400
        assert "Asia/Kolkata" in refused.text
        same = await api.post("/api/v1/schedules", {**other, "timezone": "Asia/Kolkata"})
        assert same["next_run"] == made["next_run"]

    with_api(test)
