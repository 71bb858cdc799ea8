"""Spans of sampled runs of steps, where somebody asked for them.

Only then is anything in the way of a step: its function is replaced by one that throws dice. What
is sampled sends its `traceparent` with every HTTP request made inside of it.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from functools import wraps
from time import perf_counter, time_ns
from typing import Any

from hyperscale.metrics.spans import Span
from hyperscale.workload.secrets import mask
from hyperscale.workload.trace_context import TRACE_LINE

# Of one generator process. More than a person looks at, and little enough to cost nothing.
SPANS_PER_S_MAX = 100
ERROR_CHARACTERS_MAX = 200

StepCall = Callable[..., Awaitable[Any]]


class Tracer:
    def __init__(self, share: float, workflow: str, ended: Callable[[Span], None]) -> None:
        self._share = share
        self._workflow = workflow
        self._ended = ended
        self._random = random.Random()  # ids must differ where the seed of the run is given
        self._second = 0
        self._sampled = 0

    def _wants(self) -> bool:
        if self._random.random() >= self._share:
            return False
        second = int(perf_counter())
        if second != self._second:
            self._second, self._sampled = second, 0
        self._sampled += 1
        return self._sampled <= SPANS_PER_S_MAX

    def traced(self, step: str, call: StepCall) -> StepCall:
        @wraps(call)
        async def run(*given: Any, **named: Any) -> Any:
            if not self._wants():
                return await call(*given, **named)
            trace_id, span_id = f"{self._id(128):032x}", f"{self._id(64):016x}"
            line = b"traceparent: 00-%b-%b-01\r\n" % (trace_id.encode(), span_id.encode())
            before = TRACE_LINE.set(line)
            start_ns, error, status = time_ns(), "", 0
            try:
                result = await call(*given, **named)
                status = getattr(result, "status", 0)
                error = getattr(result, "error", "")
                return result
            except BaseException as raised:
                error = f"{type(raised).__name__}: {raised}"
                raise
            finally:
                TRACE_LINE.reset(before)
                self._ended(
                    Span(
                        trace_id=trace_id,
                        span_id=span_id,
                        workflow=self._workflow,
                        step=step,
                        start_ns=start_ns,
                        end_ns=time_ns(),
                        status=status if isinstance(status, int) else 0,
                        error=mask(str(error))[:ERROR_CHARACTERS_MAX],
                    )
                )

        return run

    def _id(self, bits: int) -> int:
        """Zero is no id."""
        return self._random.getrandbits(bits) or 1
