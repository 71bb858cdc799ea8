"""A sampled run of a step as a span, under an id that the target was told."""

from __future__ import annotations

import msgspec


class Span(msgspec.Struct, frozen=True, kw_only=True):
    trace_id: str  # 32 hexadecimal digits
    span_id: str  # 16 of them
    workflow: str
    step: str
    start_ns: int  # since 1970
    end_ns: int
    status: int = 0  # of the response that the step returned
    error: str = ""  # why the step failed
