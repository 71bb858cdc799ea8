"""Points as OpenTelemetry metrics, by OTLP over HTTP: `otlp://collector:4318`.

In the JSON form of the protocol, which every collector takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from hyperscale._version import __version__
from hyperscale.reporting.backends.http import HttpPoster, origin
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend, Refused
from hyperscale.reporting.points import Points, Row

_CUMULATIVE = 2  # what receivers that keep series take; few take differences


class OTLPConfig(Config, frozen=True, kw_only=True):
    scheme = "otlp"
    path_field = "path"

    host: str = "localhost"
    port: int = 4318
    path: str = ""  # before /v1/metrics and /v1/traces
    traces: float = 0.0  # share of the runs of steps that become spans
    token: str = ""
    secure: bool = False
    headers: dict[str, str] = {}  # not from a URL

    def backend(self) -> Backend:
        return OTLPReporter(self)


class OTLPReporter(Backend):
    live = True

    def __init__(self, config: OTLPConfig) -> None:
        self._poster = poster_of(config)

    async def connect(self) -> None:
        await self._poster.send("POST", "/v1/metrics", b'{"resourceMetrics":[]}')

    async def submit(self, points: Sequence[Points]) -> None:
        body = msgspec.json.encode({"resourceMetrics": [_resource(each) for each in points]})
        answer = await self._poster.send("POST", "/v1/metrics", body, compress=True)
        check_whole(answer.body, "rejectedDataPoints")
        if spans := [_spans(each) for each in points if each.spans]:
            body = msgspec.json.encode({"resourceSpans": spans})
            answer = await self._poster.send("POST", "/v1/traces", body, compress=True)
            check_whole(answer.body, "rejectedSpans")

    async def close(self) -> None:
        await self._poster.close()


def poster_of(config: OTLPConfig) -> HttpPoster:
    headers = {"Content-Type": "application/json", **config.headers}
    if config.token:
        headers["Authorization"] = f"Bearer {config.token}"
    base = origin(config.host, config.port, config.secure)
    return HttpPoster(f"{base}/{config.path}" if config.path else base, headers)


def check_whole(body: bytes, field: str) -> None:
    try:
        partial = msgspec.json.decode(body or b"{}").get("partialSuccess") or {}
    except msgspec.DecodeError:
        return  # a collector that answers with something else has taken it all the same
    if int(partial.get(field, 0)):
        raise Refused(f"{partial[field]} were rejected: {partial.get('errorMessage', '')}")


def attributes(labels: dict[str, str]) -> list[dict[str, object]]:
    return [{"key": name, "value": {"stringValue": text}} for name, text in labels.items() if text]


def resource(labels: dict[str, str]) -> dict[str, object]:
    return {"attributes": attributes({"service.name": "hyperscale", **labels})}


SCOPE = {"name": "hyperscale", "version": __version__}


def _resource(points: Points) -> dict[str, object]:
    end = str(points.time_ns)
    begin = str(round(points.began_s * 1e9))
    metrics: dict[str, list[dict[str, Any]]] = {}
    counts: set[str] = set()
    for row in points.rows:
        labels = attributes(row.labels)
        for field, total in row.totals.items():
            counts.add(name := _name(row, field))
            point = {"asInt": str(total), "startTimeUnixNano": begin}
            metrics.setdefault(name, []).append(
                {**point, "timeUnixNano": end, "attributes": labels}
            )
        for field, value in row.gauges.items():
            metrics.setdefault(_name(row, field), []).append(
                {"asDouble": value, "timeUnixNano": end, "attributes": labels}
            )
    made = [
        {"name": name, "sum": {"aggregationTemporality": _CUMULATIVE, "isMonotonic": True,
                               "dataPoints": data}}
        if name in counts
        else {"name": name, "gauge": {"dataPoints": data}}
        for name, data in metrics.items()
    ]  # fmt: skip
    return {
        "resource": resource(points.common),
        "scopeMetrics": [{"scope": SCOPE, "metrics": made}],
    }


_CLIENT, _ERROR = 3, 2


def _spans(points: Points) -> dict[str, object]:
    spans = []
    for span in points.spans:
        labels: list[dict[str, object]] = attributes(
            {"hyperscale.workflow": span.workflow, "hyperscale.step": span.step}
        )
        if span.status:
            status = {"intValue": str(span.status)}
            labels.append({"key": "http.response.status_code", "value": status})
        spans.append(
            {
                "traceId": span.trace_id,
                "spanId": span.span_id,
                "name": span.step,
                "kind": _CLIENT,
                "startTimeUnixNano": str(span.start_ns),
                "endTimeUnixNano": str(span.end_ns),
                "attributes": labels,
                "status": {"code": _ERROR, "message": span.error} if span.error else {},
            }
        )
    return {
        "resource": resource(points.common),
        "scopeSpans": [{"scope": SCOPE, "spans": spans}],
    }


def _name(row: Row, field: str) -> str:
    return f"hyperscale.{row.about}.{field}"
