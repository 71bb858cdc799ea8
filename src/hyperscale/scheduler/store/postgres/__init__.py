"""The store of many machines on PostgreSQL."""
