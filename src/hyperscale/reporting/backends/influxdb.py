"""Points in InfluxDB: `influxdb://host:8086/database`, or for version 2 and later
`influxdb://host:8086/bucket?organization=ORG` with a token."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from urllib.parse import urlencode

from hyperscale.reporting.backends.http import HttpPoster, origin
from hyperscale.reporting.backends.lines import influx_lines
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.points import Points


class InfluxDBConfig(Config, frozen=True, kw_only=True):
    scheme = "influxdb"
    path_field = "database"
    required = ("database",)
    environment = {"token": "INFLUX_TOKEN", "organization": "INFLUX_ORG"}

    host: str = "localhost"
    port: int = 8086
    database: str = ""  # of version 1, or the bucket of version 2
    username: str = ""
    password: str = ""
    token: str = ""
    organization: str = ""
    secure: bool = False

    def backend(self) -> Backend:
        return InfluxDBReporter(self)


class InfluxDBReporter(Backend):
    live = True

    def __init__(self, config: InfluxDBConfig) -> None:
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        self._ping = "/ping"
        if config.organization:
            headers["Authorization"] = f"Token {config.token}"
            query = {"bucket": config.database, "org": config.organization, "precision": "ns"}
            self._path = f"/api/v2/write?{urlencode(query)}"
        else:
            query = {"db": config.database, "precision": "ns"}
            self._path = f"/write?{urlencode(query)}"
            if config.token:
                headers["Authorization"] = f"Token {config.token}"
            elif config.username:
                pair = f"{config.username}:{config.password}".encode()
                headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        self._poster = HttpPoster(origin(config.host, config.port, config.secure), headers)

    async def connect(self) -> None:
        """An empty write is answered as one with points is: the database, the bucket and the
        credentials are tried."""
        await self._poster.send("POST", self._path, b"", {"Content-Length": "0"}, accept=(400,))

    async def submit(self, points: Sequence[Points]) -> None:
        await self._poster.send("POST", self._path, influx_lines(points), compress=True)

    async def close(self) -> None:
        await self._poster.close()
