"""What listings tell of jobs that are over, read from their results."""

from __future__ import annotations

import msgspec


class _Step(msgspec.Struct):
    count: int = 0
    failed: int = 0


class _Workflow(msgspec.Struct):
    name: str
    elapsed_s: float = 0.0
    steps: list[_Step] = []

    @property
    def numbers(self) -> tuple[int, int, float]:
        """Requests, those that failed, and seconds of load."""
        steps = self.steps
        return sum(s.count for s in steps), sum(s.failed for s in steps), self.elapsed_s


class _Datacenter(msgspec.Struct):
    name: str
    requests: int = 0
    failed: int = 0


class Ending(msgspec.Struct):
    """What a listing tells of the results of a job that is over."""

    exit_code: int = 1
    coverage: float = 1.0
    lost: list[str] = []
    workflows: list[_Workflow] = []
    datacenters: list[_Datacenter] = []

    def numbers(self, workflow: str) -> tuple[int, int, float]:
        found = (one.numbers for one in self.workflows if one.name == workflow)
        return next(found, (0, 0, 0.0))


_endings = msgspec.json.Decoder(Ending)


class Endings:
    """Of jobs that are over, read once: results weigh megabytes, listings are asked for often."""

    def __init__(self) -> None:
        self._read: dict[str, Ending] = {}

    def of(self, job_id: str, results: bytes | None) -> Ending | None:
        """None: it is not over, or ended without results."""
        if not results:
            return None
        if job_id not in self._read:
            self._read[job_id] = _endings.decode(results)
        return self._read[job_id]

    def forget(self, job_id: str) -> None:
        self._read.pop(job_id, None)
