"""Points to Telegraf's `socket_listener` in InfluxDB's line protocol: `telegraf://host:8094`."""

from __future__ import annotations

from collections.abc import Sequence

from hyperscale.reporting.backends.lines import influx_lines
from hyperscale.reporting.backends.sockets import TcpLines
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.points import Points


class TelegrafConfig(Config, frozen=True, kw_only=True):
    scheme = "telegraf"

    host: str = "localhost"
    port: int = 8094

    def backend(self) -> Backend:
        return TelegrafReporter(self)


class TelegrafReporter(Backend):
    live = True

    def __init__(self, config: TelegrafConfig) -> None:
        self._lines = TcpLines(config.host, config.port)

    async def connect(self) -> None:
        await self._lines.connect()

    async def submit(self, points: Sequence[Points]) -> None:
        await self._lines.send(influx_lines(points) + b"\n")

    async def close(self) -> None:
        await self._lines.close()
