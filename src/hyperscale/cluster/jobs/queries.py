"""What may be asked of the jobs core at any time. Nothing here changes anything."""

from __future__ import annotations

from collections import Counter

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs import coverage as covered
from hyperscale.cluster.jobs.ending import is_prepared
from hyperscale.cluster.jobs.leader_state import LeaderState
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.pool import Pool
from hyperscale.cluster.jobs.records import JobStatus, Part
from hyperscale.cluster.jobs.settings import JobSettings, keep_s
from hyperscale.cluster.jobs.state import JobState, ReplicatedState


class JobQueries:
    def __init__(self, leader: LeaderState) -> None:
        self._leader = leader

    @property
    def settings(self) -> JobSettings:
        return self._leader.settings

    @property
    def term(self) -> int:
        return self._leader.term

    @property
    def replicated(self) -> ReplicatedState:
        return self._leader.replicated

    @property
    def pool(self) -> Pool:
        return self._leader.pool

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

    def queued(self) -> int:
        """Jobs of which nothing was ever dispatched."""
        return len(self._leader.queue.fresh())

    def waiting_for(self, job_id: str) -> str:
        entry = self._leader.queue.get(job_id)
        return "" if entry is None else entry.reason

    def coverage(self, job_id: str) -> float:
        job = self._leader.replicated.jobs.get(job_id)
        return 1.0 if job is None else covered.coverage(job)

    def losses(self, job_id: str) -> list[covered.LossFact]:
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
        return self._leader.pool.signals(self._leader.decided_at, known).routing.value

    def is_prepared(self, job: JobState) -> bool:
        """It is held, and ready to begin. Only a leader knows."""
        return job.is_held and is_prepared(job, self._leader.watches[job.job_id])

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
        return keep_s(self._leader.settings, status)
