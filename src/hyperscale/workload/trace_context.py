"""Under which span a request is made: what its header `traceparent` says (W3C Trace Context)."""

from __future__ import annotations

from contextvars import ContextVar

HEADER = b"\r\ntraceparent: "
# The whole line; empty where the run of the step is not sampled.
TRACE_LINE: ContextVar[bytes] = ContextVar("hyperscale_trace_line", default=b"")
