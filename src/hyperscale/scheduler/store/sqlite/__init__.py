"""The store of one machine: a SQLite file."""
