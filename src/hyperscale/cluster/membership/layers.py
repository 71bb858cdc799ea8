"""Two questions that must not be mixed: is the machine alive, and does it serve *this* job?

A saturated worker may miss one job's deadlines while another job on it is fine, so a job's
suspicion ends in that job's loss of the worker and nothing more. A dead machine is dead for every
job, once. The machine layer is fed by membership (or by its own suspicions where there is none),
the job layer by timeouts of the job's own messages. One deadline heap drives both.

    machine:  ALIVE -> SUSPECTED -> DEAD -> ALIVE (only by a higher incarnation)
    job:      ALIVE -> SUSPECTED -> DEAD -> ALIVE (refuted by any later message of the job)

    what a caller sees, worst first:
    DEAD_GLOBAL > SUSPECTED_GLOBAL > DEAD_JOB > SUSPECTED_JOB > ALIVE
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import msgspec

from hyperscale.cluster.identity import NodeId
from hyperscale.cluster.membership.deadlines import Deadlines
from hyperscale.cluster.membership.suspicion import Suspicion

JobId = str


class Status(IntEnum):
    """Ordered: of two that apply, the greater is reported."""

    ALIVE = 0
    SUSPECTED_JOB = 1
    DEAD_JOB = 2
    SUSPECTED_GLOBAL = 3
    DEAD_GLOBAL = 4


class MachineDied(msgspec.Struct, frozen=True):
    node_id: NodeId
    incarnation: int
    cleared_jobs: tuple[JobId, ...]  # jobs that had their own doubts about it


class JobLost(msgspec.Struct, frozen=True):
    """The node no longer serves this job. It may still run the job's work: fence and cancel
    before giving that work to another."""

    job: JobId
    node_id: NodeId
    incarnation: int


class Full(msgspec.Struct, frozen=True):
    """No room for another job suspicion: an alarm; the machine layer still protects the job."""

    job: JobId
    node_id: NodeId


LayerEffect = MachineDied | JobLost | Full


@dataclass(frozen=True, slots=True)
class LayersConfig:
    machine_min_s: float = 5.0
    machine_max_s: float = 30.0
    job_min_s: float = 1.0
    job_max_s: float = 10.0
    confirmations: int = 3
    machine_suspicions_max: int = 10_000
    job_suspicions_max: int = 1_000  # of one job
    suspicions_max: int = 50_000  # of all jobs
    reconcile_s: float = 5.0


@dataclass(slots=True)
class _Doubt:
    suspicion: Suspicion | None
    incarnation: int
    dead: bool = False


_RECONCILE = ("reconcile", "")


class Layers:
    __slots__ = ("_config", "_deadlines", "_health", "_jobs", "_machines", "_total", "counts")

    def __init__(
        self, config: LayersConfig, health_factor: Callable[[], float] = lambda: 1.0
    ) -> None:
        self._config = config
        self._health = health_factor
        self._machines: dict[NodeId, _Doubt] = {}
        self._jobs: dict[JobId, dict[NodeId, _Doubt]] = {}
        self._total = 0
        self._deadlines: Deadlines[tuple[str, str]] = Deadlines()
        self.counts: Counter[str] = Counter()

    # --- reading ------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        return self._deadlines.next

    @property
    def suspicions(self) -> int:
        return self._total + len(self._machines)

    def status(self, node_id: NodeId, job: JobId | None = None) -> Status:
        worst = Status.ALIVE
        machine = self._machines.get(node_id)
        if machine is not None:
            worst = Status.DEAD_GLOBAL if machine.dead else Status.SUSPECTED_GLOBAL
        doubt = None if job is None else self._jobs.get(job, {}).get(node_id)
        if doubt is not None:
            worst = max(worst, Status.DEAD_JOB if doubt.dead else Status.SUSPECTED_JOB)
        return worst

    def alive(self, node_id: NodeId) -> bool:
        """The machine is not dead; a suspect still counts."""
        return self.status(node_id) is not Status.DEAD_GLOBAL

    def serves(self, node_id: NodeId, job: JobId) -> bool:
        """Fit to receive work of this job: dead in neither layer."""
        return self.status(node_id, job) not in (Status.DEAD_GLOBAL, Status.DEAD_JOB)

    # --- machine layer ------------------------------------------------------------------------

    def suspect_machine(
        self, now: float, node_id: NodeId, incarnation: int, accuser: NodeId
    ) -> bool:
        """False when it is refused: stale, already dead, or no room."""
        known = self._machines.get(node_id)
        if known is not None:
            if known.dead or incarnation < known.incarnation:
                return False
            if incarnation == known.incarnation:
                return self.confirm_machine(node_id, incarnation, accuser)
        elif len(self._machines) >= self._config.machine_suspicions_max:
            self.counts["machine_suspicions_refused"] += 1
            return False
        config = self._config
        suspicion = self._suspicion(
            now, incarnation, accuser, config.machine_min_s, config.machine_max_s
        )
        self._machines[node_id] = _Doubt(suspicion, incarnation)
        self._deadlines.set(("machine", node_id), suspicion.deadline)
        self._arm(now)
        return True

    def confirm_machine(self, node_id: NodeId, incarnation: int, accuser: NodeId) -> bool:
        return self._confirm(
            ("machine", node_id), self._machines.get(node_id), incarnation, accuser
        )

    def refute_machine(self, node_id: NodeId, incarnation: int) -> bool:
        """Needs a higher incarnation; also the way back from death."""
        known = self._machines.get(node_id)
        if known is None or incarnation <= known.incarnation:
            return False
        del self._machines[node_id]
        self._deadlines.cancel(("machine", node_id))
        return True

    def machine_dead(self, now: float, node_id: NodeId, incarnation: int) -> list[LayerEffect]:
        """Membership says so: no further waiting."""
        known = self._machines.get(node_id)
        if known is not None and (known.dead or incarnation < known.incarnation):
            return []
        self._machines[node_id] = _Doubt(None, incarnation, dead=True)
        self._deadlines.cancel(("machine", node_id))
        cleared = tuple(job for job in sorted(self._jobs) if self._drop(job, node_id))
        self.counts["machine_deaths"] += 1
        return [MachineDied(node_id, incarnation, cleared)]

    def forget_machine(self, node_id: NodeId) -> None:
        """Its row is gone from the view."""
        if self._machines.pop(node_id, None) is not None:
            self._deadlines.cancel(("machine", node_id))

    # --- job layer ----------------------------------------------------------------------------

    def suspect_job(
        self, now: float, job: JobId, node_id: NodeId, incarnation: int, accuser: NodeId
    ) -> list[LayerEffect]:
        if not self.alive(node_id):
            return []
        known = self._jobs.get(job, {}).get(node_id)
        if known is not None and (known.dead or incarnation <= known.incarnation):
            if incarnation == known.incarnation:
                self.confirm_job(job, node_id, incarnation, accuser)
            return []
        if known is None and not self._room(job):
            self.counts["job_suspicions_refused"] += 1
            return [Full(job, node_id)]
        config = self._config
        suspicion = self._suspicion(now, incarnation, accuser, config.job_min_s, config.job_max_s)
        self._total += known is None
        self._jobs.setdefault(job, {})[node_id] = _Doubt(suspicion, incarnation)
        self._deadlines.set((f"job {job}", node_id), suspicion.deadline)
        self._arm(now)
        return []

    def confirm_job(self, job: JobId, node_id: NodeId, incarnation: int, accuser: NodeId) -> bool:
        doubt = self._jobs.get(job, {}).get(node_id)
        return self._confirm((f"job {job}", node_id), doubt, incarnation, accuser)

    def heard_for_job(self, job: JobId, node_id: NodeId, incarnation: int) -> bool:
        """A message of this job arrived: it serves the job, whatever was thought before."""
        doubt = self._jobs.get(job, {}).get(node_id)
        return doubt is not None and incarnation >= doubt.incarnation and self._drop(job, node_id)

    def clear_job(self, job: JobId) -> int:
        """The job is over; returns how many doubts went with it."""
        return sum(self._drop(job, node_id) for node_id in list(self._jobs.get(job, ())))

    # --- time ---------------------------------------------------------------------------------

    def tick(self, now: float) -> list[LayerEffect]:
        out: list[LayerEffect] = []
        while (due := self._deadlines.pop(now)) is not None:
            kind, node_id = due
            if due == _RECONCILE:
                self._reconcile(now)
            elif kind == "machine":
                out += self.machine_dead(now, node_id, self._machines[node_id].incarnation)
            else:
                out.append(self._job_lost(kind.removeprefix("job "), node_id))
        return out

    def _job_lost(self, job: JobId, node_id: NodeId) -> JobLost:
        doubt = self._jobs[job][node_id]
        assert not doubt.dead
        doubt.dead, doubt.suspicion = True, None
        self.counts["job_losses"] += 1
        return JobLost(job, node_id, doubt.incarnation)

    def _reconcile(self, now: float) -> None:
        """No job keeps its own opinion of a machine that is dead."""
        for job in list(self._jobs):
            for node_id in list(self._jobs.get(job, {})):
                if not self.alive(node_id):
                    self._drop(job, node_id)
                    self.counts["reconciled"] += 1
        self._arm(now)

    # --- inside -------------------------------------------------------------------------------

    def _arm(self, now: float) -> None:
        if self._total and _RECONCILE not in self._deadlines:
            self._deadlines.set(_RECONCILE, now + self._config.reconcile_s)

    def _room(self, job: JobId) -> bool:
        return (
            len(self._jobs.get(job, {})) < self._config.job_suspicions_max
            and self._total < self._config.suspicions_max
        )

    def _suspicion(
        self, now: float, incarnation: int, accuser: NodeId, min_s: float, max_s: float
    ) -> Suspicion:
        shortest_s = min(max_s, min_s * self._health())
        return Suspicion(
            now, incarnation, (accuser,), self._config.confirmations, shortest_s, max_s
        )

    def _confirm(
        self, key: tuple[str, str], doubt: _Doubt | None, incarnation: int, accuser: NodeId
    ) -> bool:
        if doubt is None or doubt.suspicion is None or incarnation != doubt.incarnation:
            return False
        if not doubt.suspicion.confirm(accuser):
            return False
        self._deadlines.set_earlier(key, doubt.suspicion.deadline)
        return True

    def _drop(self, job: JobId, node_id: NodeId) -> bool:
        doubts = self._jobs.get(job)
        if doubts is None or doubts.pop(node_id, None) is None:
            return False
        self._total -= 1
        self._deadlines.cancel((f"job {job}", node_id))
        if not doubts:
            del self._jobs[job]
        return True
