"""One event of each kind, and short ways to write a job's life."""

from __future__ import annotations

from hyperscale.cluster.clocks import Stamp
from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.jobs import (
    JobAccepted,
    JobCancellationAcked,
    JobCancellationRequested,
    JobCompleted,
    JobCreated,
    JobEvent,
    JobFailed,
    JobProgressReported,
    JobTimedOut,
)

JOB = "use1-1704931200000-gate42-00001"
FENCE = Fence(7, 2, 1)


def at(wall_ms: int, counter: int = 0) -> Stamp:
    return Stamp(wall_ms, counter, "gate42")


SAMPLES: dict[str, JobEvent] = {
    "JOB_CREATED": JobCreated(
        JOB, at(1), FENCE, b"\x00spec\xff", ("us-east", "eu-west"), "host:17:42:0123456789abcdef"
    ),
    "JOB_ACCEPTED": JobAccepted(JOB, at(2), FENCE, "us-east", 12),
    "JOB_PROGRESS_REPORTED": JobProgressReported(JOB, at(3), FENCE, "us-east", 1_000_000, 17),
    "JOB_CANCELLATION_REQUESTED": JobCancellationRequested(JOB, at(4), FENCE, "too slow", "ada"),
    "JOB_CANCELLATION_ACKED": JobCancellationAcked(JOB, at(5), FENCE, "us-east", 3),
    "JOB_COMPLETED": JobCompleted(JOB, at(9), FENCE, "cancelled", b"\x80metrics"),
    "JOB_FAILED": JobFailed(JOB, at(6), FENCE, "no workers left", "eu-west"),
    "JOB_TIMED_OUT": JobTimedOut(JOB, at(7), FENCE, "stuck", at(3)),
}


class Life:
    """Events of one job, each later than the one before."""

    def __init__(self, job_id: str = JOB, dcs: tuple[str, ...] = ("east", "west")) -> None:
        self.job_id = job_id
        self.dcs = dcs
        self.fence = Fence(1)
        self._ms = 0

    def stamp(self) -> Stamp:
        self._ms += 10
        return at(self._ms)

    def created(self, key: str = "") -> JobCreated:
        return JobCreated(self.job_id, self.stamp(), self.fence, b"spec", self.dcs, key)

    def accepted(self, dc_id: str = "east", workers: int = 4) -> JobAccepted:
        return JobAccepted(self.job_id, self.stamp(), self.fence, dc_id, workers)

    def progress(self, completed: int, failed: int = 0, dc_id: str = "east") -> JobProgressReported:
        stamp = self.stamp()
        return JobProgressReported(self.job_id, stamp, self.fence, dc_id, completed, failed)

    def cancel(self, reason: str = "enough", who: str = "ada") -> JobCancellationRequested:
        return JobCancellationRequested(self.job_id, self.stamp(), self.fence, reason, who)

    def cancelled(self, dc_id: str = "east", workflows: int = 2) -> JobCancellationAcked:
        return JobCancellationAcked(self.job_id, self.stamp(), self.fence, dc_id, workflows)

    def failed(self, error: str = "broken", dc_id: str = "") -> JobFailed:
        return JobFailed(self.job_id, self.stamp(), self.fence, error, dc_id)

    def timed_out(self, kind: str = "stuck") -> JobTimedOut:
        return JobTimedOut(self.job_id, self.stamp(), self.fence, kind)

    def completed(self, status: str = "passed") -> JobCompleted:
        return JobCompleted(self.job_id, self.stamp(), self.fence, status, b"metrics")
