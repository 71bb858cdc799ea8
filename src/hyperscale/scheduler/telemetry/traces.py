"""Spans on their way to an OpenTelemetry collector (OTLP over HTTP), in batches, by a thread of the
library's own. A collector that is away costs spans, never jobs: the queue is bounded and drops.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from hyperscale.errors import BadInput
from hyperscale.runtime.logs import logger
from hyperscale.scheduler.errors import (
    AlreadyExists,
    DedupConflict,
    IllegalTransition,
    InvalidJob,
    NotFound,
    VersionConflict,
)
from hyperscale.scheduler.instants import Instant, after
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.reports import Accepted, Completed, Failed, Report, Started
from hyperscale.scheduler.telemetry.hook import Call, TraceClass
from hyperscale.scheduler.telemetry.sampling import Shares
from hyperscale.scheduler.telemetry.spans import CLASS, Span, Spans

SERVICE: Final = "hyperscale-scheduler"
PATH: Final = "/v1/traces"
EXPORT_TIMEOUT_S: Final = 5.0
EVERY_S: Final = 1.0
ANSWERS: Final = (
    AlreadyExists,
    DedupConflict,
    IllegalTransition,
    InvalidJob,
    NotFound,
    VersionConflict,
)
"""Refusals that say what the caller asked for, not that something is broken."""


class Traces:
    def __init__(
        self,
        endpoint: str,
        share: float,
        node: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`share` is that of the jobs. Raises BadInput when the library is missing or the address
        means nothing."""
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(
                f"{endpoint!r} is not the address of a collector", "such as http://127.0.0.1:4318"
            )
        exporter = _library("exporter.otlp.proto.http.trace_exporter")
        self._sdk = _library("sdk.trace")
        self._api = _library("trace")
        _speak_through_our_log()
        address = endpoint if parts.path.strip("/") else endpoint.rstrip("/") + PATH
        self._resource = _library("sdk.resources").Resource.create(
            {"service.name": SERVICE, "service.instance.id": node}
        )
        self._processor = _library("sdk.trace.export").BatchSpanProcessor(
            exporter.OTLPSpanExporter(address, timeout=EXPORT_TIMEOUT_S),
            schedule_delay_millis=EVERY_S * 1000,
        )
        self._spans = Spans(share)
        self._shares = Shares(share)
        self._clock = clock
        self._random = random.Random()

    def close(self) -> None:
        """Sends what is left; blocks for one export at most."""
        self._processor.shutdown()

    def submitted(self, job: Job, now: Instant, took_s: float) -> None:
        self._send(self._spans.submitted(job, now, after(now, took_s)))

    def claimed(self, job: Job) -> None:
        self._send(self._spans.claimed(job))

    def accepted(self, answer: Accepted, report: Report, now: Instant, took_s: float) -> None:
        if isinstance(report, Started):
            self._spans.started(answer.job)
        elif isinstance(report, Completed | Failed):
            clock_s = self._clock()
            self._shares.note(TraceClass.JOB, isinstance(report, Failed), clock_s)
            share = self._shares.of(TraceClass.JOB, clock_s)
            self._send(self._spans.ended(answer.job, report, now, after(now, took_s), share))

    def lost(self, job: Job) -> None:
        self._shares.note(TraceClass.JOB, True, self._clock())
        self._send(self._spans.lost(job))

    def called(self, call: Call, took_s: float, trouble: BaseException | None) -> None:
        kind, clock_s = call.traced, self._clock()
        broken = trouble is not None and not isinstance(trouble, ANSWERS)
        # Cut off: by a timeout, or because the process stops. Not known to have failed.
        failed = broken and not isinstance(trouble, asyncio.CancelledError)
        self._shares.note(kind, failed, clock_s)
        if not failed and self._random.random() >= self._shares.of(kind, clock_s):
            return
        ended = time.time_ns() // 1000
        span = Span(
            name=call.name,
            trace_id=self._random.getrandbits(128) or 1,
            span_id=self._random.getrandbits(64) or 1,
            parent_id=None,
            start=after(ended, -took_s),
            end=ended,
            attributes={CLASS: str(kind)},
            error=f"{type(trouble).__name__}: {trouble}" if broken else "",
        )
        self._send([span])

    def traceparent(self, job_id: str, token: int, tags: Mapping[str, str]) -> str:
        return self._spans.traceparent(job_id, token, tags)

    def _send(self, spans: Sequence[Span]) -> None:
        for span in spans:
            self._processor.on_end(self._readable(span))

    def _readable(self, span: Span) -> Any:
        api = self._api
        flags = api.TraceFlags(api.TraceFlags.SAMPLED)
        parent = None
        if span.parent_id is not None:
            parent = api.SpanContext(span.trace_id, span.parent_id, True, flags)
        code = api.StatusCode.ERROR if span.error else api.StatusCode.UNSET
        return self._sdk.ReadableSpan(
            name=span.name,
            context=api.SpanContext(span.trace_id, span.span_id, False, flags),
            parent=parent,
            resource=self._resource,
            attributes=dict(span.attributes),
            status=api.Status(code, span.error or None),
            start_time=span.start * 1000,
            end_time=span.end * 1000,
        )


def _library(name: str) -> Any:
    """Typed as Any: what mypy says must not depend on whether the extra is installed."""
    try:
        return importlib.import_module(f"opentelemetry.{name}")
    except ModuleNotFoundError as error:
        raise BadInput(
            "traces need the OpenTelemetry library", "install hyperscale-loadtest[otel]"
        ) from error


@asynccontextmanager
async def opened(endpoint: str, share: float, node: str) -> AsyncIterator[Traces | None]:
    """None when no endpoint is configured."""
    if not endpoint:
        yield None
        return
    traces = Traces(endpoint, share, node)
    try:
        yield traces
    finally:
        await asyncio.to_thread(traces.close)


class _ToOurLog(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        logger("scheduler.traces").warning("traces", warning_reason=record.getMessage())


def _speak_through_our_log() -> None:
    library = logging.getLogger("opentelemetry")
    library.propagate = False
    library.handlers = [_ToOurLog(logging.WARNING)]
