"""`http`: one request, judged by the status of its answer.

Payload: `url`, `method` (GET), `headers` (JSON object), `body`, `expect` ("200-299" or "200,204"),
`timeout_s` (30). No answer, 429 and 5xx are worth another try; any other status is not.

The called service is told the job, its fencing token, its correlation id and, when traces are on,
the trace it is part of.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from hyperscale.errors import BadInput
from hyperscale.scheduler.addresses import plain_url
from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.exchange import ExchangeFailed, exchange
from hyperscale.scheduler.queue.job import Failure
from hyperscale.scheduler.telemetry.hook import NO_TELEMETRY, Telemetry
from hyperscale.scheduler.worker.executors.executor import (
    Broken,
    Done,
    Result,
    Task,
    decoded,
    permanent,
    required,
)
from hyperscale.scheduler.worker.executors.reach import Reach
from hyperscale.workload.secrets import mask_body

TIMEOUT_S: Final = 30.0
EXPECT: Final = "200-299"
LOG_BODY_BYTES: Final = 8 * 1024
CORRELATION_HEADER: Final = "X-Correlation-Id"
TRACE_HEADER: Final = "traceparent"


class HttpExecutor:
    def __init__(self, telemetry: Telemetry = NO_TELEMETRY, reach: Reach | None = None) -> None:
        self._telemetry = telemetry
        self._reach = reach or Reach()

    async def run(self, task: Task) -> Result:
        payload = task.payload
        try:
            url = required(payload, "url")
            headers = decoded(payload, "headers", dict[str, str], {})
            expected = _ranges(payload.get("expect") or EXPECT)
            timeout_s = decoded(payload, "timeout_s", float, TIMEOUT_S)
            if not math.isfinite(timeout_s) or timeout_s <= 0:
                raise InvalidJob("'timeout_s' in the payload must be above 0")
            headers = self._headers(task, headers)
            method = (payload.get("method") or "GET").upper()
            async with asyncio.timeout(timeout_s):
                body = payload.get("body", "").encode()
                answer = await exchange(method, url, headers, body, self._reach.addresses)
        except BadInput as error:
            return permanent(f"{error.message}; {error.hint}" if error.hint else error.message)
        except TimeoutError:
            return Broken(failure=Failure.TRANSIENT, error=f"no answer within {timeout_s:g} s")
        except ExchangeFailed as error:
            return Broken(failure=Failure.TRANSIENT, error=str(error))
        shown = answer.body[:LOG_BODY_BYTES].decode(errors="replace")
        log = mask_body(shown, headers.items())
        if any(low <= answer.status <= high for low, high in expected):
            return Done(exit_code=answer.status, log=log)
        again = answer.status >= 500 or answer.status == 429
        return Broken(
            failure=Failure.ERROR if again else Failure.PERMANENT,
            error=f"{plain_url(url)} answered {answer.status}",
            exit_code=answer.status,
            log=log,
        )

    async def close(self) -> None:
        """Connections end with their request."""

    def _headers(self, task: Task, given: dict[str, str]) -> dict[str, str]:
        """What the payload says of correlation and trace counts; job and token are ours to say."""
        named = {name.lower() for name in given}
        offered = {
            CORRELATION_HEADER: task.correlation_id,
            TRACE_HEADER: self._telemetry.traceparent(task.job_id, task.token, task.tags),
        }
        return {
            **{
                name: value
                for name, value in offered.items()
                if value and name.lower() not in named
            },
            **given,
            "Hyperscale-Job-Id": task.job_id,
            "Hyperscale-Fencing-Token": str(task.token),
        }


def _ranges(text: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for part in text.split(","):
        low, _, high = part.strip().partition("-")
        try:
            found.append((int(low), int(high or low)))
        except ValueError:
            raise InvalidJob(f"'expect' in the payload: {text!r} is not like 200-299") from None
    return found
