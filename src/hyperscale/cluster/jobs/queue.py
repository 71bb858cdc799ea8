"""Jobs that wait for cores: first come, first served, with overtaking that ends.

Smaller jobs may pass one that does not fit, or cores would idle. After a while the first one has
waited long enough and everything that becomes free is kept for it, so the big are not starved by
a stream of the small.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.cluster.invariants import invariant
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.cluster.placement.choice import Ewma


@dataclass(slots=True)
class Waiting:
    arrival: int
    since: float
    fresh: bool  # nothing of the job was ever dispatched
    reason: str = ""
    hopeless_since: float | None = None  # nothing that runs could make room for it


class Queue:
    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings
        self._waiting: dict[str, Waiting] = {}
        self._fresh = 0
        self._left_at: float | None = None
        self._pace = Ewma()

    def __len__(self) -> int:
        return len(self._waiting)

    def want(self, now: float, job_id: str, arrival: int, fresh: bool) -> Waiting:
        entry = self._waiting.get(job_id)
        if entry is None:
            entry = self._waiting[job_id] = Waiting(arrival, now, fresh)
            self._fresh += fresh
        elif entry.fresh != fresh:
            self._fresh += 1 if fresh else -1
            entry.fresh = fresh
        return entry

    def leave(self, now: float, job_id: str) -> None:
        entry = self._waiting.pop(job_id, None)
        if entry is None or not entry.fresh:
            return
        self._fresh -= 1
        invariant(self._fresh >= 0, "a job leaves the queue once")
        if self._left_at is not None:
            self._pace.add(now - self._left_at)
        self._left_at = now

    def get(self, job_id: str) -> Waiting | None:
        return self._waiting.get(job_id)

    def order(self) -> list[str]:
        return sorted(self._waiting, key=lambda job_id: self._waiting[job_id].arrival)

    def fresh(self) -> list[str]:
        """Jobs of which nothing was ever dispatched."""
        return [job_id for job_id, entry in self._waiting.items() if entry.fresh]

    def is_full(self, under_way: int = 0) -> bool:
        return self._fresh + under_way >= self._settings.queue_jobs_max

    def position(self, job_id: str) -> int:
        entry = self._waiting.get(job_id)
        if entry is None or not entry.fresh:
            return 0
        return sum(w.fresh and w.arrival <= entry.arrival for w in self._waiting.values())

    def reserves(self, now: float, job_id: str) -> bool:
        """It did not fit, and has waited long enough that nobody may pass it."""
        entry = self._waiting.get(job_id)
        return entry is not None and now - entry.since >= self._settings.reserve_after_s

    def retry_after_s(self) -> float:
        """How long until a place is likely to be free: as long as jobs took to leave, lately."""
        limits = self._settings
        return min(limits.retry_after_max_s, max(limits.retry_after_min_s, self._pace.value))

    def clear(self) -> None:
        self._waiting.clear()
        self._fresh = 0
        self._left_at = None
