"""What the connections of one server share: the routes, the counts and the memory of requests.

Counts exist so that a test can compare what a load generator says with what arrived; the delay
measure is the time `/delay` really took, timer inaccuracy included.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from hyperscale.http2.hpack import Tables
from hyperscale.target.message import Handler, Request

if TYPE_CHECKING:
    from hyperscale.target.connection import Connection
    from hyperscale.target.http2 import HTTP2Connection

# Bounds of what is kept, so that no traffic makes the target grow.
PATHS_COUNTED = 1_000
REQUESTS_REMEMBERED = 1_024
REMEMBERED_BYTES = 4_096
OTHER_PATHS = "(other)"
TABLES_LIST_BYTES = 64 * 1024  # of the headers of a request in HTTP/2
GOLDEN_RATIO = (math.sqrt(5) - 1) / 2


class DelayMeasure:
    """How long the answers to one `/delay/MS` really waited."""

    __slots__ = ("_tenths", "count", "max_s", "min_s", "total_s")

    def __init__(self) -> None:
        self.count = 0
        self.total_s = 0.0
        self.min_s = math.inf
        self.max_s = 0.0
        self._tenths: dict[int, int] = defaultdict(int)  # waits by tenth of a millisecond

    def add(self, seconds: float) -> None:
        self.count += 1
        self.total_s += seconds
        self.min_s = min(self.min_s, seconds)
        self.max_s = max(self.max_s, seconds)
        self._tenths[int(seconds * 10_000)] += 1

    def median_ms(self) -> float:
        seen = 0
        for tenth in sorted(self._tenths):
            seen += self._tenths[tenth]
            if seen * 2 >= self.count:
                return tenth / 10 + 0.05
        return 0.0

    def summary(self) -> dict[str, float]:
        return {
            "count": self.count,
            "mean_ms": self.total_s * 1e3 / self.count,
            "p50_ms": self.median_ms(),
            "min_ms": self.min_s * 1e3,
            "max_ms": self.max_s * 1e3,
        }


class Site:
    def __init__(
        self, exact: dict[str, Handler], with_argument: dict[str, Handler], fallback: Handler
    ) -> None:
        self._exact = exact
        self._with_argument = with_argument
        self._fallback = fallback
        self.connections: set[Connection | HTTP2Connection] = set()
        self.tables = Tables(TABLES_LIST_BYTES)
        self.accepted = 0
        self.remembered: dict[bytes, Request] = {}
        self.paths: dict[str, int] = {}
        self.delays: dict[str, DelayMeasure] = {}
        self._flaky_turn: dict[float, int] = defaultdict(int)

    def route(self, path: str) -> tuple[Handler, str]:
        """The handler of a path, and the last part of the path where the handler takes one."""
        if handler := self._exact.get(path):
            return handler, ""
        parent, _, last = path.rpartition("/")
        if handler := self._with_argument.get(parent):
            return handler, last
        return self._fallback, ""

    def remember(self, data: bytes, request: Request) -> None:
        """Equal bytes mean an equal request, and load generators repeat themselves."""
        if len(data) <= REMEMBERED_BYTES:
            if len(self.remembered) >= REQUESTS_REMEMBERED:
                self.remembered.clear()
            self.remembered[data] = request

    def counted_as(self, path: str) -> str:
        known = path in self.paths or len(self.paths) < PATHS_COUNTED
        return path if known else OTHER_PATHS

    def delayed(self, path: str, seconds: float) -> None:
        measure = self.delays.get(path)
        if measure is None:
            measure = self.delays[path] = DelayMeasure()
        measure.add(seconds)

    def flaky_fails(self, percent: float) -> bool:
        """A low-discrepancy sequence: any stretch of answers has close to its share of failures."""
        percent = round(percent, 2)  # bounds the number of sequences kept
        self._flaky_turn[percent] += 1
        return (self._flaky_turn[percent] * GOLDEN_RATIO) % 1.0 * 100 < percent

    def reset(self) -> None:
        self.accepted = 0
        self.paths.clear()
        self.delays.clear()
        self._flaky_turn.clear()
