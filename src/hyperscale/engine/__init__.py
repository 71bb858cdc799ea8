"""Runs workloads: virtual users on one core, a pool of cores on one machine."""

from __future__ import annotations

from hyperscale.engine.run import LocalRun, RunOptions
from hyperscale.engine.source import ClassSource, FileSource

__all__ = ["ClassSource", "FileSource", "LocalRun", "RunOptions"]
