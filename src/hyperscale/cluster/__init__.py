"""Decisions of a cluster as pure state machines: no I/O, no clock, no dice of their own."""
