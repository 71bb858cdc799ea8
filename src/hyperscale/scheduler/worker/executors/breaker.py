"""Circuit breakers: a target that keeps failing gets a rest, and its jobs wait for that.

    state      event                                   next
    CLOSED     `failures_max` failures in a row        OPEN, for `rest_s`
    OPEN       `rest_s` are over                       HALF_OPEN
    HALF_OPEN  success of the one job let through      CLOSED
    HALF_OPEN  failure of it                           OPEN, for `rest_s`

Pure: time comes in as an argument. Bounded: the breaker used least recently is forgotten.

Not `cluster.overload.circuit`, which counts failures within seconds and takes a result only with
the ticket of its request. Jobs run for seconds or for hours, so no window fits them: what counts is
failures in a row, whenever they end. And a pipeline is told of jobs before they are known to run,
so there is no moment at which each could be given a ticket.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from hyperscale.scheduler.queue.job import Failure
from hyperscale.workload.secrets import mask_body

FAILURES_MAX: Final = 5
REST_S: Final = 30.0
TARGETS_MAX: Final = 1000


_ALWAYS: Final = frozenset({Failure.TRANSIENT, Failure.EXHAUSTED, Failure.TIMEOUT})


class Circuit(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half open"


class _Breaker:
    __slots__ = ("circuit", "failures", "since_s")

    def __init__(self) -> None:
        self.circuit = Circuit.CLOSED
        self.failures = 0
        self.since_s = 0.0


class Breakers:
    def __init__(self, failures_max: int = FAILURES_MAX, rest_s: float = REST_S) -> None:
        self._failures_max = failures_max
        self._rest_s = rest_s
        self._breakers: OrderedDict[str, _Breaker] = OrderedDict()

    def admits(self, target: str, now_s: float) -> bool:
        """False: turn it away. A half-open circuit lets one through, and another one each time the
        rest goes by without a word of it."""
        breaker = self._breakers.get(target)
        if breaker is None or breaker.circuit is Circuit.CLOSED:
            return True
        if now_s - breaker.since_s < self._rest_s:
            return False
        breaker.circuit, breaker.since_s = Circuit.HALF_OPEN, now_s
        return True

    def rest_s(self, target: str, now_s: float) -> float:
        """Seconds until another one is let through."""
        breaker = self._breakers.get(target)
        if breaker is None or breaker.circuit is Circuit.CLOSED:
            return 0.0
        return max(0.0, breaker.since_s + self._rest_s - now_s)

    def ended(self, target: str, ok: bool, now_s: float) -> None:
        if ok:
            self._breakers.pop(target, None)
            return
        breaker = self._breakers.setdefault(target, _Breaker())
        self._breakers.move_to_end(target)
        breaker.failures += 1
        if breaker.circuit is Circuit.HALF_OPEN or breaker.failures >= self._failures_max:
            breaker.circuit, breaker.since_s = Circuit.OPEN, now_s
        while len(self._breakers) > TARGETS_MAX:
            self._breakers.popitem(last=False)

    def circuit(self, target: str) -> Circuit:
        breaker = self._breakers.get(target)
        return Circuit.CLOSED if breaker is None else breaker.circuit


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
