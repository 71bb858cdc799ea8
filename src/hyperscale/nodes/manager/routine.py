"""Which reports say nothing but numbers, so that only the others trouble the jobs core.

Workers report ten times a second and more; what the core learns from them (who is there, which
parts in which state, how far) changes a few times in a run. A report is routine when its worker
said the same a moment ago. Its numbers are taken in all the same.
"""

from __future__ import annotations

from hyperscale.nodes.protocol.parts import ReportProgress

# How long the core may know no more than it was told: half of what the most patient of its looks
# at workers, their rate over a second, can resolve.
CORE_S = 0.5

_Standing = tuple[object, ...]


class Routine:
    def __init__(self) -> None:
        self._told: dict[str, tuple[float, _Standing]] = {}

    def __len__(self) -> int:
        return len(self._told)

    def holds(self, now: float, report: ReportProgress) -> bool:
        """False: the core must hear this one, and is taken to have heard it."""
        standing = _standing(report)
        told = self._told.get(report.worker)
        if told is not None and now < told[0] + CORE_S and told[1] == standing:
            return True
        self._told[report.worker] = (now, standing)
        return False

    def forget(self, worker: str) -> None:
        self._told.pop(worker, None)

    def clear(self) -> None:
        self._told.clear()


def _standing(report: ReportProgress) -> _Standing:
    """All of a report that is no number of the load."""
    return (
        report.incarnation,
        report.free_cores,
        report.draining,
        *((p.part, p.fence, p.state, p.cores_done) for p in report.parts),
    )
