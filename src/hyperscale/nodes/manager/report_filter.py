"""Which reports say nothing but numbers, so that only the others trouble the jobs core.

Workers report ten times a second and more; what the core learns from them (who is there, which
parts in which state, how far) changes a few times in a run. A report is routine when its worker
said the same a moment ago. Its numbers are taken in all the same. A worker that reports more often
than any does is told to wait.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.nodes.protocol.parts import ReportProgress

# How long the core may know no more than it was told: as long as it hears nothing of a worker
# without load, and as its shortest look at workers, their rate over a second, can resolve.
CORE_S = 1.0
# A worker reports twenty times a second at most, and somewhat more often when its parts change.
REPORTS_MAX = 500
REPORTS_S = 10.0
# Twice what the wire takes in connections.
WORKERS_MAX = 10_000

_Standing = tuple[object, ...]


@dataclass(slots=True)
class _Worker:
    since: float
    reports: int = 0
    told_at: float = 0.0
    standing: _Standing | None = None


class ReportFilter:
    def __init__(self) -> None:
        self._workers: dict[str, _Worker] = {}

    def __len__(self) -> int:
        return len(self._workers)

    def wait_s(self, now: float, worker: str) -> float:
        """How long this worker must wait before its next report is taken; 0: not at all, and this
        one is counted."""
        known = self._workers.get(worker)
        if known is None:
            if len(self._workers) >= WORKERS_MAX:
                self._workers.clear()
            known = self._workers[worker] = _Worker(now)
        elif now >= known.since + REPORTS_S:
            known.since, known.reports = now, 0
        if known.reports >= REPORTS_MAX:
            return known.since + REPORTS_S - now
        known.reports += 1
        return 0.0

    def holds(self, now: float, report: ReportProgress) -> bool:
        """False: the core must hear this one, and is taken to have heard it."""
        standing = _standing(report)
        known = self._workers.get(report.worker)
        if known is None:
            known = self._workers[report.worker] = _Worker(now)
        elif now < known.told_at + CORE_S and known.standing == standing:
            return True
        known.told_at, known.standing = now, standing
        return False

    def repeat(self, worker: str) -> None:
        """The core must hear of its next report."""
        known = self._workers.get(worker)
        if known is not None:
            known.standing = None

    def forget(self, worker: str) -> None:
        self._workers.pop(worker, None)

    def clear(self) -> None:
        self._workers.clear()


def _standing(report: ReportProgress) -> _Standing:
    """All of a report that is no number of the load."""
    return (
        report.incarnation,
        report.free_cores,
        report.draining,
        *[(p.part, p.fence, p.state, p.cores_done) for p in report.parts],
    )
