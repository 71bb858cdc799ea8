"""Checkers for load that is lost: verdict and coverage are those of what the stages really ran, and
what was heard of a lost part is written down with its loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from hyperscale.cluster.jobs.records import Finished, PartEnded, PartLost, Steered, TimedOut
from hyperscale.errors import ExitCode
from hyperscale.metrics.exported import decode as decode_state
from hyperscale.metrics.results import Results, WorkflowResult, decode
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.manager.part_end import decode_end
from hyperscale.sim.scenarios.cluster_checkers import ClusterChecker, records_of
from hyperscale.sim.scenarios.cluster_truth import ObservedPart, Truth

ROUNDING: Final = 1e-6
# Two attempts may overlap by as much as the clocks of a leader and a generator differ.
OVERLAP: Final = 0.05


class TrueCoverage(ClusterChecker):
    """A job that was not ended early passes only when its stages ran all of the plan, and never
    tells of more than they ran. A preparation whose process died failed."""

    def on_committed(self, _at: float, node: str, index: int, what: str, job: str) -> None:
        record = self.truth.log[index]
        if not isinstance(record, Finished) or self.truth.finished.get(job) is not record:
            return
        if not record.results:
            return
        results = decode(record.results)
        for workflow in results.workflows:
            if not workflow.is_test:
                self._prepared(job, workflow)
        if not self._ended_early(job):
            self._covered(job, results)

    def _prepared(self, job: str, workflow: WorkflowResult) -> None:
        ran = self._ran(job, workflow.name)
        if ran and ran[-1].running.died and not workflow.error:
            self.fail(f"{job} {workflow.name} counts as done, and its process died")

    def _covered(self, job: str, results: Results) -> None:
        tests = [one for one in results.workflows if one.is_test and one.planned_load]
        if not tests or any(one.error for one in results.workflows):
            return  # one that failed says so
        shares = [self._share(job, one) for one in tests]
        right = sum(shares) / len(shares)
        if results.coverage > right + OVERLAP:
            self.fail(f"{job} has a coverage of {results.coverage:.3f}, {right:.3f} was run")
        if results.exit_code == ExitCode.PASSED and min(shares) < 1.0 - ROUNDING:
            self.fail(f"{job} passed, and {min(shares):.3f} of a test was run")

    def _share(self, job: str, workflow: WorkflowResult) -> float:
        offered = sum(one.running.offered for one in self._ran(job, workflow.name))
        return min(1.0, offered / (workflow.planned_load or 1.0))

    def _ran(self, job: str, workflow: str) -> list[ObservedPart]:
        return [
            one
            for one in self.truth.of_job(job)
            if one.order.part.workflow == workflow and one.began
        ]

    def _ended_early(self, job: str) -> bool:
        return any(
            isinstance(one, TimedOut)
            or (isinstance(one, Steered) and one.action in ("cancel", "stop"))
            for one in records_of(self.truth, job)
        )


class HeardIsKept(ClusterChecker):
    """What the leader before had passed on of a part is in the record of its loss."""

    def __init__(self, truth: Truth, leaders: Callable[[], Sequence[Manager]]) -> None:
        super().__init__(truth)
        self._leaders = leaders

    def on_committed(self, _at: float, node: str, index: int, what: str, job: str) -> None:
        record = self.truth.log[index]
        leaders = self._leaders()
        if not isinstance(record, PartLost) or len(leaders) != 1:
            return
        note = leaders[0].progress_backup.of(record.part, record.fence)
        if note is None or self._had_ended(record):
            return
        known = _requests(note.state)
        told = _requests(decode_end(record.result).state) if record.result else 0
        self.world.coverage["loss told by the leader before"] += 1
        if told < known:
            self.fail(f"{record.part} is lost with {told} requests, {known} had been passed on")

    def _had_ended(self, record: PartLost) -> bool:
        """Its processes were kept for teardown: there was nothing left to lose."""
        return any(
            isinstance(one, PartEnded) and (one.part, one.fence) == (record.part, record.fence)
            for one in records_of(self.truth, record.job_id)
        )


def _requests(state: bytes) -> int:
    return sum(one.count for one in decode_state(state).requests) if state else 0
