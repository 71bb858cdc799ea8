"""What the store and the election tell of what they do, and what this base class does with it:
nothing.

`recording.Recording` measures, logs and traces. The rooms that are seen know only this class, so
none of them depends on a library for metrics or traces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hyperscale.scheduler.errors import SchedulerError
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.reports import Answer, Report
from hyperscale.scheduler.schedules.schedule import Fired
from hyperscale.scheduler.store.types import Submission, Submitted


class TraceClass(StrEnum):
    """How much of something is traced depends on its class; `sampling` has the shares."""

    JOB = "job"
    WORKERS = "workers"
    QUEUE = "queue"
    COORDINATION = "coordination"
    LOOKS = "looks"


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One kind of call. `name` is a label of the metrics and the name of a span: dashboards ask for
    it, so it outlives the method that makes the call."""

    name: str
    traced: TraceClass = TraceClass.LOOKS
    component: str = "store"
    coordinates: bool = False
    """Takes or keeps the lead: counted apart from the calls that move jobs."""


class Telemetry:
    def called(
        self, call: Call, took_s: float, trouble: BaseException | None, service: str = "store"
    ) -> None:
        """A call has just ended; `service` is what kind of election answered it."""

    def submitted(
        self, submission: Submission, now: Instant, result: Submitted, took_s: float
    ) -> None: ...

    def fired(
        self, now: Instant, results: Sequence[Fired | SchedulerError], took_s: float
    ) -> None: ...

    def claimed(self, jobs: Sequence[Job]) -> None: ...

    def reported(
        self, reports: Sequence[Report], now: Instant, answers: Sequence[Answer], took_s: float
    ) -> None: ...

    def lost(self, jobs: Sequence[Job]) -> None:
        """Taken from workers whose leases ended, or who are dead."""

    def took_lead(self, epoch: int) -> None: ...

    def traceparent(self, job_id: str, token: int, tags: Mapping[str, str]) -> str:
        """For what a job calls (W3C); empty: it is not traced."""
        return ""


NO_TELEMETRY: Final = Telemetry()
