"""What must become of the load of a lost worker when no core is free, judged from outside."""

from __future__ import annotations

from typing import Final

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import (
    Dispatched,
    GivenUp,
    Part,
    PartEnded,
    PartLost,
    Returned,
    Steered,
)
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.sim.part_runner import core_percent
from hyperscale.sim.scenarios.cluster_checkers import ClusterChecker
from hyperscale.sim.scenarios.cluster_truth import ObservedPart, Truth

# For so long a worker must have run the job, after the loss and the end of all faults, to be one
# that should have taken the part: a leader is found, has heard it, and does not think it ill.
TAKEN_OVER_WITHIN_S: Final = 25.0
LIMIT_PERCENT: Final = JobSettings().squeeze_cpu_percent


class TakenOver(ClusterChecker):
    """A lost part is given up only if no worker of its job could have taken it: one that loads all
    the time, with CPU to spare, under a job that wants it."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._lost_at: dict[Part, float] = {}
        self._began_at: dict[tuple[str, Part, Fence], float] = {}
        self._steered: set[str] = set()
        self._leaving: set[str] = set()

    def on_leaving(self, _at: float, node: str, life: int, limit_s: float) -> None:
        self._leaving.add(node)

    def on_began(self, at: float, node: str, life: int, part: Part, fence: Fence) -> None:
        self._began_at[node, part, fence] = at

    def on_committed(self, at: float, node: str, index: int, what: str, job: str) -> None:
        record = self.truth.log[index]
        match record:
            case PartLost() | PartEnded():
                self._lost_at[record.part] = at
            case Returned(parts=numbers):
                for number in numbers:
                    self._lost_at[Part(job, record.workflow, number)] = at
            case Steered():
                self._steered.add(job)
            case Dispatched() if record.replaces:
                self._replaced(record)
            case GivenUp() if "no retry" not in record.reason:
                self._given_up(at, record)
            case _:
                pass

    def _replaced(self, record: Dispatched) -> None:
        needs = {one.name: one for one in self.truth.jobs[record.job_id].workflows}
        dropped = self.truth.jobs[record.job_id].lost_load == "drop"
        moved = any(placement.resume_at_s for placement in record.placements)
        if dropped and moved and needs[record.workflow].is_test:
            self.fail(f"{record.job_id} drops lost load, and {record.workflow} is placed again")

    def _given_up(self, at: float, record: GivenUp) -> None:
        job = record.job_id
        if self.truth.jobs[job].lost_load != "squeeze" or job in self._steered:
            return
        since = max(self._lost_at.get(record.part, at), self.world.healed_at)
        for one in self.truth.of_job(job):
            if self.world.healed_at and self._could(one, since, at):
                self.fail(f"{record.part} was given up, though {one.where} had CPU to spare")

    def _could(self, one: ObservedPart, since: float, at: float) -> bool:
        began_at = self._began_at.get((one.host.name, one.order.part, one.order.fence), at)
        hot = 2 * core_percent(one.order) > LIMIT_PERCENT
        return (
            at - max(began_at, since) >= TAKEN_OVER_WITHIN_S
            and one.loading
            and not hot
            and not one.running.cores_done
            and one.host.name not in self._leaving
        )


class ToSpare(ClusterChecker):
    """No process is given more load than it can bear; but for pieces of one part that share the
    only cores there are, because nobody else is left to run the job."""

    def on_began(self, _at: float, node: str, life: int, part: Part, fence: Fence) -> None:
        here = [one for one in self.truth.on(node) if one.loading]
        mine = next(one for one in here if (one.order.part, one.order.fence) == (part, fence))
        beside = [one for one in here if one.shares_with(mine.order)]
        if not beside:
            return
        for slot in mine.order.slots:
            sharing = [one for one in (mine, *beside) if slot in one.order.slots]
            if len({(one.order.part.workflow, one.order.fence) for one in sharing}) == 1:
                continue
            used_percent = sum(core_percent(one.order) for one in sharing)
            if len(sharing) > 1 and used_percent > LIMIT_PERCENT:
                self.fail(f"{node} has {used_percent:g} % to do in one process with {part}")
