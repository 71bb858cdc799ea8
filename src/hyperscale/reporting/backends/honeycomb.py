"""Points as events of a Honeycomb dataset: `honeycomb://api.honeycomb.io/dataset` with a key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote

import msgspec

from hyperscale.reporting.backends.http import HttpPoster, origin
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend, Refused
from hyperscale.reporting.points import Points

_ACCEPTED = 202


class HoneycombConfig(Config, frozen=True, kw_only=True):
    scheme = "honeycomb"
    path_field = "dataset"
    environment = {"api_key": "HONEYCOMB_API_KEY"}
    required = ("api_key",)

    host: str = "api.honeycomb.io"
    port: int = 443
    dataset: str = "hyperscale"
    api_key: str = ""
    secure: bool = True

    def backend(self) -> Backend:
        return HoneycombReporter(self)


class HoneycombReporter(Backend):
    live = True
    every_s = 2.0

    def __init__(self, config: HoneycombConfig) -> None:
        self._path = f"/1/batch/{quote(config.dataset, safe='')}"
        headers = {"Content-Type": "application/json", "X-Honeycomb-Team": config.api_key}
        self._poster = HttpPoster(origin(config.host, config.port, config.secure), headers)

    async def connect(self) -> None:
        await self._poster.send("GET", "/1/auth")

    async def submit(self, points: Sequence[Points]) -> None:
        """An event for each row: what it is about, its labels, counts and latencies."""
        events = [
            {
                "time": datetime.fromtimestamp(each.time_s, UTC).isoformat(),
                "data": {
                    "about": row.about, **each.common, **row.labels, **row.counts, **row.gauges,
                },
            }
            for each in points
            for row in each.rows
        ]  # fmt: skip
        body = msgspec.json.encode(events)
        answer = await self._poster.send("POST", self._path, body, compress=True)
        failed = [one for one in msgspec.json.decode(answer.body) if one["status"] != _ACCEPTED]
        if failed:
            raise Refused(f"{len(failed)} of {len(events)} events: {failed[0].get('error', '')}")

    async def close(self) -> None:
        await self._poster.close()
