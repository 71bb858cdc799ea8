"""Sampled runs of steps become spans, under the id that the target was told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fixtures.recording_http import Asked, Recorder, Reply, recording
from tests.integration.cli.program import hyperscale

TEST = """
from hyperscale import Workflow, step
from hyperscale.testing import HTTPResponse


class Shop(Workflow):
    vus = 1
    iterations = 20
    host = "{target}"

    async def on_start(self) -> None:
        await self.client.http.get("/start")

    async def flow(self) -> None:
        await self.item()

    @step()
    async def item(self) -> HTTPResponse:
        await self.client.http.get("/own", headers={{"traceparent": "00-aa-bb-00"}})
        return await self.client.http.post("/item", data=b"body")
"""


def answer(asked: Asked) -> Reply:
    return (503, b"") if asked.path == "/item" and asked.body != b"body" else (200, b"{}")


def spans_of(recorder: Recorder) -> list[dict[str, object]]:
    return [
        span
        for asked in recorder.of("POST", "/v1/traces")
        for resource in json.loads(asked.body)["resourceSpans"]
        for span in resource["scopeSpans"][0]["spans"]
    ]


@pytest.mark.parametrize("share", [1.0, 0.0])
def test_the_target_is_told_the_span(share: float, tmp_path: Path) -> None:
    with recording(answer) as target, recording() as collector:
        (tmp_path / "shop.py").write_text(TEST.format(target=target.url))
        to = f"otlp://127.0.0.1:{collector.port}?traces={share}"
        ended = hyperscale("run", "shop.py", "-w", 1, "-o", to, cwd=tmp_path)
        assert ended.code == 0, ended
        told = [asked.headers.get("traceparent", "") for asked in target.of("POST", "/item")]
        spans = spans_of(collector)
        assert [*{asked.body for asked in target.of("POST", "/item")}] == [b"body"]
        own = {asked.headers["traceparent"] for asked in target.of("GET", "/own")}
        assert own == {"00-aa-bb-00"}
        assert not any("traceparent" in asked.headers for asked in target.of("GET", "/start"))
    assert len(told) == 20
    if share:
        ids = [f"00-{span['traceId']}-{span['spanId']}-01" for span in spans]
        assert ids == told
        assert len({*ids}) == 20
        assert {span["name"] for span in spans} == {"item"}
        assert all(int(str(s["startTimeUnixNano"])) < int(str(s["endTimeUnixNano"])) for s in spans)
    else:
        assert (spans, {*told}) == ([], {""})
