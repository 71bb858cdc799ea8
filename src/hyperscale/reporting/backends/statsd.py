"""Points to StatsD and to what understands it: DogStatsD, Telegraf's and Netdata's listener.

`statsd://host:8125`, `dogstatsd://`, `telegraf-statsd://`, `netdata://`; with `?tcp=true` over a
connection, which notices when the server is away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from hyperscale.reporting.backends.lines import statsd_lines
from hyperscale.reporting.backends.sockets import Datagrams, TcpLines
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.points import Points


class StatsDConfig(Config, frozen=True, kw_only=True):
    scheme = "statsd"
    dialect: ClassVar[str] = "statsd"

    host: str = "localhost"
    port: int = 8125
    tcp: bool = False

    def backend(self) -> Backend:
        return StatsDReporter(self)


class DogStatsDConfig(StatsDConfig, frozen=True, kw_only=True):
    scheme = "dogstatsd"
    dialect = "dogstatsd"


class TelegrafStatsDConfig(StatsDConfig, frozen=True, kw_only=True):
    scheme = "telegraf-statsd"
    dialect = "telegraf"


class NetdataConfig(StatsDConfig, frozen=True, kw_only=True):
    scheme = "netdata"


class StatsDReporter(Backend):
    live = True
    keeps_time = False

    def __init__(self, config: StatsDConfig) -> None:
        self._dialect = config.dialect
        self._lines = TcpLines(config.host, config.port) if config.tcp else None
        self._datagrams = Datagrams(config.host, config.port)

    async def connect(self) -> None:
        await (self._lines or self._datagrams).connect()

    async def submit(self, points: Sequence[Points]) -> None:
        lines = statsd_lines(points, self._dialect)
        if self._lines is None:
            await self._datagrams.send(lines)
        else:
            await self._lines.send("".join(f"{line}\n" for line in lines).encode())

    async def close(self) -> None:
        await (self._lines or self._datagrams).close()
