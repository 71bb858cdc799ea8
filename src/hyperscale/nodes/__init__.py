"""Shells that join the pure cores of `cluster` to a host."""
