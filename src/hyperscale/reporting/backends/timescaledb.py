"""Points in TimescaleDB, or in any PostgreSQL: `timescaledb://user:password@host/database`.

They go into one table, `hyperscale_points`, a hypertable where the extension is at hand.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from hyperscale.reporting.backends.postgres import PostgresConfig, PostgresReporter
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.points import Points

TABLE = "hyperscale_points"
_LABELS = ("workflow", "step")
_COUNTS = (
    "requests", "failed", "unsent", "iterations", "dropped_iterations", "bytes_in", "bytes_out",
)  # fmt: skip
_GAUGES = ("vus", "p50_ms", "p95_ms", "p99_ms", "max_ms", "response_p99_ms")
_OWN = frozenset({*_LABELS, *_COUNTS, *_GAUGES, "run", "test"})
COLUMNS = ("time", "run", "test", "about", *_LABELS, *_COUNTS, *_GAUGES, "other")
_CREATE = f"""create table if not exists {TABLE} (
    time timestamptz not null, run text not null, test text not null, about text not null,
    {", ".join(f"{name} text not null" for name in _LABELS)},
    {", ".join(f"{name} bigint" for name in _COUNTS)},
    {", ".join(f"{name} double precision" for name in _GAUGES)},
    other text not null)"""
_EXTENSION = "select 1 from pg_extension where extname = 'timescaledb'"
_HYPERTABLE = f"select create_hypertable('{TABLE}', 'time', if_not_exists => true)"


class TimescaleDBConfig(PostgresConfig, frozen=True, kw_only=True):
    scheme = "timescaledb"

    def backend(self) -> Backend:
        return TimescaleDBReporter(self)


class TimescaleDBReporter(PostgresReporter):
    live = True
    at_end = False

    async def _prepare(self) -> None:
        await self._connection.execute(_CREATE)
        if await self._connection.fetchval(_EXTENSION):
            await self._connection.execute(_HYPERTABLE)

    async def submit(self, points: Sequence[Points]) -> None:
        """By COPY, which takes all or nothing and ten times what inserts take."""
        rows = [row for each in points for row in _rows(each)]
        await self._connection.copy_records_to_table(TABLE, records=rows, columns=COLUMNS)


def _rows(points: Points) -> list[tuple[object, ...]]:
    at = datetime.fromtimestamp(points.time_s, UTC)
    run, test = points.common.get("run", ""), points.common.get("test", "")
    tags = {name: text for name, text in points.common.items() if name not in ("run", "test")}
    return [
        (
            *(at, run, test, row.about),
            *(row.labels.get(name, "") for name in _LABELS),
            *(row.counts.get(name) for name in _COUNTS),
            *(row.gauges.get(name) for name in _GAUGES),
            _other({**tags, **row.labels, **row.counts, **row.gauges}),
        )
        for row in points.rows
    ]


def _other(said: dict[str, object]) -> str:
    """What has no column: labels of errors, checks and metrics with their numbers, and tags."""
    rest = {name: value for name, value in said.items() if name not in _OWN}
    return json.dumps(rest) if rest else "{}"
