"""What must hold in every history of the jobs core. A broken rule raises `Broken`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.apply import apply
from hyperscale.cluster.jobs.core import Jobs
from hyperscale.cluster.jobs.effects import Acknowledge, Dispatch, Effect, Start
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.records import (
    Dispatched,
    JobRecord,
    Part,
    PartEnded,
    PartLost,
    Placement,
    Steered,
    TimedOut,
)
from hyperscale.cluster.jobs.state import JobState, ReplicatedState, WorkflowState

if TYPE_CHECKING:
    from tests.property.jobs_world import World

ATTEMPTS_MAX = 4


class Broken(AssertionError):
    pass


def require(holds: bool, rule: str, *facts: object) -> None:
    if not holds:
        raise Broken(f"{rule}: {', '.join(str(fact) for fact in facts)}")


class Checks:
    def __init__(self, totals: dict[str, int]) -> None:
        self._totals = totals
        self.replicated = ReplicatedState()
        self._dispatched: dict[tuple[Part, Fence], float] = {}  # the job's age
        self._ends: Counter[tuple[Part, Fence]] = Counter()
        self._ending: set[str] = set()
        self.squeezed = 0  # parts that went on beside others

    # -- records ---------------------------------------------------------------------------------

    def committed(self, now: float, record: JobRecord) -> None:
        job = self.replicated.jobs.get(record.job_id)
        settled = {} if job is None else {n: w.is_settled for n, w in job.workflows.items()}
        good = {} if job is None else {n: w.lifecycle.succeeded for n, w in job.workflows.items()}
        live = self.replicated.placement(record.part) if isinstance(record, PartLost) else None
        if not apply(self.replicated, record):
            return
        if isinstance(record, Dispatched):
            self._check_dispatched(record, settled, good)
        elif isinstance(record, PartEnded) or (isinstance(record, PartLost) and live is not None):
            self._ends[record.part, record.fence] += 1
            require(
                self._ends[record.part, record.fence] == 1,
                "one committed end per attempt of a part",
                record.part,
                record.fence,
            )
        elif isinstance(record, TimedOut) or (
            isinstance(record, Steered) and record.action in ("cancel", "stop")
        ):
            self._ending.add(record.job_id)
        self._check_cores()

    def _check_dispatched(
        self, record: Dispatched, settled: dict[str, bool], good: dict[str, bool]
    ) -> None:
        require(record.job_id not in self._ending, "nothing is placed after a cancel", record)
        job = self.replicated.jobs[record.job_id]
        workflow = job.workflows[record.workflow]
        for name, other in job.workflows.items():
            if other.layer < workflow.layer:
                require(settled[name], "a layer starts after the one before it", record)
        for name in workflow.needs.depends:
            require(good[name], "a dependent starts after its parent completed", record)
        for placement in record.placements:
            token = placement.part, placement.fence
            require(token not in self._dispatched, "a token is used once", *token)
            require(placement.fence.attempt <= ATTEMPTS_MAX, "three retries at most", *token)
            self._dispatched[token] = record.age_s
        self._check_sharing(job, workflow, record)
        cores = sorted(
            core
            for part in workflow.parts.values()
            for core in range(part.first_core, part.first_core + part.cores)
        )
        require(
            cores == list(range(workflow.total_cores)), "every core has one part", record, cores
        )

    def _check_sharing(self, job: JobState, workflow: WorkflowState, record: Dispatched) -> None:
        """Of those that were lost: who goes on beside a part that was there before."""
        if not record.replaces:
            return
        policy = job.submitted.lost_load
        dropped = policy == "drop" and workflow.started and workflow.needs.is_test
        require(not dropped, "what is to be dropped is not placed again", record)
        for placement in record.placements:
            beside = [
                other
                for one in job.workflows.values()
                for other in one.live()
                if set(other.slots) & set(placement.slots)
                and self._dispatched[other.part, other.fence] < record.age_s
            ]
            if not beside:
                continue
            self.squeezed += 1
            require(policy == "squeeze", "only who wants to shares cores", record)
            require(workflow.started, "only load that runs is taken over beside other load", record)
            for other in beside:
                needs = job.workflows[other.part.workflow].needs
                alone = needs.is_exclusive or workflow.needs.is_exclusive
                require(
                    not alone or needs is workflow.needs,
                    "an exclusive test is alone",
                    other,
                    record,
                )

    def _check_cores(self) -> None:
        places: dict[tuple[str, int], tuple[str, int]] = {}
        for held in self.replicated.by_worker.values():
            for one in held.values():
                for slot in one.slots:
                    where = (one.worker, one.incarnation)
                    known = places.setdefault((one.part.job_id, slot), where)
                    require(known == where, "a slot is a core of one worker", one, known)
        for worker, held in self.replicated.by_worker.items():
            for incarnation in {placement.incarnation for placement in held.values()}:
                cores = {
                    (placement.part.job_id, slot)
                    for placement in held.values()
                    if placement.incarnation == incarnation
                    for slot in placement.slots
                }
                require(
                    len(cores) <= self._totals[worker], "no worker is over-booked", worker, held
                )

    # -- effects ---------------------------------------------------------------------------------

    def effect(self, now: float, effect: Effect, core: Jobs) -> None:
        if isinstance(effect, Dispatch):
            token = effect.placement.part, effect.placement.fence
            require(token in self._dispatched, "no dispatch before its record", *token)
            job = self.replicated.jobs[effect.placement.part.job_id]
            require(not job.ending or job.ending == "stop", "no dispatch after a cancel", *token)
        elif isinstance(effect, Start):
            part = effect.placement.part
            workflow = self.replicated.jobs[part.job_id].workflows[part.workflow]
            require(workflow.started, "no start before its record", part)
        elif isinstance(effect, Acknowledge):
            self.settled(effect.part, effect.fence)

    def settled(self, part: Part, fence: Fence) -> None:
        """A worker was told that it may forget an end."""
        live = self.replicated.placement(part)
        require(
            live is None or live.fence != fence, "no end is settled before its record", part, fence
        )

    def runs(self, now: float, worker: str, placement: Placement, world: World) -> None:
        """No core of a workflow generates load in two places."""
        first, end = placement.first_core, placement.first_core + placement.cores
        workflow = self.replicated.jobs[placement.part.job_id].workflows[placement.part.workflow]
        for name in workflow.needs.depends:
            other = self.replicated.jobs[placement.part.job_id].workflows[name]
            require(other.lifecycle.succeeded, "a dependent runs after its parent", placement)
        for box in world.workers.values():
            for running in box.parts.values():
                other_place = running.placement
                if (
                    box.up
                    and running.state in ("running", "paused")
                    and other_place != placement
                    and other_place.part.job_id == placement.part.job_id
                    and other_place.part.workflow == placement.part.workflow
                ):
                    apart = (
                        other_place.first_core + other_place.cores <= first
                        or end <= other_place.first_core
                    )
                    require(apart, "no load runs twice", now, placement, other_place)

    # -- the end ---------------------------------------------------------------------------------

    def all_over(self, jobs: set[str]) -> bool:
        return all(
            job_id in self.replicated.jobs and self.replicated.jobs[job_id].is_over
            for job_id in jobs
        )

    def at_end(self, world: World) -> None:
        for job_id in sorted(world.accepted):
            job = self.replicated.jobs[job_id]
            require(job.is_over, "every accepted job ends", job_id, _describe(job))
            for name, workflow in job.workflows.items():
                require(workflow.is_over, "every workflow ends", job_id, name)
                require(
                    workflow.lifecycle.refused == 0
                    or workflow.lifecycle.state is not LifecycleState.PENDING,
                    "a life that moves",
                    job_id,
                )
                results = workflow.results()
                require(len(results) == len(set(results)), "everything counts once", results)
        require(
            not self.replicated.by_worker,
            "all cores are free in the end",
            self.replicated.by_worker,
        )
        for box in world.workers.values():
            require(not box.parts, "workers hold nothing in the end", box.name, box.parts)
        if world.leader is not None:
            core = world.managers[world.leader]
            for name, worker in core.pool.workers.items():
                free = core.pool.free(worker)
                require(free == worker.total, "the pool is free in the end", name, free)
            for who, up in enumerate(world.alive):
                for job in world.managers[who].jobs() if up else ():
                    same = job == self.replicated.jobs[job.job_id]
                    require(same, "every manager knows the same", who, job.job_id)


def _describe(job: object) -> str:
    workflows = getattr(job, "workflows", {})
    return "; ".join(
        f"{name} {w.lifecycle.lines()[-4:]} parts {w.parts}" for name, w in workflows.items()
    )
