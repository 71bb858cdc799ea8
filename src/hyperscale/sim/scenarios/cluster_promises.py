"""What a cluster promises beside true numbers, judged from outside: that who leaves drops nothing,
that ended jobs are kept for their time and then forgotten, that thresholds have one verdict, that
a paused job stands still, and that cores are used by as much as may be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Finished, Part, PartLost, Steered, Submitted, TimedOut
from hyperscale.cluster.jobs.settings import JobSettings, keep_s
from hyperscale.cluster.placement.provision import in_use
from hyperscale.metrics.results import Results, WorkflowResult, decode
from hyperscale.nodes.protocol.jobs import Body
from hyperscale.sim.scenarios.cluster_checkers import ClusterChecker, records_of
from hyperscale.sim.scenarios.cluster_shapes import ABORTING, BROKEN, ENDLESS_S, KEPT
from hyperscale.sim.scenarios.cluster_truth import Truth
from hyperscale.sim.world import World

# Clocks drift by a thousandth, a leader looks every second, a follower hears of it with the next
# ping; a manager that was started again begins to count anew.
EARLY_SHARE: Final = 0.99
FORGOTTEN_WITHIN_S: Final = 6.0
# From the end of all faults until everybody was told, and from the command until then.
STANDS_STILL_AFTER_S: Final = 10.0
# What was made until the pause is counted as the pause begins.
LAST_LOAD_S: Final = 0.4


class Leaving(ClusterChecker):
    """A worker that was told to leave takes on nothing, leaves when its parts are over or its time
    is, and nothing of what it had ended and told is lost."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._since: dict[tuple[str, int], tuple[float, float]] = {}
        self._accepted: dict[tuple[Part, Fence], tuple[str, int]] = {}
        self._all_told: set[tuple[str, int]] = set()

    def on_leaving(self, at: float, node: str, life: int, limit_s: float) -> None:
        self._since[node, life] = (at, limit_s)

    def on_accepted(self, _at: float, node: str, life: int, part: Part, fence: Fence) -> None:
        self._accepted[part, fence] = (node, life)
        if (node, life) in self._since:
            self.fail(f"{node} took on {part} after it was told to leave")

    def on_drained(self, at: float, node: str, life: int, busy: int, untold: int) -> None:
        since, limit_s = self._since[node, life]
        if busy and at - since < limit_s * EARLY_SHARE:
            self.fail(f"{node} left {busy} parts after {at - since:.1f} s of its {limit_s:g} s")
        if not busy and not untold:
            self._all_told.add((node, life))

    def on_left(self, _at: float, node: str, life: int, busy: int) -> None:
        if busy:
            self.fail(f"{node} has left, and {busy} parts are still on its runner")

    def on_committed(self, _at: float, node: str, index: int, what: str, job: str) -> None:
        record = self.truth.log[index]
        if not isinstance(record, PartLost):
            return
        if self._accepted.get((record.part, record.fence)) in self._all_told:
            what = f"{record.part} {tuple(record.fence)}"
            self.fail(f"{what} is lost, but {record.worker} had told all when it left")


class Kept(ClusterChecker):
    """A job that ended is remembered for its time, and then by nobody."""

    def __init__(
        self,
        truth: Truth,
        remembered: Callable[[World], dict[str, list[str]]],
        settings: Callable[[], JobSettings],
    ) -> None:
        super().__init__(truth)
        self._remembered = remembered
        self._settings = settings
        self._restarted_at = 0.0

    def on_restarted(self, at: float, node: str) -> None:
        self._restarted_at = at

    def on_forgotten(self, at: float, node: str, job: str) -> None:
        ended_at = self.truth.finished_at.get(job)
        if ended_at is None:
            self.fail(f"{node} has forgotten {job}, which is not over")
        elif at - ended_at < self._kept_s(job) * EARLY_SHARE:
            self.fail(f"{node} has forgotten {job} {at - ended_at:.1f} s after its end")

    def at_end(self) -> None:
        ends = self.truth.finished_at.values()
        begun_at = max(self.world.healed_at, self._restarted_at, *ends)
        for node, jobs in sorted(self._remembered(self.world).items()):
            for job in [job for job in jobs if job in self.truth.finished]:
                over_s = self.world.now - begun_at - self._kept_s(job) - FORGOTTEN_WITHIN_S
                if over_s > 0:
                    self.fail(f"{node} remembers {job}, whose time was up {over_s:.1f} s ago")

    def _kept_s(self, job: str) -> float:
        return keep_s(self._settings(), self.truth.finished[job].status)


class ThresholdsJudged(ClusterChecker):
    """Each threshold is judged once, over all nodes together, and rightly; one that aborts ends
    the job, which says so."""

    RIGHT: Final = {KEPT: True, BROKEN: False, ABORTING: False}

    def on_committed(self, _at: float, node: str, index: int, what: str, job: str) -> None:
        record = self.truth.log[index]
        if not isinstance(record, Finished) or self.truth.finished.get(job) is not record:
            return
        asked = [
            threshold.expression
            for facts in _body(self.truth.jobs[job]).workflows
            for threshold in facts.thresholds
        ]
        if not asked:
            return
        results = decode(record.results)
        (workflow,) = results.workflows
        self._judged(job, asked, results, workflow)
        if ABORTING in asked:
            self._ended(job, results, workflow)

    def _judged(
        self, job: str, asked: list[str], results: Results, workflow: WorkflowResult
    ) -> None:
        verdicts = [(one.expression, one.passed) for one in results.thresholds]
        right = [(text, self.RIGHT[text] and workflow.requests > 0) for text in asked]
        if verdicts != right:
            self.fail(f"{job} has the verdicts {verdicts}, not {right}")

    def _ended(self, job: str, results: Results, workflow: WorkflowResult) -> None:
        ends = [
            one
            for one in records_of(self.truth, job)
            if isinstance(one, TimedOut) or (isinstance(one, Steered) and one.action in _ENDS)
        ]
        if workflow.error or any(isinstance(one, TimedOut) or one.by != _JUDGE for one in ends):
            return  # it ended for another reason
        if not ends and workflow.elapsed_s >= ENDLESS_S / 2:
            self.fail(f"{job} ran for {workflow.elapsed_s:.0f} s over a threshold that aborts")
        if ends and (results.cut, results.passed) != ("threshold", False):
            self.fail(f"a threshold ended {job}, whose results say {results.cut}")


_ENDS: Final = ("cancel", "stop")
_JUDGE: Final = "threshold"


def _body(submitted: Submitted) -> Body:
    return msgspec.msgpack.decode(submitted.body, type=Body)


class PausedStays(ClusterChecker):
    """A part that its worker calls paused makes no load, and after the faults no part of a paused
    job does, wherever it has gone since."""

    def __init__(self, truth: Truth, called_paused: Callable[[str, Part, Fence], bool]) -> None:
        super().__init__(truth)
        self._called_paused = called_paused
        self._since: dict[tuple[str, int, Part, Fence], float] = {}

    def on_loaded_in_a_pause(
        self, at: float, node: str, life: int, part: Part, fence: Fence
    ) -> None:
        healed_at, paused_at = self.world.healed_at, self.truth.paused_at[part.job_id]
        if healed_at and at - max(healed_at, paused_at) > STANDS_STILL_AFTER_S:
            self.fail(f"{node} loads {part}, whose job was paused {at - paused_at:.1f} s ago")
        key = (node, life, part, fence)
        if not self._called_paused(node, part, fence):
            self._since.pop(key, None)
        elif at - self._since.setdefault(key, at) > LAST_LOAD_S:
            self.fail(f"{node} loads {part}, which it calls paused")


class WithinCores(ClusterChecker):
    """A worker makes load on no more cores than it has; parts of a job may share some."""

    def on_began(self, _at: float, node: str, life: int, part: Part, fence: Fence) -> None:
        by_job: dict[str, list[tuple[tuple[int, ...], int]]] = defaultdict(list)
        for one in self.truth.loading():
            if one.host.name == node:
                done = one.running.cores_done
                by_job[one.order.part.job_id].append((one.order.slots, done))
        used = sum(map(in_use, by_job.values()))
        if used > self.truth.cores[node]:
            self.fail(f"{node} has {self.truth.cores[node]} cores and makes load on {used}")


class Alone(ClusterChecker):
    """Nothing loads beside an exclusive test."""

    def on_began(self, _at: float, node: str, life: int, part: Part, fence: Fence) -> None:
        loads = {(one.order.part.job_id, one.order.part.workflow) for one in self.truth.loading()}
        alone = [load for load in loads if self._is_exclusive(*load)]
        if alone and len(loads) > 1:
            self.fail(f"{node} began {part}; {alone[0]} is to run alone, and there is {loads}")

    def _is_exclusive(self, job_id: str, workflow: str) -> bool:
        needs = self.truth.jobs[job_id].workflows
        return any(one.name == workflow and one.is_exclusive for one in needs)
