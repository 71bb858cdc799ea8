"""The leader's decisions about jobs: events and time in, effects out.

Every manager applies the same records to the same replicated state; only the leader decides. A
decision is a record, handed out as `Append`; what follows from it happens when the log brings it
back. Lost leadership costs nothing but this leader's own state: the next leader has the replicated
state, hears its workers, and goes on.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs import coverage as covered
from hyperscale.cluster.jobs import (
    ending,
    losing,
    placing,
    reconcile,
    steering,
    submitting,
    workers,
)
from hyperscale.cluster.jobs.effects import Effect
from hyperscale.cluster.jobs.inputs import (
    Accepted,
    CpuUse,
    Ended,
    Grant,
    Heard,
    LossFact,
    PartReport,
    Rejected,
    Steering,
    Unwanted,
)
from hyperscale.cluster.jobs.leader_state import LeaderState, Refusal
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.pool import Pool
from hyperscale.cluster.jobs.records import (
    Action,
    Extended,
    JobRecord,
    JobStatus,
    Judged,
    Part,
    Placement,
    Submitted,
)
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.cluster.jobs.state import Condense, JobState, ReplicatedState

Effects = list[Effect]


class Jobs:
    def __init__(
        self, settings: JobSettings, dice: random.Random, condense: Condense | None = None
    ) -> None:
        self.settings = settings
        self._leader = LeaderState(settings, dice, condense)
        self._now = 0.0
        self.took_effect = False
        """Whether the last record that was applied changed anything: one may come twice."""

    @property
    def leading(self) -> bool:
        return self._leader.leading

    @property
    def term(self) -> int:
        return self._leader.term

    @property
    def replicated(self) -> ReplicatedState:
        return self._leader.replicated

    @property
    def pool(self) -> Pool:
        return self._leader.pool

    # -- the log ---------------------------------------------------------------------------------

    def lead(self, now: float, term: int) -> Effects:
        """After the log is recovered and everything in it was applied."""
        reconcile.take_over(self._leader, now, term)
        return self._settle(now)

    def follow(self, now: float) -> Effects:
        reconcile.stand_back(self._leader)
        self._leader.led.look(now, led=False)
        return self._settle(now)

    def look(self, now: float, led: bool) -> None:
        """Now and then, by those who do not lead: is there somebody who does?"""
        self._leader.led.look(now, led)

    def applied(self, now: float, record: JobRecord) -> Effects:
        """Each committed record, in the order of the log, on every manager."""
        self.took_effect = reconcile.applied(self._leader, now, record)
        return self._settle(now)

    def append_failed(self, now: float, record: JobRecord, maybe_written: bool) -> Effects:
        if self._leader.leading:
            reconcile.failed(self._leader, now, record, maybe_written)
        return self._settle(now)

    def forget(self, now: float, job_id: str) -> Effects:
        reconcile.forget(self._leader, now, job_id)
        return self._settle(now)

    # -- clients ---------------------------------------------------------------------------------

    def submit(self, now: float, record: Submitted) -> tuple[Accepted | Rejected, Effects]:
        answer = submitting.submit(self._leader, now, record)
        return answer, self._settle(now)

    def steer(
        self,
        now: float,
        job_id: str,
        action: Action,
        amount: int = 0,
        by: str = "",
        reason: str = "",
        workflow: str = "",
    ) -> tuple[Steering, Effects]:
        """To be told to the client when its record, if there is one, is applied."""
        if not self._leader.leading:
            return Steering(False, error="this manager does not lead"), []
        answer = steering.steer(self._leader, now, job_id, action, amount, by, reason, workflow)
        return answer, self._settle(now)

    def results_made(
        self, now: float, job_id: str, status: JobStatus, reason: str, results: bytes
    ) -> Effects:
        if self._leader.leading:
            ending.results_made(self._leader, now, job_id, status, reason, results)
        return self._settle(now)

    def judged(
        self,
        now: float,
        job_id: str,
        workflow: str,
        number: int,
        bad_since_s: float | None,
        crossing: float | None,
    ) -> Effects:
        """How a threshold stands, for leaders to come."""
        job = self._leader.replicated.jobs.get(job_id)
        if self._leader.leading and job is not None and not job.is_over:
            age = self._leader.age_s(now, job_id)
            record = Judged(job_id, age, workflow, number, bad_since_s, crossing)
            self._leader.append(now, record)
        return self._settle(now)

    # -- workers ---------------------------------------------------------------------------------

    def worker_registered(
        self,
        now: float,
        worker: str,
        incarnation: int,
        total: int,
        free: int,
        reports: Sequence[PartReport],
        draining: bool = False,
        life: int = 0,
        cut_off: bool = False,
    ) -> tuple[Unwanted, Effects]:
        """`reports` names everything the worker holds; `life` is its incarnation when its process
        began, if it told so. One that is `cut_off` has had no answer for long: this may be the
        first that reaches it, or another that does not."""
        leader = self._leader
        known = None
        if leader.leading:
            named = {(report.part, report.fence) for report in reports}
            known = leader.pool.register(
                now, worker, incarnation, total, free, draining, named, life
            )
        if known is None:
            return (), []
        known.deaf = cut_off
        unwanted = workers.read_reports(leader, now, known, reports)
        untold = {report.part.job_id for report in reports if report.state == "ended"}
        leader.heard_of(now, worker, untold)
        workers.compare(leader, now, known, reports)
        workers.check_worker(leader, now, known)
        leader.placement_due = True
        return unwanted, self._settle(now)

    def worker_heard(
        self,
        now: float,
        worker: str,
        incarnation: int,
        free: int,
        reports: Sequence[PartReport],
        draining: bool = False,
        degraded: bool = False,
        cpu: CpuUse | None = None,
    ) -> tuple[Unwanted, Effects] | None:
        """None for a worker that must register first. `reports` may be any of its parts."""
        leader = self._leader
        known = leader.pool.workers.get(worker) if leader.leading else None
        if known is None or not known.registered or known.incarnation != incarnation:
            return None
        was_frozen = known.pace.frozen_s >= self.settings.stalled_s
        was_lost = leader.pool.is_lost(now, known)
        if leader.pool.heard(now, known, free, draining, degraded, cpu) or was_lost:
            leader.placement_due = True
        unwanted = workers.read_reports(leader, now, known, reports)
        if was_lost or was_frozen or known.pace.frozen_s >= self.settings.stalled_s:
            workers.check_worker(leader, now, known)
        return unwanted, self._settle(now)

    def worker_answered(self, now: float, worker: str) -> None:
        """A report with nothing new in it: for its worker the answer is contact all the same."""
        known = self._leader.pool.workers.get(worker)
        if known is not None:
            known.heard_at = now

    def worker_holds(
        self, now: float, worker: str, incarnation: int, reports: Sequence[PartReport]
    ) -> tuple[Unwanted, Effects]:
        """All it holds, because we asked. That we reach it is no contact for it."""
        leader = self._leader
        known = leader.pool.workers.get(worker) if leader.leading else None
        if known is None or not known.registered or known.incarnation != incarnation:
            return (), []
        unwanted = workers.read_reports(leader, now, known, reports)
        workers.compare(leader, now, known, reports)
        workers.check_worker(leader, now, known)
        return unwanted, self._settle(now)

    def worker_dead(self, now: float, worker: str, incarnation: int) -> Effects:
        """The membership protocol has given it up."""
        leader = self._leader
        known = leader.pool.workers.get(worker) if leader.leading else None
        if known is not None and known.incarnation <= incarnation and known.dead_at is None:
            known.dead_at = now
            workers.check_worker(leader, now, known)
        return self._settle(now)

    def worker_alive(self, now: float, worker: str, incarnation: int) -> Effects:
        """The membership protocol hears it, whatever was said before. Whether it can be commanded
        is another question."""
        leader = self._leader
        known = leader.pool.workers.get(worker) if leader.leading else None
        if known is not None and known.incarnation == incarnation and known.dead_at is not None:
            known.dead_at = None
            workers.check_worker(leader, now, known)
            leader.placement_due = True
        return self._settle(now)

    def worker_reached(self, now: float, worker: str) -> Effects:
        """It has answered a command."""
        leader = self._leader
        known = leader.pool.workers.get(worker) if leader.leading else None
        if known is None or known.unreached_since is None:
            return []
        known.unreached_since = known.refused_at = None
        workers.check_worker(leader, now, known)
        leader.placement_due = True
        return self._settle(now)

    def worker_unreached(self, now: float, worker: str, refused: bool) -> Effects:
        """No connection to it could be made. `refused`: nobody listens there any more."""
        leader = self._leader
        known = leader.pool.workers.get(worker) if leader.leading else None
        if known is None:
            return []
        if known.unreached_since is None:
            known.unreached_since = now
        if not refused:
            known.refused_at = None
        elif known.refused_at is None:
            known.refused_at = now
        workers.check_worker(leader, now, known)
        return self._settle(now)

    def worker_left(self, now: float, worker: str, incarnation: int) -> Effects:
        leader = self._leader
        known = leader.pool.workers.get(worker) if leader.leading else None
        if known is not None and known.incarnation <= incarnation:
            workers.left(leader, now, known)
        return self._settle(now)

    def dispatch_answered(
        self,
        now: float,
        placement: Placement,
        accepted: bool,
        no_room: bool = False,
        reason: str = "",
        free: int | None = None,
        for_good: bool = False,
    ) -> Effects:
        """`for_good`: no worker could be sent it."""
        if self._leader.leading:
            refusal = None if accepted else Refusal(no_room, reason or "refused", for_good)
            placing.answered(self._leader, now, placement, refusal, free)
        return self._settle(now)

    def prepared(
        self, now: float, part: Part, fence: Fence, worker: str, context: bytes
    ) -> tuple[bool, Effects]:
        """Settled for any leader: a new one hears of it when the worker registers."""
        if not self._leader.leading:
            return False, []
        ending.prepared(self._leader, part, fence, context)
        return True, self._settle(now)

    def ended(self, now: float, end: Ended) -> tuple[bool, Effects]:
        """Not settled now: `Acknowledge` follows when the worker may forget it."""
        if not self._leader.leading:
            return False, []
        settled = ending.ended(self._leader, now, end)
        return settled, self._settle(now)

    def torn_down(
        self,
        now: float,
        part: Part,
        fence: Fence,
        worker: str,
        warning: str = "",
        requests: int = 0,
    ) -> tuple[bool, Effects]:
        if not self._leader.leading:
            return False, []
        settled = ending.torn_down(self._leader, now, part, fence, warning, requests)
        return settled, self._settle(now)

    def part_lost(self, now: float, placement: Placement, heard: Heard) -> Effects:
        if self._leader.leading:
            losing.collected(self._leader, now, placement, heard)
        return self._settle(now)

    def extension(
        self, now: float, worker: str, reason: str, progress: float
    ) -> tuple[Grant, Effects]:
        leader = self._leader
        known = leader.pool.workers.get(worker) if leader.leading else None
        if known is None or not known.registered:
            return Grant(False, denial="unknown worker: register first"), []
        grant = known.extensions.ask(now, progress, suspect=known.dead_at is not None)
        for job_id in sorted({p.part.job_id for p in leader.placements_on(worker)}):
            leader.log(job_id, "extension", worker=worker, reason=reason, granted=grant.granted)
            if grant.granted:
                age = leader.age_s(now, job_id)
                leader.append(now, Extended(job_id, age, worker, grant.seconds))
        workers.check_worker(leader, now, known)
        return grant, self._settle(now)

    # -- time ------------------------------------------------------------------------------------

    def tick(self, now: float) -> Effects:
        reconcile.due(self._leader, now)
        return self._settle(now)

    def next_deadline(self) -> float | None:
        return self._leader.deadlines.next()

    def _settle(self, now: float) -> Effects:
        self._now = now
        self._leader.led.look(now)
        reconcile.settle(self._leader, now)
        return self._leader.drain()

    # -- views -----------------------------------------------------------------------------------

    def job(self, job_id: str) -> JobState | None:
        return self._leader.replicated.jobs.get(job_id)

    def job_of_key(self, key: str) -> JobState | None:
        return self._leader.replicated.jobs.get(self._leader.replicated.keys.get(key, ""))

    def jobs(self) -> list[JobState]:
        return list(self._leader.replicated.jobs.values())

    def age_s(self, now: float, job_id: str) -> float:
        return self._leader.age_s(now, job_id)

    def load_s(self, now: float, job_id: str, workflow: str) -> float:
        job = self._leader.replicated.jobs.get(job_id)
        known = job.workflows.get(workflow) if job else None
        return 0.0 if job is None or known is None else self._leader.load_s(now, job, known)

    def position(self, job_id: str) -> int:
        return self._leader.queue.position(job_id)

    def waiting_for(self, job_id: str) -> str:
        entry = self._leader.queue.get(job_id)
        return "" if entry is None else entry.reason

    def coverage(self, job_id: str) -> float:
        job = self._leader.replicated.jobs.get(job_id)
        return 1.0 if job is None else covered.coverage(job)

    def losses(self, job_id: str) -> list[LossFact]:
        job = self._leader.replicated.jobs.get(job_id)
        return [] if job is None else covered.losses(job)

    def lost_sentences(self, job_id: str) -> list[str]:
        job = self._leader.replicated.jobs.get(job_id)
        return [] if job is None else covered.sentences(job)

    def holder(self, part: Part, fence: Fence) -> str:
        """The worker that this attempt of a part is or was placed on; empty: nobody knows."""
        return self._leader.replicated.holder(part, fence)

    def placed_on(self) -> set[str]:
        return set(self._leader.replicated.by_worker)

    def routing(self, worker: str) -> str:
        """As of the last event."""
        known = self._leader.pool.workers.get(worker)
        if known is None:
            return "unknown"
        return self._leader.pool.signals(self._now, known).routing.value

    def counts(self) -> dict[str, int]:
        """Workflows by state; they sum to the workflows of the jobs that are not over."""
        found = Counter(
            workflow.lifecycle.state.value
            for job in self._leader.replicated.jobs.values()
            if not job.is_over
            for workflow in job.workflows.values()
        )
        return {state.value: found[state.value] for state in LifecycleState}

    @property
    def transitions_refused(self) -> int:
        """Decisions on a state that a workflow was not in any more."""
        return self._leader.transitions_refused

    def transitions(self) -> Counter[tuple[str, str]]:
        """Since this manager started."""
        return Counter({(a.value, b.value): n for (a, b), n in self._leader.transitions.items()})

    def time_checks(self) -> int:
        """How often a job was looked at for being past its time or stuck."""
        return self._leader.time_checks

    def keep_s(self, status: JobStatus) -> float:
        return reconcile.keep_s(self.settings, status)
