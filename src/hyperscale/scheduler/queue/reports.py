"""What a worker says about a job it holds, and how it is answered.

Every report carries the worker's id and the fencing token of its claim.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from hyperscale.scheduler.queue.job import Failure, Job

LOG_CHARS_MAX: Final = 64 * 1024
ERROR_CHARS_MAX: Final = 4096
LEASE_S_MAX: Final = 3600.0

LeaseSeconds = Annotated[float, Meta(gt=0, le=LEASE_S_MAX)]
"""A worker that is lost is noticed within the hour; an instant beyond the calendar is not kept."""
DelaySeconds = Annotated[float, Meta(ge=0, le=LEASE_S_MAX)]
ExitCode = Annotated[int, Meta(ge=-(2**31), le=2**32 - 1)]
"""A signal's number below 0, a status of Windows without its sign."""


class _Report(msgspec.Struct, frozen=True, kw_only=True, tag_field="report", gc=False):
    job_id: str
    worker: str
    token: int


class Started(_Report, frozen=True, tag="started"):
    lease_s: LeaseSeconds


class Beat(_Report, frozen=True, tag="beat"):
    """Still alive; with another `progress` (0 to 1), or `moved`, also moving."""

    lease_s: LeaseSeconds
    progress: float | None = None
    moved: bool = False
    """Since the heartbeat before: it wrote something, or sent requests."""


FIGURES_MAX: Final = 16
Figures = Annotated[dict[Annotated[str, Meta(max_length=40)], float], Meta(max_length=FIGURES_MAX)]
"""What the job measured, as its executor names it: a load test tells its rate and latencies."""


REPORT_BYTES_MAX: Final = 256 * 1024
ResultBytes = Annotated[bytes, Meta(max_length=REPORT_BYTES_MAX)]
"""Of a load test, compressed."""


class Completed(_Report, frozen=True, tag="completed"):
    exit_code: ExitCode | None = None
    log: str = ""
    figures: Figures = {}
    results: ResultBytes = b""


class Failed(_Report, frozen=True, tag="failed"):
    failure: Failure
    error: str
    exit_code: ExitCode | None = None
    log: str = ""
    figures: Figures = {}
    results: ResultBytes = b""


class Released(_Report, frozen=True, tag="released"):
    """Given back unharmed, free of charge: the worker stops or cannot take it. With a `delay_s`
    it was not even begun, and shall wait so long."""

    delay_s: DelaySeconds = 0.0
    reason: str = ""


Report = Started | Beat | Completed | Failed | Released


class Refusal(StrEnum):
    """In the order they are looked for; the first that holds is told."""

    UNKNOWN_JOB = "unknown job"
    NOT_HELD = "job is not claimed or executing"
    OTHER_WORKER = "job belongs to another worker"
    STALE_TOKEN = "stale fencing token"
    NOT_STARTED = "job was not started"


class Accepted(msgspec.Struct, frozen=True, gc=False):
    job: Job
    repeated: bool = False
    """The same report had been accepted before; nothing changed."""

    @property
    def stop(self) -> bool:
        """Somebody asked to cancel: the worker must stop it and report CANCELLED."""
        return self.job.cancel_requested and self.job.held


class Refused(msgspec.Struct, frozen=True):
    """Nothing changed. The worker must drop the job: it is not its own (any more)."""

    job_id: str
    reason: Refusal


Answer = Accepted | Refused
