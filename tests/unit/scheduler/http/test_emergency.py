"""The emergency stop over HTTP: who may, what it says, and that it is written down."""

from __future__ import annotations

from hyperscale.scheduler.http.access import Role
from tests.unit.scheduler.http.harness import WORK, Api, tokens, with_api

PATH = "/api/v1/emergency"


def test_only_an_administrator_stops_and_everybody_sees_it() -> None:
    async def test(api: Api) -> None:
        for role in (Role.VIEWER, Role.AUDITOR, Role.OPERATOR):
            assert (await api.call("POST", PATH, {}, role)).status_code == 403
        said = await api.call("POST", PATH, {"reason": "bad deploy"}, Role.ADMIN)
        assert said.status_code == 200
        seen = (await api.call("GET", PATH, role=Role.VIEWER)).json()
        assert (seen["stopped"], seen["actor"], seen["reason"]) == (True, "admin", "bad deploy")
        overview = (await api.call("GET", "/api/v1/overview", role=Role.VIEWER)).json()
        assert overview["emergency"] == seen
        assert overview["rights"] == ["look"]
        found = (await api.call("GET", "/api/v1/doctor", role=Role.VIEWER)).json()["findings"]
        assert "stopped" in [one["name"] for one in found]

    with_api(test, tokens())


def test_nothing_is_claimed_until_it_ends_and_both_are_audited() -> None:
    async def test(api: Api) -> None:
        await api.post(PATH, {"reason": "fire"}, expect=200)
        assert "scheduler_emergency_stop 1.0" in (await api.call("GET", "/metrics")).text
        job = await api.post("/api/v1/jobs", {"name": "waits", **WORK})
        beat = {"worker_id": "w-1", "instance": "i-1", "capacity": 2, "sequence_number": 1}
        await api.post("/api/v1/workers/heartbeat", beat, expect=200)

        async def claim() -> list[str]:
            answer = await api.call(
                "POST", "/api/v1/messages", {"worker_id": "w-1"}, message_type="claim"
            )
            return [one["id"] for one in answer.json()["jobs"]]

        assert await claim() == []
        ended = await api.call("DELETE", PATH)
        assert ended.json()["reason"] == "fire"
        assert (await api.call("DELETE", PATH)).json()["stopped"] is False
        assert await claim() == [job["job_id"]]
        rows = (await api.get("/api/v1/audit"))["rows"]
        acts = [
            (row["action"], row["outcome"], row["detail"])
            for row in rows
            if "emergency" in row["action"]
        ]
        assert acts[:4] == [
            ("emergency.stop", "asked", "fire"),
            ("emergency.stop", "done", "fire"),
            ("emergency.resume", "asked", ""),
            ("emergency.resume", "done", ""),
        ]

    with_api(test)


def test_an_auditor_reads_the_audit_log_and_changes_nothing() -> None:
    async def test(api: Api) -> None:
        await api.call("POST", "/api/v1/jobs", {"name": "x", **WORK}, Role.OPERATOR)
        assert (await api.call("GET", "/api/v1/audit/verify", role=Role.AUDITOR)).json()["good"]
        assert (await api.call("GET", "/api/v1/audit", role=Role.OPERATOR)).status_code == 403
        refused = await api.call("POST", "/api/v1/jobs", {"name": "x", **WORK}, Role.AUDITOR)
        assert refused.status_code == 403
        assert refused.json()["detail"] == "auditor is auditor; this needs operator or admin"

    with_api(test, tokens())
