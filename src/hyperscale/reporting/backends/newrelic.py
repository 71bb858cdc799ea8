"""Points to New Relic's Metric API: `newrelic://metric-api.eu.newrelic.com` with a license key."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hyperscale.reporting.backends.http import HttpPoster, origin
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.points import Points, Row


class NewRelicConfig(Config, frozen=True, kw_only=True):
    scheme = "newrelic"
    environment = {"api_key": "NEW_RELIC_LICENSE_KEY"}
    required = ("api_key",)

    host: str = "metric-api.newrelic.com"
    port: int = 443
    api_key: str = ""
    secure: bool = True

    def backend(self) -> Backend:
        return NewRelicReporter(self)


class NewRelicReporter(Backend):
    live = True
    every_s = 5.0  # as the service recommends

    def __init__(self, config: NewRelicConfig) -> None:
        headers = {"Content-Type": "application/json", "Api-Key": config.api_key}
        self._poster = HttpPoster(origin(config.host, config.port, config.secure), headers)

    async def connect(self) -> None:
        await self._poster.send("POST", "/metric/v1", b'[{"metrics":[]}]')

    async def submit(self, points: Sequence[Points]) -> None:
        """A part for each moment: what all of its metrics have in common is said once."""
        parts = [
            {
                "common": {
                    "timestamp": round(each.time_s * 1000),
                    "interval.ms": max(1, round(each.width_s * 1000)),
                    "attributes": each.common,
                },
                "metrics": [metric for row in each.rows for metric in _metrics(row)],
            }
            for each in points
        ]
        body = msgspec.json.encode(parts)
        await self._poster.send("POST", "/metric/v1", body, compress=True)

    async def close(self) -> None:
        await self._poster.close()


def _metrics(row: Row) -> list[dict[str, object]]:
    return [
        {
            "name": f"hyperscale.{row.about}.{name}",
            "type": kind,
            "value": value,
            "attributes": row.labels,
        }
        for kind, numbers in (("count", row.counts), ("gauge", row.gauges))
        for name, value in numbers.items()
    ]
