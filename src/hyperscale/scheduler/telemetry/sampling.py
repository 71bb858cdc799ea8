"""How much of what happens is traced, by class. Pure.

    class         what                                                    share
    job           a job's way: submit, claim, run, complete               0.01, or `--trace-share`
    workers       who is there: registrations, heartbeats, losses         0.05
    queue         calls of the store that move jobs                       0.1
    coordination  who leads: leases asked for, renewed, given up; terms   1

Whatever fails is traced, of every class, also calls that are in none (they only look). While
something fails, as large a share of the rest of its class is traced as fails, so that there is
something to compare it with. How long a class is kept is the collector's business: each span names
its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hyperscale.scheduler.telemetry.hook import TraceClass

SHARES: Final[Mapping[TraceClass, float]] = {
    TraceClass.JOB: 0.01,
    TraceClass.WORKERS: 0.05,
    TraceClass.QUEUE: 0.1,
    TraceClass.COORDINATION: 1.0,
    TraceClass.LOOKS: 0.0,
}

WINDOW_S: Final = 60.0
"""Failures of the last one or two minutes count."""


class Shares:
    """Of each class, raised to the share of it that failed lately."""

    def __init__(self, job_share: float) -> None:
        self._base = {**SHARES, TraceClass.JOB: job_share}
        self._windows = {kind: _Window() for kind in TraceClass}

    def note(self, kind: TraceClass, failed: bool, now_s: float) -> None:
        self._windows[kind].note(failed, now_s)

    def of(self, kind: TraceClass, now_s: float) -> float:
        return max(self._base[kind], self._windows[kind].failing(now_s))


class _Window:
    """Two halves, the older one thrown away when the newer is full: exact enough, and bounded."""

    def __init__(self) -> None:
        self._since_s = 0.0
        self._all = [0, 0]
        self._failed = [0, 0]

    def note(self, failed: bool, now_s: float) -> None:
        self._turn(now_s)
        self._all[1] += 1
        self._failed[1] += failed

    def failing(self, now_s: float) -> float:
        self._turn(now_s)
        return sum(self._failed) / (sum(self._all) or 1)

    def _turn(self, now_s: float) -> None:
        age_s = now_s - self._since_s
        if age_s < WINDOW_S:
            return
        recent = age_s < 2 * WINDOW_S
        self._all = [self._all[1] if recent else 0, 0]
        self._failed = [self._failed[1] if recent else 0, 0]
        self._since_s = now_s
