"""The embedded store: one SQLite file, durable, safe with several processes of one machine."""

from hyperscale.scheduler.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
