"""Circuit breakers: a target that keeps failing gets a rest, and its jobs wait for that.

A job runs for seconds or for hours, so its circuit counts failures in a row, whenever they come,
and a success ends the row. A pipeline is told of jobs before they are known to run, so a job has no
ticket of its own: what ends while the circuit is half open is taken as the result of the test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from hyperscale.cluster.overload.circuit import (
    Circuits,
    CircuitSettings,
    CircuitState,
    Ticket,
)
from hyperscale.scheduler.queue.job import Failure
from hyperscale.workload.secrets import mask_body

FAILURES_MAX: Final = 5
REST_S: Final = 30.0
TARGETS_MAX: Final = 1000


_ALWAYS: Final = frozenset({Failure.TRANSIENT, Failure.EXHAUSTED, Failure.TIMEOUT})


class Breakers:
    def __init__(self, failures_max: int = FAILURES_MAX, rest_s: float = REST_S) -> None:
        self._circuits = Circuits(
            CircuitSettings(
                failures_max=failures_max,
                window_s=math.inf,
                open_s=rest_s,
                test_timeout_s=rest_s,
                destinations_max=TARGETS_MAX,
            )
        )
        self._tests: dict[str, Ticket] = {}

    def __len__(self) -> int:
        return len(self._circuits)

    def admits(self, target: str, now_s: float) -> bool:
        """False: turn it away. A half-open circuit lets one through, and another one each time the
        rest goes by without a word of it."""
        if self.is_closed(target):
            return True
        ticket = self._circuits.of(now_s, target).allow(now_s)
        if ticket is not None:
            if len(self._tests) >= TARGETS_MAX:
                self._tests.clear()  # of targets long forgotten; the others are tried again
            self._tests[target] = ticket
        return ticket is not None

    def rest_s(self, target: str, now_s: float) -> float:
        """Seconds until another one is let through."""
        return self._circuits.retry_after_s(now_s, target)

    def ended(self, target: str, ok: bool, now_s: float) -> None:
        test = self._tests.pop(target, None)
        if ok:
            self._circuits.forget(target)
            return
        circuit = self._circuits.of(now_s, target)
        ticket = test or circuit.allow(now_s)
        if ticket is not None:
            circuit.failed(now_s, ticket)

    def is_closed(self, target: str) -> bool:
        return self._circuits.state(target) is CircuitState.CLOSED


def target_of(kind: str, payload: Mapping[str, str]) -> str:
    """What fails together: an address without its query, a callable, a program, a test file; else
    the kind. One broken path says nothing of the others on its host."""
    if kind == "http":
        return f"http {_endpoint(payload.get('url', ''))}"
    for name in ("call", "file", "argv"):
        if name in payload:
            return f"{kind} {_masked(payload[name])}"
    return kind


@lru_cache(maxsize=TARGETS_MAX)
def _endpoint(url: str) -> str:
    """Without user and password; empty for what is no URL, as the executor will say."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return _masked(parts.netloc.rpartition("@")[2] + parts.path)


@lru_cache(maxsize=TARGETS_MAX)
def _masked(text: str) -> str:
    """Remembered, because jobs are many and targets few. Whoever shows it masks it again: a value
    may have become known as a secret since."""
    return mask_body(text)[:200]


def counts(kind: str, failure: Failure) -> bool:
    """Whether it speaks against the target. A callable or program that returns failure may have
    been given a bad job; a server that does has trouble of its own."""
    return failure in _ALWAYS or (kind == "http" and failure is Failure.ERROR)
