"""The job that all schedulers run in `benchmarks/scheduler.py`: nothing."""

from __future__ import annotations


def nothing() -> None:
    return None
