"""Points to Datadog's metrics API: `datadog://api.datadoghq.eu` with a key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from hyperscale.reporting.backends.http import HttpPoster, origin
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.points import Points

_COUNT, _GAUGE = 1, 3
SERIES_MAX = 2_000  # far below the 5 MB that a request may hold, and 500 KB compressed


class DatadogConfig(Config, frozen=True, kw_only=True):
    scheme = "datadog"
    environment = {"api_key": "DD_API_KEY"}
    required = ("api_key",)

    host: str = "api.datadoghq.com"
    port: int = 443
    api_key: str = ""
    secure: bool = True

    def backend(self) -> Backend:
        return DatadogReporter(self)


class DatadogReporter(Backend):
    live = True
    every_s = 10.0  # the resolution of the service

    def __init__(self, config: DatadogConfig) -> None:
        headers = {"Content-Type": "application/json", "DD-API-KEY": config.api_key}
        self._poster = HttpPoster(origin(config.host, config.port, config.secure), headers)

    async def connect(self) -> None:
        await self._poster.send("GET", "/api/v1/validate")

    async def submit(self, points: Sequence[Points]) -> None:
        series = list(_series(points))
        for start in range(0, len(series), SERIES_MAX):
            body = msgspec.json.encode({"series": series[start : start + SERIES_MAX]})
            await self._poster.send("POST", "/api/v2/series", body, compress=True)

    async def close(self) -> None:
        await self._poster.close()


def _series(points: Sequence[Points]) -> Iterator[dict[str, object]]:
    """Points of one series together; of one second the service keeps the last."""
    found: dict[tuple[object, ...], dict[str, object]] = {}
    times: dict[tuple[object, ...], list[dict[str, float]]] = {}
    for each in points:
        for row in each.rows:
            labels = each.common | row.labels
            for kind, numbers in ((_COUNT, row.counts), (_GAUGE, row.gauges)):
                for name, value in numbers.items():
                    key = (row.about, name, *labels.items())
                    if key not in found:
                        times[key] = []
                        found[key] = {
                            "metric": f"hyperscale.{row.about}.{name}", "type": kind,
                            "points": times[key],
                            "tags": [f"{label}:{text}" for label, text in labels.items() if text],
                            **({"interval": max(1, round(each.width_s))} if kind == _COUNT else {}),
                        }  # fmt: skip
                    times[key].append({"timestamp": int(each.time_s), "value": value})
    yield from found.values()
