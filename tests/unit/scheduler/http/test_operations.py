"""Health, metrics, audit, diagnosis, workers and messages over HTTP."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.store.tables import AUDITS, audit_key
from hyperscale.scheduler.store.types import Claim
from tests.unit.scheduler.http.harness import WORK, Api, with_api

REPORT = {"job_id": "j-1", "worker": "w-1", "token": 1}
JOB = {"name": "probe", **WORK}
BEAT = {"worker_id": "w-1", "instance": "i-1", "capacity": 2, "sequence_number": 1}

# The names that dashboards ask for.
METRICS = {
    "scheduler_job_submissions_total",
    "scheduler_job_completion_duration_seconds",
    "scheduler_job_failures_total",
    "scheduler_queue_depth",
    "scheduler_active_workers",
    "scheduler_heartbeat_latency_seconds",
    "scheduler_leader_elections_total",
    "scheduler_job_assignment_duration_seconds",
    "scheduler_deduplication_checks_total",
    "scheduler_delayed_promotion_lag_seconds",
    "scheduler_queue_operation_duration_seconds",
    "scheduler_coordination_service_duration_seconds",
    "scheduler_network_partitions_total",
    "scheduler_memory_usage_bytes",
    "scheduler_fencing_token_checks_total",
    "scheduler_dead_letter_depth",
}


def test_alive_and_ready_and_what_ready_says_without_a_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def down(*_: Any) -> None:
        raise StoreUnavailable("no answer")

    async def test(api: Api) -> None:
        assert (await api.get("/health/live"))["status"] == "alive"
        assert (await api.get("/health/ready"))["status"] == "ready"
        with monkeypatch.context() as patch:
            patch.setattr(api.scheduler.store, "counts", down)
            answer = await api.call("GET", "/health/ready")
            assert answer.status_code == 503
            assert answer.json()["status"] == "store unavailable"
            state = await api.get("/debug/system")
            assert "unavailable" in state["state"]["store"]
            told = (await api.call("GET", "/metrics")).text
            assert "scheduler_dead_letter_depth NaN" in told
            assert "scheduler_queue_depth{" not in told
            assert "scheduler_memory_usage_bytes" in told

    with_api(test)


def test_the_metrics_have_the_names_of_the_specification_and_move() -> None:
    async def test(api: Api) -> None:
        await api.post("/api/v1/jobs", JOB)
        text = (await api.call("GET", "/metrics")).text
        declared = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
        assert declared >= METRICS
        assert 'scheduler_job_submissions_total{component="store",job_type="http"' in text
        assert 'scheduler_queue_depth{component="store",state="PENDING"} 1.0' in text

    with_api(test)


def test_an_edited_audit_row_breaks_the_chain() -> None:
    async def test(api: Api) -> None:
        for number in range(3):
            await api.post("/api/v1/jobs", {**JOB, "name": f"job-{number}"})
        verdict = await api.get("/api/v1/audit/verify")
        assert verdict == {"good": True, "rows": 6, "first": 1, "broken_at": None}
        rows = await api.store.audits()
        edited = msgspec.structs.replace(rows[1], actor="nobody")
        api.store._ground._records.put(AUDITS, audit_key(2), edited)
        assert (await api.get("/api/v1/audit/verify"))["broken_at"] == 2

    with_api(test)


def test_the_overview_counts() -> None:
    async def test(api: Api) -> None:
        await api.post("/api/v1/jobs", JOB)
        await api.post("/api/v1/schedules", {"id": "daily", "cron": "@daily", "job": WORK})
        seen = await api.get("/api/v1/overview")
        assert (seen["ready"], seen["schedules"]) == (1, 1)
        assert [one["id"] for one in seen["next_runs"]] == ["daily"]
        assert seen["role"] == "admin"
        assert (seen["busy"], seen["slots"]) == (0, 0)
        await api.store.claim(Claim(worker="w-1"), api.scheduler.now())
        assert (await api.get("/api/v1/overview"))["busy"] == 1

    with_api(test)


def test_the_doctor_names_what_is_missing() -> None:
    async def test(api: Api) -> None:
        findings = (await api.get("/api/v1/doctor"))["findings"]
        assert "no workers" in [one["name"] for one in findings]

    with_api(test)


def test_a_foreign_worker_registers_claims_and_reports() -> None:
    async def test(api: Api) -> None:
        worker = await api.post("/api/v1/workers/heartbeat", BEAT, expect=200)
        assert worker["state"] == "AVAILABLE"
        again = {**BEAT, "session": worker["session"], "sequence_number": 2, "current_jobs": 2}
        assert (await api.post("/api/v1/workers/heartbeat", again, expect=200))["state"] == "BUSY"
        other = await api.call("POST", "/api/v1/workers/heartbeat", {**BEAT, "instance": "i-2"})
        assert (other.status_code, other.json()["code"]) == (409, "stale-session")

        await api.post("/api/v1/jobs", JOB)

        async def message(kind: str, body: dict[str, Any]) -> Any:
            answer = await api.call("POST", "/api/v1/messages", body, message_type=kind)
            assert answer.status_code == 200, answer.text
            return answer.json()

        (job,) = (await message("claim", {"worker_id": "w-1"}))["jobs"]
        about = {"job_id": job["id"], "worker": "w-1", "token": job["fencing_token"]}
        assert (await message("report", {"report": "started", **about, "lease_s": 30}))["accepted"]
        stale = {**about, "token": about["token"] - 1}
        refused = await message("report", {"report": "completed", **stale})
        assert refused["reason"] == "stale fencing token"
        done = await message("report", {"report": "completed", **about})
        assert done["job"]["state"] == "COMPLETED"
        assert (await message("claim", {"worker_id": "w-1"}))["jobs"] == []

    with_api(test)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("gossip", {}),
        ("claim", {"worker_id": "W!"}),
        ("report", {"report": "completed"}),
        ("report", {**REPORT, "report": "started", "lease_s": 1e12}),
        ("report", {**REPORT, "report": "beat", "lease_s": 0}),
        ("report", {**REPORT, "report": "completed", "exit_code": 2**70}),
    ],
)
def test_a_message_nobody_understands_is_400(kind: str, body: dict[str, Any]) -> None:
    async def test(api: Api) -> None:
        answer = await api.call("POST", "/api/v1/messages", body, message_type=kind)
        assert answer.status_code == 400

    with_api(test)


def test_a_worker_is_drained() -> None:
    async def test(api: Api) -> None:
        await api.post("/api/v1/workers/heartbeat", BEAT, expect=200)
        drained = await api.post("/api/v1/workers/w-1/drain", expect=200)
        assert drained["state"] == "DRAINING"
        (worker,) = (await api.get("/api/v1/workers"))["workers"]
        assert worker["state"] == "DRAINING"
        back = await api.call("DELETE", "/api/v1/workers/w-1/drain")
        assert (back.status_code, back.json()["state"]) == (200, "AVAILABLE")
        assert (await api.call("DELETE", "/api/v1/workers/w-1")).status_code == 204

    with_api(test)


def test_requests_of_foreign_pages_and_huge_ones_are_refused() -> None:
    async def test(api: Api) -> None:
        foreign = await api.call("POST", "/api/v1/jobs", JOB, origin="https://evil.example")
        assert (foreign.status_code, foreign.json()["code"]) == (403, "foreign-page")
        huge = await api.call("POST", "/api/v1/jobs", {**JOB, "payload": {"x": "a" * 600_000}})
        assert huge.status_code == 413

    with_api(test)
