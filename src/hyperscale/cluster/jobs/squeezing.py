"""Lost parts on cores that their job has already, when none is free.

Only workers that run the job are asked, and only while they have CPU to spare: one that has not
measures itself instead of the target. What a further core of load will use, of the machine and of
the process it shares, is taken from what the present ones do. A part is taken over whole or not at
all; each of its cores goes to the worker that has the most to spare by then, and there to the
process that the fewest parts share.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import ceil
from typing import Final

from hyperscale.cluster.jobs.allocation import Allocation
from hyperscale.cluster.jobs.inputs import CpuUse
from hyperscale.cluster.jobs.leader_state import LeaderState
from hyperscale.cluster.jobs.pool import Worker
from hyperscale.cluster.jobs.records import Placement
from hyperscale.cluster.jobs.state import JobState, WorkflowState

REFUSALS_MAX: Final = 3
"""A worker that did not take so many parts of a job one after the other is not asked again to
share its cores."""


TOLD_S: Final = 3.0
"""A load that runs for this long shows in what its worker told of its CPU: three reports, of which
the last two count for three quarters."""


@dataclass(slots=True)
class _Host:
    """A worker that runs the job: its slots, with the workflow of each part on them."""

    worker: Worker
    cpu: CpuUse
    told: int  # cores of load of all jobs that its CPU tells of
    loads: int  # and of those that it has, or is about to
    told_by_process: int = 0  # the same of the process that bears the most for the job
    slots: dict[int, list[WorkflowState]] = field(default_factory=dict)

    def use_with(self, more: int) -> CpuUse:
        """With so many cores of load more, spread over its processes."""
        bears = [len(workflows) for workflows in self.slots.values()]
        will_bear = max(max(bears), ceil((sum(bears) + more) / len(bears)))
        return CpuUse(
            self.cpu.machine_percent * (self.loads + more) / self.told,
            self.cpu.generator_percent * will_bear / self.told_by_process,
        )

    def may_share(self, workflow: WorkflowState) -> list[int]:
        """An exclusive test shares its cores with nobody but itself."""
        return [
            slot
            for slot, others in self.slots.items()
            if all(
                other is workflow or not (other.needs.is_exclusive or workflow.needs.is_exclusive)
                for other in others
            )
        ]


class Squeeze:
    """What the workers of one job can take beside what they run, at one moment."""

    def __init__(self, leader: LeaderState, now: float, job: JobState) -> None:
        self._limit_percent = leader.settings.squeeze_cpu_percent
        self._hosts: dict[str, _Host] = {}
        told: Counter[tuple[str, int]] = Counter()
        for workflow in job.workflows.values():
            if workflow.is_winding_down:
                continue
            for placement in workflow.live():
                host = self._host(leader, now, placement)
                if host is None:
                    continue
                for slot in placement.slots:
                    host.slots.setdefault(slot, []).append(workflow)
                    if leader.pool.loads_since(host.worker, placement) <= now - TOLD_S:
                        told[host.worker.name, slot] += 1
                        by_process = max(host.told_by_process, told[host.worker.name, slot])
                        host.told_by_process = by_process
        self._hosts = {n: host for n, host in self._hosts.items() if host.told_by_process}

    def _host(self, leader: LeaderState, now: float, placement: Placement) -> _Host | None:
        """None when its cores cannot be shared: a part that gives cores back while it runs does
        not tell which."""
        worker = leader.pool.workers.get(placement.worker)
        watch = leader.watches[placement.part.job_id]
        if (
            worker is None
            or not worker.owns(placement)
            or watch.is_leaving(placement)
            or leader.pool.done(worker, placement)
        ):
            return None
        known = self._hosts.get(worker.name)
        if known is not None:
            return known
        if (
            worker.cpu is None
            or worker.degraded
            or watch.refusals[worker.name] >= REFUSALS_MAX
            or not leader.pool.can_share(now, worker)
        ):
            return None
        told = leader.pool.loads_told(worker, now - TOLD_S)
        host = _Host(worker, worker.cpu, told, leader.pool.loads(worker))
        self._hosts[worker.name] = host
        return host

    def take(self, workflow: WorkflowState, cores: int) -> Allocation | None:
        """Slots for so many cores of a workflow: several parts on the same ones if need be. None
        when nobody can bear that much."""
        chosen: Counter[str] = Counter()
        waiting = [
            (name in workflow.excluded, max(host.use_with(1)), name)
            for name, host in self._hosts.items()
            if host.may_share(workflow)
        ]
        heapify(waiting)
        while waiting and chosen.total() < cores:
            excluded, use_percent, name = heappop(waiting)
            if use_percent <= self._limit_percent:
                chosen[name] += 1
                more = self._hosts[name].use_with(chosen[name] + 1)
                heappush(waiting, (excluded, max(more), name))
        if chosen.total() < cores:
            return None
        return [
            (self._hosts[name].worker, slots)
            for name in sorted(chosen)
            for slots in self._pieces(self._hosts[name], workflow, chosen[name])
        ]

    def _pieces(self, host: _Host, workflow: WorkflowState, cores: int) -> list[tuple[int, ...]]:
        """A part has each of its cores in another process, so there are several of them where the
        processes are fewer than the cores."""
        host.loads += cores
        slots = host.may_share(workflow)
        found = []
        while cores > 0:
            slots.sort(key=lambda slot: (len(host.slots[slot]), slot))
            piece = tuple(sorted(slots[: min(cores, len(slots))]))
            for slot in piece:
                host.slots[slot].append(workflow)
            found.append(piece)
            cores -= len(piece)
        return found
