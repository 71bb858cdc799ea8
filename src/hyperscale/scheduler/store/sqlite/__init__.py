"""The embedded store: one SQLite file, durable, safe with several processes of one machine."""

from hyperscale.scheduler.store.sqlite.ground import SqliteStore

__all__ = ["SqliteStore"]
