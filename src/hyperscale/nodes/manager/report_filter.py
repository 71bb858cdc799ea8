"""Which reports say nothing but numbers, so that only the others reach the jobs core; and how much
workers are asked to hold back.

Workers report ten times a second and more; what the core learns from them (who is there, which
parts in which state, how far) changes a few times in a run. A report repeats the last one when its
worker said the same a moment ago. Its numbers are taken in all the same. A worker that reports more
often than any does is told to wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hyperscale.cluster.overload.priority import LoadLevel
from hyperscale.nodes.protocol.parts import ReportProgress

# How long the core may know no more than it was told: as long as it hears nothing of a worker
# without load, and as its shortest look at workers, their rate over a second, can resolve.
CORE_S = 1.0
# A worker reports twenty times a second at most, and somewhat more often when its parts change.
REPORTS_MAX = 500
REPORTS_S = 10.0
# One that tells of more than this many parts and deltas counts for several: a worker of 256 cores,
# a delta of each twenty times a second, stays within the limit.
LISTED = 256
# Twice what the wire takes in connections.
WORKERS_MAX = 10_000

# Reports beyond what we take in: how long each worker should pause, by level.
DELAYS_MS = (0, 50, 200, 450)
# By how loaded this node is. A pause of level 1 is no longer than a worker with one core makes
# anyway, and a stressed node refuses: what a busy one asks for has to be enough.
LEVELS_BY_LOAD = (0, 2, 3, 3)
# What comes in is counted over this long: after a moment's delay a second brings more than it
# should, and the one before it less. A loop that runs late is noticed sooner than this.
PRESSURE_S = 3.0

_Said = tuple[object, ...]


@dataclass(slots=True)
class _Worker:
    since: float
    reports: int = 0
    told_at: float = 0.0
    said: _Said | None = None


class ReportFilter:
    def __init__(self) -> None:
        self._workers: dict[str, _Worker] = {}

    def __len__(self) -> int:
        return len(self._workers)

    def wait_s(self, now: float, report: ReportProgress) -> float:
        """How long its worker must wait before the next report is taken; 0: not at all, and this
        one is counted."""
        worker = report.worker
        known = self._workers.get(worker)
        if known is None:
            if len(self._workers) >= WORKERS_MAX:
                self._workers.clear()
            known = self._workers[worker] = _Worker(now)
        elif now >= known.since + REPORTS_S:
            known.since, known.reports = now, 0
        if known.reports >= REPORTS_MAX:
            return known.since + REPORTS_S - now
        known.reports += 1 + sum([1 + len(part.deltas) for part in report.parts]) // LISTED
        return 0.0

    def is_repeat(self, now: float, report: ReportProgress) -> bool:
        """False: the core must hear this one, and is taken to have heard it."""
        said = _said(report)
        known = self._workers.get(report.worker)
        if known is None:
            known = self._workers[report.worker] = _Worker(now)
        elif now < known.told_at + CORE_S and known.said == said:
            return True
        known.told_at, known.said = now, said
        return False

    def pass_next(self, worker: str) -> None:
        """The core must hear of its next report."""
        known = self._workers.get(worker)
        if known is not None:
            known.said = None

    def forget(self, worker: str) -> None:
        self._workers.pop(worker, None)

    def clear(self) -> None:
        self._workers.clear()


def _said(report: ReportProgress) -> _Said:
    """All of a report that is no number of the load."""
    return (
        report.incarnation,
        report.free_cores,
        report.draining,
        *[(p.part, p.fence, p.state, p.cores_done) for p in report.parts],
    )


class Pressure:
    """How much more comes in than we can take."""

    def __init__(self, deltas_per_s_max: int, load: Callable[[], LoadLevel]) -> None:
        self._most = deltas_per_s_max
        self._load = load
        self._before = 0
        self._since = 0.0
        self._flow_level = 0
        self.deltas = 0

    def level(self, now: float) -> int:
        """0 none .. 3 hold back. A node that is busy with whatever it may be asks for half as
        much, before it is stressed and refuses."""
        if now - self._since >= PRESSURE_S:
            per_s = (self.deltas - self._before) / (now - self._since)
            self._flow_level = sum(per_s >= limit * self._most for limit in (0.70, 0.85, 0.95))
            self._before, self._since = self.deltas, now
        return max(self._flow_level, LEVELS_BY_LOAD[self._load()])
