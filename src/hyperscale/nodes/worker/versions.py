"""Which context of each job this worker has seen: an order with an older one is out of date.

Of the jobs it ran last only; an order of a job nobody remembers is taken at its word.
"""

from __future__ import annotations

JOBS_MAX = 1_000


class ContextVersions:
    def __init__(self) -> None:
        self._newest: dict[str, int] = {}

    def is_old(self, job_id: str, version: int) -> bool:
        return version < self._newest.get(job_id, 0)

    def note(self, job_id: str, version: int) -> None:
        self._newest.pop(job_id, None)
        self._newest[job_id] = version
        if len(self._newest) > JOBS_MAX:
            del self._newest[next(iter(self._newest))]
