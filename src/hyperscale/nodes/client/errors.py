"""What a client of a cluster can be told, as types a program can act on."""

from __future__ import annotations

from hyperscale.errors import RunFailed


class NoManagersAvailable(RunFailed):
    """None of the managers answered in time. `maybe_done`: one was reached, and may have done what
    it was asked all the same. `busy`: one of them answered, and asked to be asked later."""

    def __init__(
        self, message: str, hint: str = "", *, maybe_done: bool = False, busy: bool = False
    ) -> None:
        super().__init__(message, hint)
        self.maybe_done = maybe_done
        self.busy = busy


class ReconnectFailed(RunFailed):
    """Contact with the cluster was lost and did not come back. The job itself may well go on.
    `busy` as above."""

    def __init__(self, message: str, hint: str = "", *, busy: bool = False) -> None:
        super().__init__(message, hint)
        self.busy = busy


class UnknownJob(RunFailed):
    """No manager knows the job: it never was, or its retention is over."""


class JobNotAccepted(RunFailed):
    """The cluster understood the submission and said no."""


class JobFailed(RunFailed):
    """The job ended without carrying out its plan."""

    def __init__(self, job_id: str, status: str, reason: str) -> None:
        because = f": {reason}" if reason else ""
        super().__init__(f"job {job_id} ended as {status}{because}")
        self.job_id = job_id
        self.status = status
        self.reason = reason


class JobCancelled(JobFailed):
    """Somebody ended the job."""
