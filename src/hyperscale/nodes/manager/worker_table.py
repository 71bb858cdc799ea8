"""What a leader knows of its workers beside the jobs core, and how it shows them to people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from hyperscale.cluster.jobs.pool import Worker
from hyperscale.cluster.jobs.queries import JobQueries
from hyperscale.cluster.jobs.records import Part
from hyperscale.cluster.jobs.state import JobState
from hyperscale.nodes.manager.live import Live
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.protocol.jobs import WorkerView
from hyperscale.nodes.protocol.parts import RegisterWorker, ReportProgress, WorkerPulse
from hyperscale.runtime.host import Address, Clock

# States of workers whose cores nobody can use.
ABSENT: Final = ("dead", "cut off")
WARNINGS_MAX: Final = 8  # of one worker
WARNING_CHARS_MAX: Final = 500
_pulses = msgspec.msgpack.Decoder(WorkerPulse)


class WorkerTable:
    def __init__(self, clock: Clock, node: Node, jobs: JobQueries, live: Live) -> None:
        self._clock = clock
        self._node = node
        self._jobs = jobs
        self._live = live
        self._reports: dict[str, ReportProgress] = {}
        self._warnings: dict[str, tuple[str, ...]] = {}

    def registered(self, ask: RegisterWorker) -> None:
        name = ask.node.node_id
        self._reports.pop(name, None)
        self._warnings[name] = tuple(one[:WARNING_CHARS_MAX] for one in ask.warnings[:WARNINGS_MAX])

    def reported(self, report: ReportProgress) -> None:
        self._reports[report.worker] = msgspec.structs.replace(report, parts=())

    def forget(self, worker: str) -> None:
        self._reports.pop(worker, None)
        self._warnings.pop(worker, None)

    def clear(self) -> None:
        self._reports.clear()
        self._warnings.clear()

    def is_degraded(self, worker: str) -> bool:
        """By its own judgement, told with its probes."""
        vitals = self._node.vitals.get(worker)
        if vitals is None or not vitals.pulse:
            return False
        try:
            return _pulses.decode(vitals.pulse).state == "degraded"
        except msgspec.MsgspecError:
            return False

    def views(
        self, job_id: str = "", may_read: Callable[[JobState], bool] = lambda job: True
    ) -> list[WorkerView]:
        """With the parts of all jobs, or of one, that may be read."""
        rows = []
        for name, worker in sorted(self._jobs.pool.workers.items()):
            held = self._jobs.replicated.by_worker.get(name, {})
            jobs = {part.job_id: self._jobs.job(part.job_id) for part in held}
            shown = {one for one, job in jobs.items() if job is not None and may_read(job)}
            if job_id:
                shown &= {job_id}
            parts = [part for part in sorted(held) if part.job_id in shown]
            if not job_id or parts:
                rows.append(self._view(worker, parts))
        return rows

    def _view(self, worker: Worker, parts: list[Part]) -> WorkerView:
        name, now, pool = worker.name, self._clock.now(), self._jobs.pool
        report = self._reports.get(name)
        numbers = [self._live.requests(part) for part in parts]
        member = self._node.membership.core.member(name)
        lost = pool.is_lost(now, worker)
        return WorkerView(
            worker=name,
            address=str(Address(*member.node.tcp)) if member is not None else "",
            state=_state(worker, lost=lost),
            total_cores=worker.total,
            free_cores=0 if lost else max(0, worker.total - pool.booked(worker)),
            parts=tuple(str(part) for part in parts),
            requests=sum(requests for requests, _ in numbers),
            rate=sum(rate for _, rate in numbers),
            cpu_percent=report.cpu_percent if report else 0.0,
            memory_percent=report.memory_percent if report else 0.0,
            routing=self._jobs.routing(name),
            heard_s=max(0.0, now - worker.heard_at),
            warnings=self._warnings.get(name, ()),
        )


def _state(worker: Worker, *, lost: bool) -> str:
    if worker.dead_at is not None:
        return "dead"
    if not worker.registered:
        return "expected"
    if lost:
        return "cut off"
    if worker.draining:
        return "draining"
    return "degraded" if worker.degraded else "healthy"
