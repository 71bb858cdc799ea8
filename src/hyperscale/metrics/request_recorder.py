"""The requests of one name in one step, noted as rows and folded column by column.

Nothing is kept per request: every 100 ms rows become sparse histograms and sums. Columns that are
usually constant or only summed (lateness, status, bytes) stay Python numbers: converting all seven
columns to an array costs more than the histograms do.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable

from hyperscale.metrics.arrays import Floats, np
from hyperscale.metrics.delta import RequestDelta, RequestKey
from hyperscale.metrics.failures import FailureKinds
from hyperscale.metrics.histogram import LATENCY, Scale, Sparse, summarise
from hyperscale.metrics.results import FirstFailure

# started, sent, first_byte, ended (seconds of one clock), lateness_s, status, bytes_in, bytes_out
COLUMNS = 8

First = Callable[[], FirstFailure]


class RequestRecorder:
    """The requests of one name in one step. Clients extend `samples` with a row per request."""

    __slots__ = ("_connect", "_failed", "_failures", "_rowless", "_unsent", "key", "samples")

    def __init__(self, key: RequestKey) -> None:
        self.key = key
        self.samples: list[float] = []
        self._failures = FailureKinds()
        self._failed = 0
        self._rowless = 0
        self._unsent = 0
        self._connect: dict[str, list[float]] = {"dns": [], "connect": [], "tls": []}

    def failure(
        self,
        outcome: str,
        detail: str,
        message: str,
        first: First | None = None,
        *,
        timed: bool = False,
        sent: bool = True,
    ) -> None:
        """Count a failed call: `timed` if it has a row in `samples`, not `sent` if there never
        was a request."""
        self._failed += 1
        if not sent:
            self._unsent += 1
        elif not timed:
            self._rowless += 1
        self._failures.add(outcome, detail, message, first)

    def unanswered(self) -> None:
        """Count a request whose answer nobody waited for: the load was stopped."""
        self._rowless += 1

    def connected(self, dns_s: float, connect_s: float, tls_s: float) -> None:
        """Note the phases of a new connection; a phase that did not happen is zero."""
        if dns_s > 0:
            self._connect["dns"].append(dns_s)
        if connect_s > 0:
            self._connect["connect"].append(connect_s)
        if tls_s > 0:
            self._connect["tls"].append(tls_s)

    def discard(self) -> int:
        """Forget what was noted; returns how many requests that were."""
        count = len(self.samples) // COLUMNS + self._rowless
        self.samples.clear()
        self._failures.clear()
        self._failed = self._rowless = self._unsent = 0
        for durations in self._connect.values():
            durations.clear()
        return count

    def fold(self, by_status: bool = False) -> list[RequestDelta]:
        rows = len(self.samples) // COLUMNS
        if not rows and not self._failed and not self._rowless:
            return []
        delta = RequestDelta(
            self.key, count=rows + self._rowless, failed=self._failed, unsent=self._unsent
        )
        self._rowless = 0
        if self._failed:
            delta.errors = self._failures.drain()
            self._failed = self._unsent = 0
        for phase, durations in self._connect.items():
            folded = drain(durations)
            if folded is not None:
                delta.phases[phase] = folded
        if rows and not by_status:
            self._fold_samples(delta, self.samples)
            self.samples.clear()
        return [delta] if not rows or not by_status else self._apart(delta)

    def _apart(self, delta: RequestDelta) -> list[RequestDelta]:
        """The same requests told by status; what failed without one stays as it is."""
        rows: dict[int, list[float]] = {}
        for at in range(0, len(self.samples), COLUMNS):
            status = int(self.samples[at + 5])
            rows.setdefault(status, []).extend(self.samples[at : at + COLUMNS])
        self.samples.clear()
        told = [delta]
        connecting, delta.phases = delta.phases, {}
        for status, samples in rows.items():
            if status:
                one = RequestDelta(_with_status(self.key, status), len(samples) // COLUMNS)
                one.errors = [e for e in delta.errors if e.detail == str(status)]
                one.failed = sum(error.count for error in one.errors)
                delta.errors = [e for e in delta.errors if e.detail != str(status)]
                delta.failed -= one.failed
                delta.count -= one.count
                told.append(one)
            self._fold_samples(told[-1] if status else delta, samples)
        told = [one for one in told if one.count or one.failed]
        told[0].phases |= connecting
        return told

    def _fold_samples(self, delta: RequestDelta, samples: list[float]) -> None:
        started = _column(samples[0::COLUMNS])
        ended = _column(samples[3::COLUMNS])
        service = ended - started
        delta.service = summarise(service)
        lateness = samples[4::COLUMNS]
        if any(lateness):
            delta.response = summarise(service + _column(lateness))
        if self.key.kind != "custom":  # whose client does not know when the first byte came
            sent = _column(samples[1::COLUMNS])
            first_byte = _column(samples[2::COLUMNS])
            # A request that timed out before the first byte waited to its end.
            first_byte = np.where(first_byte < sent, ended, first_byte)
            for phase, durations in (
                ("write", sent - started),
                ("wait", first_byte - sent),
                ("read", ended - first_byte),
            ):
                folded = summarise(durations)
                if folded is not None:
                    delta.phases[phase] = folded
        delta.statuses = _count_statuses(samples[5::COLUMNS])
        delta.bytes_in = int(sum(samples[6::COLUMNS]))
        delta.bytes_out = int(sum(samples[7::COLUMNS]))


def _with_status(key: RequestKey, status: int) -> RequestKey:
    tags = (*key.tags, ("status", str(status)))
    return RequestKey(key.step, key.method, key.name, key.kind, tags)


def _column(numbers: list[float]) -> Floats:
    # Half the time of np.fromiter.
    return np.frombuffer(struct.pack(f"{len(numbers)}d", *numbers))


def drain(numbers: list[float], scale: Scale = LATENCY) -> Sparse | None:
    if not numbers:
        return None
    folded = summarise(_column(numbers), scale)
    numbers.clear()
    return folded


def _count_statuses(statuses: list[float]) -> dict[int, int]:
    """How often each status came; 0 means the protocol has none."""
    distinct = set(statuses)
    if len(distinct) == 1:
        counted = {int(distinct.pop()): len(statuses)}
    else:
        counted = {int(status): count for status, count in Counter(statuses).items()}
    counted.pop(0, None)
    return counted
