"""What viewers see of a payload; the worker gets all of it."""

from __future__ import annotations

import json

import pytest

from hyperscale.scheduler.http.answers import shown
from hyperscale.scheduler.store.types import Claim
from tests.unit.scheduler.http.harness import Api, with_api

PAYLOAD = {
    "file": "shop.py",
    "args": ["-e", "API_KEY=TOPSECRET", "-u", "5", "--token", "TOPSECRET"],
}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"file": "shop.py", "workflows": '["A"]'}, {"file": "shop.py", "workflows": '["A"]'}),
        ({"argv": '["a", "b c"]'}, {"argv": '["a", "b c"]'}),
        ({"args": '["-e","K=v"]'}, {"args": '["-e","K=***"]'}),
        ({"args": '[1,{"token":"x"}]'}, {"args": '[1,{"token":"***"}]'}),
        ({"args": "not json"}, {"args": "***"}),
        ({"env": '{"A":"1"}'}, {"env": '{"A":"***"}'}),
        (
            {"headers": '{"Authorization":"Bearer x","Accept":"*/*"}'},
            {"headers": '{"Authorization":"***","Accept":"*/*"}'},
        ),
        ({"url": "https://a:b@h/?token=x"}, {"url": "https://***@h/?token=***"}),
        ({"body": '{"password":"x","n":1}'}, {"body": '{"password":"***","n":1}'}),
        ({"api_key": "x"}, {"api_key": "***"}),
    ],
)
def test_payloads(payload: dict[str, str], expected: dict[str, str]) -> None:
    assert shown(payload) == expected


def test_jobs_and_schedules_are_shown_without_their_secrets() -> None:
    async def test(api: Api) -> None:
        job = {"kind": "loadtest", "payload": PAYLOAD}
        submitted = await api.post("/api/v1/jobs", {"name": "shop", **job})
        seen = [await api.get(f"/api/v1/jobs/{submitted['job_id']}"), await api.get("/api/v1/jobs")]
        await api.post("/api/v1/schedules", {"id": "nightly", "cron": "0 2 * * *", "job": job})
        seen += [await api.get("/api/v1/schedules/nightly"), await api.get("/api/v1/audit")]
        text = json.dumps(seen)
        assert "API_KEY=***" in text
        assert "TOPSECRET" not in text
        (claimed,) = await api.store.claim(Claim(worker="w-1"), api.scheduler.now())
        assert json.loads(claimed.spec.payload["args"]) == PAYLOAD["args"]

    with_api(test)
