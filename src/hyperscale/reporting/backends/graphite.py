"""Points to Graphite's plaintext port: `graphite://host:2003`, `graphite://host/prefix`."""

from __future__ import annotations

from collections.abc import Sequence

from hyperscale.reporting.backends.lines import graphite_lines
from hyperscale.reporting.backends.sockets import TcpLines
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.points import Points


class GraphiteConfig(Config, frozen=True, kw_only=True):
    scheme = "graphite"
    path_field = "prefix"

    host: str = "localhost"
    port: int = 2003
    prefix: str = ""

    def backend(self) -> Backend:
        return GraphiteReporter(self)


class GraphiteReporter(Backend):
    live = True

    def __init__(self, config: GraphiteConfig) -> None:
        self._prefix = config.prefix
        self._lines = TcpLines(config.host, config.port)

    async def connect(self) -> None:
        await self._lines.connect()

    async def submit(self, points: Sequence[Points]) -> None:
        await self._lines.send(graphite_lines(points, self._prefix))

    async def close(self) -> None:
        await self._lines.close()
