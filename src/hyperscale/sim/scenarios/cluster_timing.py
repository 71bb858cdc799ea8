"""What a cluster says of time, judged from outside: only loads that hang are stuck, and those are;
no limit is applied by who has not heard the workers, or for time in which nobody could lead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from hyperscale.cluster.jobs.records import (
    Dispatched,
    Failed,
    JobRecord,
    PartEnded,
    Submitted,
    TimedOut,
)
from hyperscale.nodes.protocol.jobs import Body
from hyperscale.sim.scenarios.cluster_checkers import ClusterChecker, records_of
from hyperscale.sim.scenarios.cluster_truth import Truth

# From the loss of a quorum until everybody has noticed that nobody leads, and back.
NOTICED_S: Final = 8.0


class StuckIfHanging(ClusterChecker):
    def on_committed(self, _at: float, node: str, index: int, what: str, job: str) -> None:
        record = self.truth.log[index]
        if isinstance(record, TimedOut | Failed) and record.reason.startswith("stuck"):
            concerned = [record.workflow] if isinstance(record, Failed) else []
            if not self._hanging(job, *concerned):
                self.fail(f"{job} {concerned} is called stuck, and nothing of it hangs")
        elif (
            isinstance(record, PartEnded)
            and record.outcome == "completed"
            and self._hanging(job, record.part.workflow)
        ):
            self.fail(f"{record.part} hung to the end of its load, and nobody noticed")

    def _hanging(self, job: str, *workflows: str) -> list[str]:
        body = msgspec.msgpack.decode(self.truth.jobs[job].body, type=Body)
        names = [one.name for one in body.workflows if one.tags.get("mishap") == "hangs"]
        return [name for name in names if not workflows or name in workflows]


class LimitsInTime(ClusterChecker):
    """`unheard` names the workers that who wrote a record should have heard before."""

    def __init__(self, truth: Truth, unheard: Callable[[int, str], list[str]]) -> None:
        super().__init__(truth)
        self._unheard = unheard
        self._without_quorum: list[tuple[float, float]] = []
        self._submitted_at: dict[str, float] = {}
        self._dispatched_at: dict[str, float] = {}

    def on_without_quorum(self, at: float, seconds: float) -> None:
        self._without_quorum.append((at, at + seconds))

    def on_healed(self, at: float, core: tuple[str, ...]) -> None:
        self._without_quorum = [(begin, min(end, at)) for begin, end in self._without_quorum]

    def on_committed(self, at: float, node: str, index: int, what: str, job: str) -> None:
        record = self.truth.log[index]
        if isinstance(record, Submitted):
            self._submitted_at.setdefault(job, at)
        if isinstance(record, Dispatched):  # by one leader, and perhaps committed by the next
            self._dispatched_at.setdefault(job, min(at, self._submitted_at[job] + record.age_s))
        if not _is_limit(record) or self._is_over(job, index):
            return
        unheard = self._unheard(index, job)
        if unheard:
            self.fail(f"{node} applied a limit to {job} before it had heard {', '.join(unheard)}")
        spent_s = at - self._dispatched_at[job] - self._unled_s(job, at)
        limit_s = self.truth.jobs[job].timeout_s
        if isinstance(record, TimedOut) and spent_s < limit_s * 0.95 - 1.0:
            self.fail(f"{job} has {limit_s:g} s, had {spent_s:.1f} s of a leader, and is timed out")

    def _is_over(self, job: str, index: int) -> bool:
        """Another record was first: this one counts for nothing."""
        earlier = [one for one in records_of(self.truth, job) if one is not self.truth.log[index]]
        return any(isinstance(one, TimedOut) for one in earlier) or job in self.truth.finished

    def _unled_s(self, job: str, until: float) -> float:
        """Of the job's time, at least that much was nobody's."""
        since = self._dispatched_at[job]
        return sum(
            max(0.0, min(end, until) - max(begin, since) - NOTICED_S)
            for begin, end in self._without_quorum
        )


def _is_limit(record: JobRecord) -> bool:
    if isinstance(record, TimedOut):
        return record.reason.startswith("timed out")
    return isinstance(record, Failed) and record.reason.startswith("did not end within")
