"""Notes what virtual users do, at the lowest price per request, and folds it into a delta.

A request costs one `list.extend` of a tuple. Every 100 ms the flat lists are turned, column by
column, into sparse histograms and sums; nothing is kept per request. Columns that are usually
constant or only summed (lateness, status, bytes) stay Python numbers: converting all seven
columns to an array costs more than the histograms do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from hyperscale.metrics.delta import CheckDelta, Delta, MetricDelta, StepDelta
from hyperscale.metrics.failures import MESSAGE_MAX, SAMPLES_MAX, FailureKinds
from hyperscale.metrics.histogram import LATENCY, VALUES, Floats, Scale, Sparse, summarise

# started, sent, first_byte, ended (seconds of one clock), lateness_s, status, bytes_in, bytes_out
COLUMNS = 8


class StepRecorder:
    """One step in one process. The VU loop extends `samples` with one row per timed request.

    `phases` is switched off for steps whose client does not know when the first byte came.
    """

    __slots__ = ("_connect", "_failed", "_failures", "_unanswered", "name", "phases", "samples")

    def __init__(self, name: str) -> None:
        self.name = name
        self.phases = True
        self.samples: list[float] = []
        self._failures = FailureKinds()
        self._failed = 0
        self._unanswered = 0
        self._connect: dict[str, list[float]] = {"dns": [], "connect": [], "tls": []}

    def failure(self, outcome: str, detail: str, message: str, answered: bool) -> None:
        """Count a failed request; `answered` says whether it also has a row in `samples`."""
        self._failed += 1
        if not answered:
            self._unanswered += 1
        self._failures.add(outcome, detail, message)

    def connected(self, dns_s: float, connect_s: float, tls_s: float) -> None:
        """Note the phases of a new connection; a phase that did not happen is zero."""
        if dns_s > 0:
            self._connect["dns"].append(dns_s)
        if connect_s > 0:
            self._connect["connect"].append(connect_s)
        if tls_s > 0:
            self._connect["tls"].append(tls_s)

    def discard(self) -> None:
        self.samples.clear()
        self._failures.clear()
        self._failed = 0
        self._unanswered = 0
        for durations in self._connect.values():
            durations.clear()

    def fold(self) -> StepDelta | None:
        rows = len(self.samples) // COLUMNS
        if not rows and not self._failed:
            return None
        delta = StepDelta(name=self.name, count=rows + self._unanswered, failed=self._failed)
        if rows:
            self._fold_samples(delta)
        if self._failed:
            delta.errors = self._failures.drain()
            self._failed = 0
            self._unanswered = 0
        for phase, durations in self._connect.items():
            folded = _drain(durations)
            if folded is not None:
                delta.phases[phase] = folded
        return delta

    def _fold_samples(self, delta: StepDelta) -> None:
        samples = self.samples
        started = _column(samples[0::COLUMNS])
        ended = _column(samples[3::COLUMNS])
        service = ended - started
        delta.service = summarise(service)
        lateness = samples[4::COLUMNS]
        if any(lateness):
            delta.response = summarise(service + _column(lateness))
        if self.phases:
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
        samples.clear()


class WorkflowRecorder:
    """Everything one process notes about one workflow.

    Plain fields the engine writes: `iterations` (a list of durations in seconds), `dropped` and
    `interrupted` (counts), and the gauges `vus`, `cpu` (share of one core) and `rss_mb`.
    """

    def __init__(
        self,
        steps: Iterable[str],
        checks: Iterable[str] = (),
        metrics: Mapping[str, str] | None = None,
    ) -> None:
        self.steps = {name: StepRecorder(name) for name in steps}
        self.iterations: list[float] = []
        self.dropped = 0
        self.interrupted = 0
        self.vus = 0
        self.cpu = 0.0
        self.rss_mb = 0.0
        self._checks = {name: _CheckCount() for name in checks}
        self._metrics: dict[str, list[float]] = {name: [] for name in metrics or ()}
        self._lag: list[float] = []
        self._seq = 0
        self._vus_told = 0

    def check(self, name: str, error: str | None) -> None:
        self._checks[name].note(error)

    def metric(self, name: str, value: float) -> None:
        """Record a number; one that is not finite says nothing and is left out."""
        number = float(value)
        if math.isfinite(number):
            self._metrics[name].append(number)

    def lag(self, seconds: float) -> None:
        """Note by how much the event loop ran a timer too late."""
        self._lag.append(seconds)

    def discard(self) -> None:
        """Forget everything noted since the last fold: the end of a warm-up."""
        for step in self.steps.values():
            step.discard()
        for check in self._checks.values():
            check.clear()
        for values in self._metrics.values():
            values.clear()
        self.iterations.clear()
        self._lag.clear()
        self.dropped = 0
        self.interrupted = 0

    def fold(self) -> Delta | None:
        """What is new since the last fold, or None. Clears what it returns."""
        delta = Delta(
            seq=self._seq + 1,
            vus=self.vus,
            dropped=self.dropped,
            interrupted=self.interrupted,
            iteration=_drain(self.iterations),
            steps=[new for step in self.steps.values() if (new := step.fold()) is not None],
            checks=[
                told for name, c in self._checks.items() if (told := c.drain(name)) is not None
            ],
            metrics=self._fold_metrics(),
            lag=_drain(self._lag),
            cpu=self.cpu,
            rss_mb=self.rss_mb,
        )
        news = (delta.dropped, delta.interrupted, delta.iteration, delta.lag)
        lists = (delta.steps, delta.checks, delta.metrics)
        if not any(news) and not any(lists) and self.vus == self._vus_told:
            return None
        self._seq = delta.seq
        self._vus_told = self.vus
        self.dropped = 0
        self.interrupted = 0
        return delta

    def _fold_metrics(self) -> list[MetricDelta]:
        deltas = []
        for name, values in self._metrics.items():
            if values:
                last = values[-1]
                folded = _drain(values, VALUES)
                if folded is not None:
                    deltas.append(MetricDelta(name=name, values=folded, last=last))
        return deltas


class _CheckCount:
    __slots__ = ("failed", "passed", "samples", "samples_kept")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.passed = 0
        self.failed = 0
        self.samples: list[str] = []
        self.samples_kept = 0

    def note(self, error: str | None) -> None:
        if error is None:
            self.passed += 1
            return
        self.failed += 1
        if self.samples_kept < SAMPLES_MAX:
            self.samples.append(error[:MESSAGE_MAX])
            self.samples_kept += 1

    def drain(self, name: str) -> CheckDelta | None:
        if not self.passed and not self.failed:
            return None
        delta = CheckDelta(name, self.passed, self.failed, self.samples)
        self.passed = 0
        self.failed = 0
        self.samples = []
        return delta


def _column(numbers: list[float]) -> Floats:
    return np.fromiter(numbers, np.float64, len(numbers))


def _drain(numbers: list[float], scale: Scale = LATENCY) -> Sparse | None:
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
