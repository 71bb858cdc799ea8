"""Lost parts on cores that their job has already, when none is free.

Only workers that run the job are asked, and only while they have CPU to spare: one that has not
measures itself instead of the target. What a further core of load will use is taken from what the
present ones do. A part is taken over whole or not at all; each of its cores goes to the worker that
has the most to spare by then, and there to the process that the fewest parts share.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

from hyperscale.cluster.jobs.desk import Desk
from hyperscale.cluster.jobs.pool import Worker
from hyperscale.cluster.jobs.records import Placement
from hyperscale.cluster.jobs.seating import Seats
from hyperscale.cluster.jobs.state import JobState, WorkflowState

REFUSALS_MAX: Final = 3
"""A worker that did not take so many parts of a job one after the other is not asked again to
share its cores."""


@dataclass(slots=True)
class _Host:
    """A worker that runs the job: its slots, with the workflow of each part on them."""

    worker: Worker
    loads: int
    cpu_percent: float
    slots: dict[int, list[WorkflowState]] = field(default_factory=dict)

    def use_percent(self, more: int) -> float:
        """Of its CPU, with so many cores of load more."""
        return self.cpu_percent * (self.loads + more) / self.loads

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

    def __init__(self, desk: Desk, now: float, job: JobState) -> None:
        self._limit_percent = desk.settings.squeeze_cpu_percent
        self._hosts: dict[str, _Host] = {}
        for workflow in job.workflows.values():
            if workflow.is_winding_down:
                continue
            for placement in workflow.live():
                host = self._host(desk, now, placement)
                if host is not None:
                    for slot in placement.slots:
                        host.slots.setdefault(slot, []).append(workflow)

    def _host(self, desk: Desk, now: float, placement: Placement) -> _Host | None:
        """None when its cores cannot be shared: a part that gives cores back while it runs does
        not tell which."""
        worker = desk.pool.workers.get(placement.worker)
        watch = desk.watches[placement.part.job_id]
        if (
            worker is None
            or not worker.owns(placement)
            or watch.is_leaving(placement)
            or desk.pool.done(worker, placement)
        ):
            return None
        known = self._hosts.get(worker.name)
        if known is not None:
            return known
        if (
            worker.cpu_percent is None
            or worker.degraded
            or watch.refusals[worker.name] >= REFUSALS_MAX
            or not desk.pool.can_share(now, worker)
        ):
            return None
        host = _Host(worker, desk.pool.loads(worker), worker.cpu_percent)
        self._hosts[worker.name] = host
        return host

    def take(self, workflow: WorkflowState, cores: int) -> Seats | None:
        """Slots for so many cores of a workflow: several parts on the same ones if need be. None
        when nobody can bear that much."""
        chosen: Counter[str] = Counter()
        waiting = [
            (name in workflow.excluded, host.use_percent(1), name)
            for name, host in self._hosts.items()
            if host.may_share(workflow)
        ]
        heapify(waiting)
        while waiting and chosen.total() < cores:
            excluded, use_percent, name = heappop(waiting)
            if use_percent <= self._limit_percent:
                chosen[name] += 1
                more_percent = self._hosts[name].use_percent(chosen[name] + 1)
                heappush(waiting, (excluded, more_percent, name))
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
        host.cpu_percent = host.worker.cpu_percent = host.use_percent(cores)  # until it tells
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
