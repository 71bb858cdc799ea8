"""A job's way as spans: submit, claim, run, complete, each the child of the one before.

Pure: records in, plain spans out. Every id follows from the job and its fencing token, so that
processes which never speak to each other, and a repeated call, tell of the same spans. A caller's
W3C `traceparent` travels as a tag of that name and makes the job a part of the caller's trace.

A share of the jobs is told as it happens. An attempt that fails is told whole at its end, whatever
the share; so are others while the share is raised (see `sampling`).
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.reports import Completed, Failed
from hyperscale.scheduler.telemetry.hook import TraceClass

TRACEPARENT: Final = "traceparent"
CLASS: Final = "scheduler.class"
REMEMBERED_MAX: Final = 10_000
"""Starts of attempts that this process saw and that have not ended."""
_HEADER: Final = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED: Final = 0x01


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    name: str
    trace_id: int
    span_id: int
    parent_id: int | None
    start: Instant
    end: Instant
    attributes: Mapping[str, str | int]
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Origin:
    trace_id: int
    parent_id: int | None
    sampled: bool | None
    """None: the caller did not say."""


def is_traceparent(text: str) -> bool:
    return _HEADER.fullmatch(text) is not None


class Spans:
    def __init__(self, share: float) -> None:
        """A job that comes with a sampled traceparent is told whatever the share."""
        self._share = share
        self._begun: OrderedDict[tuple[str, int], Job] = OrderedDict()

    def submitted(self, job: Job, begun: Instant, ended: Instant) -> list[Span]:
        return [_submit(job, begun, ended)] if self._wanted(job) else []

    def claimed(self, job: Job) -> list[Span]:
        self._remember(job)
        return [_claim(job)] if self._wanted(job) else []

    def started(self, job: Job) -> None:
        self._remember(job)

    def ended(
        self,
        job: Job,
        report: Completed | Failed,
        begun: Instant,
        ended: Instant,
        raised: float = 0.0,
    ) -> list[Span]:
        """`begun` to `ended` is the time the report took; `job` is as it is behind it. `raised` is
        the share now."""
        held = self._begun.pop((job.id, report.token), None) or job
        error = report.error or str(report.failure) if isinstance(report, Failed) else ""
        run = _run(held, report, begun, error)
        spans = [run, _after(run, "complete", job, report, begun, ended)]
        if self._wanted(job):
            return spans
        if not error and not _within(_origin(job.id, job.spec.tags), raised):
            return []
        return [_submit(job, job.created_at, job.created_at), _claim(held, report.token), *spans]

    def lost(self, job: Job) -> list[Span]:
        """Taken from a worker that was silent; who held it is no longer in the record."""
        return [
            Span(
                name="lost",
                trace_id=_trace_id(job),
                span_id=_span_id(job.id, job.token, "lost"),
                parent_id=_span_id(job.id, 0, "submit"),
                start=job.updated_at,
                end=job.updated_at,
                attributes=_attributes(job),
                error=job.error or "its lease ended",
            )
        ]

    def traceparent(self, job_id: str, token: int, tags: Mapping[str, str]) -> str:
        """For what the run calls."""
        origin = _origin(job_id, tags)
        flags = _SAMPLED if _within(origin, self._share) else 0
        return f"00-{origin.trace_id:032x}-{_span_id(job_id, token, 'run'):016x}-{flags:02x}"

    def _wanted(self, job: Job) -> bool:
        return _within(_origin(job.id, job.spec.tags), self._share)

    def _remember(self, job: Job) -> None:
        key = (job.id, job.token)
        self._begun[key] = job
        self._begun.move_to_end(key)
        if len(self._begun) > REMEMBERED_MAX:
            self._begun.popitem(last=False)


def _within(origin: _Origin, share: float) -> bool:
    if origin.sampled is not None:
        return origin.sampled
    return (origin.trace_id & (1 << 64) - 1) < share * (1 << 64)


def _origin(job_id: str, tags: Mapping[str, str]) -> _Origin:
    said = _HEADER.fullmatch(tags.get(TRACEPARENT, ""))
    if said is None:
        digest = hashlib.sha256(job_id.encode()).digest()
        return _Origin(int.from_bytes(digest[:16]) or 1, None, None)
    return _Origin(int(said[1], 16), int(said[2], 16), bool(int(said[3], 16) & _SAMPLED))


def _span_id(job_id: str, token: int, name: str) -> int:
    digest = hashlib.sha256(f"{job_id} {token} {name}".encode()).digest()
    return int.from_bytes(digest[:8]) or 1


def _submit(job: Job, begun: Instant, ended: Instant) -> Span:
    origin = _origin(job.id, job.spec.tags)
    return Span(
        name="submit",
        trace_id=origin.trace_id,
        span_id=_span_id(job.id, 0, "submit"),
        parent_id=origin.parent_id,
        start=begun,
        end=ended,
        attributes=_attributes(job),
    )


def _claim(job: Job, token: int | None = None) -> Span:
    """From due to claimed: the time in the queue."""
    token = job.token if token is None else token
    claimed_at = job.updated_at if job.claimed_at is None else job.claimed_at
    return Span(
        name="claim",
        trace_id=_trace_id(job),
        span_id=_span_id(job.id, token, "claim"),
        parent_id=_span_id(job.id, 0, "submit"),
        start=min(job.due_at, claimed_at),
        end=claimed_at,
        attributes=_attributes(job) | {"job.worker": job.worker, "job.fencing_token": token},
    )


def _run(held: Job, report: Completed | Failed, ended: Instant, error: str) -> Span:
    begun = held.started_at if held.started_at is not None else held.claimed_at
    return Span(
        name="run",
        trace_id=_trace_id(held),
        span_id=_span_id(held.id, report.token, "run"),
        parent_id=_span_id(held.id, report.token, "claim"),
        start=ended if begun is None else begun,
        end=ended,
        attributes=_attributes(held)
        | {"job.worker": report.worker, "job.fencing_token": report.token},
        error=error,
    )


def _after(
    run: Span, name: str, job: Job, report: Completed | Failed, begun: Instant, ended: Instant
) -> Span:
    return Span(
        name=name,
        trace_id=run.trace_id,
        span_id=_span_id(job.id, report.token, name),
        parent_id=run.span_id,
        start=begun,
        end=ended,
        attributes=_attributes(job) | {"job.state": str(job.state)},
    )


def _trace_id(job: Job) -> int:
    return _origin(job.id, job.spec.tags).trace_id


def _attributes(job: Job) -> dict[str, str | int]:
    return {
        CLASS: str(TraceClass.JOB),
        "job.id": job.id,
        "job.name": job.spec.name,
        "job.kind": job.spec.kind,
        "job.schedule": job.schedule_id,
        "job.retries": job.retries,
        "correlation_id": job.correlation_id or job.id,
    }
