"""A job's way as spans: submit, claim, run, complete, each the child of the one before (S-88).

Pure: records in, plain spans out. Every id follows from the job and its fencing token, so that
processes which never speak to each other, and a repeated call, tell of the same spans. A caller's
W3C `traceparent` travels as a tag of that name and makes the job a part of the caller's trace.

A share of the jobs is told as it happens; an attempt that fails is told whole, whatever the share.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hyperscale.scheduler.model.instants import Instant
from hyperscale.scheduler.model.job import Job
from hyperscale.scheduler.model.reports import Completed, Failed

TRACEPARENT: Final = "traceparent"
SHARE_DEFAULT: Final = 0.01
"""S-88. A job that comes with a sampled traceparent is told in any case."""
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
        self, job: Job, report: Completed | Failed, begun: Instant, ended: Instant
    ) -> list[Span]:
        """`begun` to `ended` is the time the report took; `job` is as it is behind it."""
        held = self._begun.pop((job.id, report.token), None) or job
        error = report.error or str(report.failure) if isinstance(report, Failed) else ""
        run = _run(held, report, begun, error)
        spans = [run, _after(run, "complete", job, report, begun, ended)]
        if self._wanted(job):
            return spans
        if not error:
            return []
        return [_submit(job, job.created_at, job.created_at), _claim(held, report.token), *spans]

    def lost(self, job: Job) -> list[Span]:
        """Taken from a worker that was silent; who held it is no longer in the record."""
        return [
            Span(
                name="lost",
                trace_id=_origin(job).trace_id,
                span_id=_span_id(job.id, job.token, "lost"),
                parent_id=_span_id(job.id, 0, "submit"),
                start=job.updated_at,
                end=job.updated_at,
                attributes=_attributes(job),
                error=job.error or "its lease ended",
            )
        ]

    def _wanted(self, job: Job) -> bool:
        origin = _origin(job)
        if origin.sampled is not None:
            return origin.sampled
        return (origin.trace_id & (1 << 64) - 1) < self._share * (1 << 64)

    def _remember(self, job: Job) -> None:
        key = (job.id, job.token)
        self._begun[key] = job
        self._begun.move_to_end(key)
        if len(self._begun) > REMEMBERED_MAX:
            self._begun.popitem(last=False)


def _origin(job: Job) -> _Origin:
    said = _HEADER.fullmatch(job.spec.tags.get(TRACEPARENT, ""))
    if said is None:
        digest = hashlib.sha256(job.id.encode()).digest()
        return _Origin(int.from_bytes(digest[:16]) or 1, None, None)
    return _Origin(int(said[1], 16), int(said[2], 16), bool(int(said[3], 16) & _SAMPLED))


def _span_id(job_id: str, token: int, name: str) -> int:
    digest = hashlib.sha256(f"{job_id} {token} {name}".encode()).digest()
    return int.from_bytes(digest[:8]) or 1


def _submit(job: Job, begun: Instant, ended: Instant) -> Span:
    origin = _origin(job)
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
        trace_id=_origin(job).trace_id,
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
        trace_id=_origin(held).trace_id,
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


def _attributes(job: Job) -> dict[str, str | int]:
    return {
        "job.id": job.id,
        "job.name": job.spec.name,
        "job.kind": job.spec.kind,
        "job.schedule": job.schedule_id,
        "job.retries": job.retries,
        "correlation_id": job.correlation_id or job.id,
    }
