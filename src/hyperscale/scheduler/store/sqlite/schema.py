"""The file's layout and how an older file becomes a current one.

`PRAGMA user_version` counts the migrations a file has had. A migration that was released is never
changed; a file from a newer version is refused.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Final

from hyperscale.errors import BadInput
from hyperscale.runtime.private_files import close_to_others

BUSY_TIMEOUT_S: Final = 5.0
"""Longer than any batch of another process takes to commit on a slow disk."""

BUSY_LOOK_S: Final = 0.01

LIBRARY: Final = (3, 33, 0)
"""Of August 2020: the first SQLite whose UPDATE takes many rows at once (`bulk`)."""

# One row per job: the columns repeat what the indexes need, head and run hold all of it.
# `place` and `at` are placement.py's; ready = 2, held = 3, done = 4.
_FIRST: Final = """
CREATE TABLE jobs (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  head BLOB NOT NULL,
  run BLOB NOT NULL,
  state TEXT NOT NULL,
  place INTEGER NOT NULL,
  at INTEGER,
  lane TEXT NOT NULL,
  rank INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  schedule_id TEXT NOT NULL,
  worker TEXT NOT NULL
);
CREATE INDEX jobs_watched ON jobs (place, at) WHERE at IS NOT NULL;
CREATE INDEX jobs_ready ON jobs (lane, rank, due_at, created_at, id, place) WHERE place = 2;
CREATE INDEX jobs_held ON jobs (worker) WHERE place = 3;
CREATE INDEX jobs_live ON jobs (schedule_id, place) WHERE schedule_id <> '' AND place <> 4;
CREATE INDEX jobs_newest ON jobs (created_at, id);
CREATE INDEX jobs_by_state ON jobs (state, created_at, id);
CREATE INDEX jobs_by_schedule ON jobs (schedule_id, created_at, id) WHERE schedule_id <> '';
CREATE TABLE records (
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  at INTEGER,
  data BLOB NOT NULL,
  PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE INDEX records_watched ON records (kind, at) WHERE at IS NOT NULL;
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""

# The number of jobs that have not ended, where all had been counted.
_LIVE_JOBS: Final = """
INSERT INTO counters SELECT 'live jobs', count(*) FROM jobs WHERE place <> 4;
DELETE FROM counters WHERE name = 'jobs'
"""

MIGRATIONS: Final[tuple[str, ...]] = (_FIRST, _LIVE_JOBS)


def connect(path: Path) -> sqlite3.Connection:
    """A connection that may be used from another thread than this, by one at a time."""
    if sqlite3.sqlite_version_info < LIBRARY:
        raise BadInput(
            f"the job store needs SQLite {'.'.join(map(str, LIBRARY))} or newer,"
            f" and this Python has {sqlite3.sqlite_version}",
            "use another Python, or the store redis://...",
        )
    try:
        _close_to_others(path)
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        _begin_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        # The default of 1000 pages makes a checkpoint, two more syncs, of every few batches.
        connection.execute("PRAGMA wal_autocheckpoint = 8000")
        connection.execute("PRAGMA cache_size = -32768")
    except (sqlite3.Error, OSError) as error:
        raise BadInput(
            f"the job store {path} cannot be opened: {error}",
            "name a file in a directory that can be written",
        ) from error
    return connection


def _close_to_others(path: Path) -> None:
    """Payloads have credentials in them. What SQLite writes beside the file has the file's mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    for each in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        close_to_others(each)


def _begin_log(connection: sqlite3.Connection) -> None:
    """While a file changes to a log SQLite refuses others at once, without its timeout."""
    until_s = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until_s:
                raise
            time.sleep(BUSY_LOOK_S)
        else:
            return


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            raise BadInput(
                f"the job store {path} was written by a newer version (layout {version})",
                f"this one knows layout {len(MIGRATIONS)}: upgrade hyperscale",
            )
        for script in MIGRATIONS[version:]:
            for statement in script.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
