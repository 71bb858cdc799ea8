"""The tables, in a schema of their own, and how older ones become current ones."""

from __future__ import annotations

from typing import Final

import asyncpg

from hyperscale.errors import BadInput
from hyperscale.scheduler.store.postgres.connecting import SCHEMA, Connection

MIGRATING: Final = 0x6879_7065_7273_6D01
"""An advisory lock: one process migrates, the others wait."""
SHARDS: Final = 16
"""Of each counter, so that processes rarely wait for each other to count."""

# The columns repeat what the indexes need, head and run hold all of a job. `place` and `at` are
# placement.py's. Rows come and go: a queue needs its dead rows swept early.
_FIRST: Final = """
CREATE TABLE jobs (
  id text COLLATE "C" PRIMARY KEY,
  head bytea NOT NULL,
  run bytea NOT NULL,
  state text COLLATE "C" NOT NULL,
  place smallint NOT NULL,
  at bigint,
  lane text COLLATE "C" NOT NULL,
  rank integer NOT NULL,
  due_at bigint NOT NULL,
  created_at bigint NOT NULL,
  schedule_id text COLLATE "C" NOT NULL,
  worker text COLLATE "C" NOT NULL,
  avoid text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  name text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX jobs_watched ON jobs (place, at) WHERE at IS NOT NULL;
CREATE INDEX jobs_ready ON jobs (lane, rank, due_at, created_at, id) WHERE place = 2;
CREATE INDEX jobs_held ON jobs (worker, id) WHERE place = 3;
CREATE INDEX jobs_live ON jobs (schedule_id) WHERE schedule_id <> '' AND place <> 4;
CREATE INDEX jobs_newest ON jobs (created_at, id);
CREATE INDEX jobs_by_state ON jobs (state, created_at, id);
CREATE INDEX jobs_by_schedule ON jobs (schedule_id, created_at, id) WHERE schedule_id <> '';
CREATE TABLE records (
  kind text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  at bigint,
  data bytea NOT NULL,
  PRIMARY KEY (kind, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX records_watched ON records (kind, at) WHERE at IS NOT NULL;
CREATE TABLE counters (
  name text NOT NULL,
  shard smallint NOT NULL,
  value bigint NOT NULL,
  PRIMARY KEY (name, shard)
) WITH (fillfactor = 50);
CREATE SEQUENCE tokens;
CREATE TABLE elections (
  name text PRIMARY KEY,
  node text NOT NULL,
  address text NOT NULL,
  token bigint NOT NULL,
  until timestamptz NOT NULL
);
"""

MIGRATIONS: Final[tuple[str, ...]] = (_FIRST,)


async def migrate(connection: Connection) -> None:
    """Raises BadInput for a newer layout, or where tables may not be made."""
    try:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATING)
            if await connection.fetchval("SELECT to_regnamespace($1) IS NULL", SCHEMA):
                await connection.execute(f"CREATE SCHEMA {SCHEMA}")
            await connection.execute("CREATE TABLE IF NOT EXISTS layout (version integer NOT NULL)")
            version = await connection.fetchval("SELECT max(version) FROM layout") or 0
            if version > len(MIGRATIONS):
                raise BadInput(
                    f"the job store was written by a newer version (layout {version})",
                    f"this one knows layout {len(MIGRATIONS)}: upgrade hyperscale",
                )
            for script in MIGRATIONS[version:]:
                await connection.execute(script)
            if version < len(MIGRATIONS):
                await connection.execute("INSERT INTO layout VALUES ($1)", len(MIGRATIONS))
    except asyncpg.InsufficientPrivilegeError as error:
        raise BadInput(
            f"the job store's tables cannot be made: {error}",
            f"let its owner say CREATE SCHEMA {SCHEMA} AUTHORIZATION the-user",
        ) from error
