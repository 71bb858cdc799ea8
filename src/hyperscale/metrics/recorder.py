"""Notes what virtual users do, at the lowest price per request, and folds it into a delta.

A request costs one `list.extend` of a tuple, a run of a step one `list.append`. Every 100 ms the
flat lists are turned, column by column, into sparse histograms and sums; nothing is kept per
request. Columns that are usually constant or only summed (lateness, status, bytes) stay Python
numbers: converting all seven columns to an array costs more than the histograms do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Protocol

import numpy as np

from hyperscale.metrics.delta import (
    CheckDelta,
    Delta,
    GroupDelta,
    MetricDelta,
    RequestDelta,
    RequestKey,
    StepDelta,
)
from hyperscale.metrics.failures import MESSAGE_MAX, SAMPLES_MAX, FailureKinds
from hyperscale.metrics.histogram import LATENCY, VALUES, Floats, Scale, Sparse, summarise
from hyperscale.metrics.results import FirstFailure

# started, sent, first_byte, ended (seconds of one clock), lateness_s, status, bytes_in, bytes_out
COLUMNS = 8
# Names of requests that a workflow keeps apart; the rest are told as one.
NAMES_MAX = 500
OTHER_NAME = "(other)"
LABELS_MAX = 4 * NAMES_MAX  # remembered for a step: a test may make up names without end
SKIP_REASONS_MAX = 20

Note = Callable[[tuple[float, ...]], None]
First = Callable[[], FirstFailure]
Tags = tuple[tuple[str, str], ...]


class Label(Protocol):
    """What the requests of a call are told under."""

    method: str
    name: str
    kind: str
    tags: Tags


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
        if not rows and not self._failed:
            return []
        delta = RequestDelta(
            self.key, count=rows + self._rowless, failed=self._failed, unsent=self._unsent
        )
        if self._failed:
            delta.errors = self._failures.drain()
            self._failed = self._rowless = self._unsent = 0
        for phase, durations in self._connect.items():
            folded = _drain(durations)
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


class StepRecorder:
    """One step in one process. The engine appends to `durations` (seconds) for each run that went
    well; clients find the note of a request's label in `notes`."""

    __slots__ = (
        "_failed",
        "_failures",
        "_recorder",
        "_skips",
        "durations",
        "interrupted",
        "name",
        "notes",
        "requests",
    )

    def __init__(self, name: str, recorder: WorkflowRecorder) -> None:
        self.name = name
        self.notes: dict[Label, Note] = {}
        self.durations: list[float] = []
        self.interrupted = 0
        self.requests: dict[Label, RequestRecorder] = {}
        self._recorder = recorder
        self._failed = 0
        self._failures = FailureKinds()
        self._skips: dict[str, int] = {}

    def of(self, label: Label) -> RequestRecorder:
        found = self.requests.get(label)
        if found is None:
            if len(self.requests) >= LABELS_MAX:
                self.requests.clear()
                self.notes.clear()
            found = self.requests[label] = self._recorder.request(self.name, label)
            self.notes[label] = found.samples.extend
        return found

    def open(self, label: Label) -> Note:
        return self.of(label).samples.extend

    def failed(
        self, outcome: str = "", detail: str = "", message: str = "", first: First | None = None
    ) -> None:
        """A run went wrong. Without an outcome the request that did tells the rest."""
        self._failed += 1
        if outcome:
            self._failures.add(outcome, detail, message, first)

    def skip(self, reason: str) -> None:
        if reason not in self._skips and len(self._skips) >= SKIP_REASONS_MAX:
            reason = "other reasons"
        self._skips[reason] = self._skips.get(reason, 0) + 1

    def discard(self) -> None:
        self.durations.clear()
        self.interrupted = self._failed = 0
        self._failures.clear()
        self._skips = {}

    def fold(self) -> StepDelta | None:
        runs = len(self.durations) + self.interrupted
        if not runs and not self._failed and not self._skips:
            return None
        delta = StepDelta(
            self.name,
            runs=runs,
            failed=self._failed,
            interrupted=self.interrupted,
            duration=_drain(self.durations),
            skips=self._skips,
            errors=self._failures.drain(),
        )
        self.interrupted = self._failed = 0
        self._skips = {}
        return delta


class WorkflowRecorder:
    """Everything one process notes about one workflow.

    Plain fields the engine writes: `iterations` (a list of durations in seconds), `dropped`,
    `interrupted`, `stopped_iterations` and `stopped_users` (counts), and the gauges `vus`, `cpu`
    (share of one core) and `rss_mb`.
    """

    def __init__(
        self,
        steps: Iterable[str],
        checks: Iterable[str] = (),
        metrics: Mapping[str, str] | None = None,
        *,
        by_status: bool = False,
        reserved: Container[str] = (),
    ) -> None:
        """`reserved` names are kept apart however many others there are."""
        self.steps = {name: StepRecorder(name, self) for name in steps}
        self.iterations: list[float] = []
        self.groups: dict[str, list[float]] = {}
        self.dropped = 0
        self.interrupted = 0
        self.stopped_iterations = 0
        self.stopped_users = 0
        self.vus = 0
        self.cpu = 0.0
        self.rss_mb = 0.0
        self._by_status = by_status
        self._reserved = reserved
        self._requests: dict[RequestKey, RequestRecorder] = {}
        self._checks = {name: _CheckCount() for name in checks}
        self._metrics: dict[tuple[str, str, Tags], list[float]] = {
            (name, kind, ()): [] for name, kind in (metrics or {}).items()
        }
        self._kinds = dict(metrics or {})
        self._unmeasured: dict[str, int] = {}
        self._lag: list[float] = []
        self._seq = 0
        self._vus_told = 0

    def request(self, step: str, label: Label) -> RequestRecorder:
        """Labels with the same words share their numbers; beyond the most names all are one."""
        key = RequestKey(step, label.method, label.name, label.kind, label.tags)
        known = self._requests.get(key)
        if known is None:
            if len(self._requests) >= NAMES_MAX and label.name not in self._reserved:
                key = RequestKey(step, "", OTHER_NAME, label.kind)
            known = self._requests.setdefault(key, RequestRecorder(key))
        return known

    def check(self, name: str, error: str | None, first: First | None = None) -> None:
        self._checks[name].note(error, first)

    def metric(self, name: str, value: float, kind: str = "", tags: Tags = ()) -> None:
        """Record a number; one that is not finite says nothing and is left out."""
        number = float(value)
        if math.isfinite(number):
            key = (name, kind or self._kinds[name], tags)
            values = self._metrics.get(key)
            if values is None:
                values = self._metrics[key] = []
            values.append(number)

    def kind_of(self, name: str, kind: str) -> str:
        """The kind that a metric has; the first one asked for decides."""
        return self._kinds.setdefault(name, kind)

    def lag(self, seconds: float) -> None:
        """Note by how much the event loop ran a timer too late."""
        self._lag.append(seconds)

    def unmeasured(self, phase: str, requests: int) -> None:
        """Requests that are in no other number."""
        if requests:
            self._unmeasured[phase] = self._unmeasured.get(phase, 0) + requests

    def discard(self, phase: str) -> None:
        """Forget everything noted since the last fold; its requests are counted as the phase's."""
        self.unmeasured(phase, sum(request.discard() for request in self._requests.values()))
        for step in self.steps.values():
            step.discard()
        for check in self._checks.values():
            check.clear()
        for values in (*self._metrics.values(), *self.groups.values()):
            values.clear()
        self.iterations.clear()
        self._lag.clear()
        self.dropped = self.interrupted = 0
        self.stopped_iterations = self.stopped_users = 0

    def fold(self) -> Delta | None:
        """What is new since the last fold, or None. Clears what it returns."""
        delta = Delta(
            seq=self._seq + 1,
            vus=self.vus,
            dropped=self.dropped,
            interrupted=self.interrupted,
            iteration=_drain(self.iterations),
            requests=[
                new for request in self._requests.values() for new in request.fold(self._by_status)
            ],
            steps=[new for step in self.steps.values() if (new := step.fold()) is not None],
            groups=[
                GroupDelta(name, folded)
                for name, seconds in self.groups.items()
                if (folded := _drain(seconds)) is not None
            ],
            checks=[
                told for name, c in self._checks.items() if (told := c.drain(name)) is not None
            ],
            metrics=self._fold_metrics(),
            lag=_drain(self._lag),
            cpu=self.cpu,
            rss_mb=self.rss_mb,
            stopped_iterations=self.stopped_iterations,
            stopped_users=self.stopped_users,
            unmeasured=self._unmeasured,
        )
        news = (delta.dropped, delta.interrupted, delta.iteration, delta.lag, delta.stopped_users)
        lists = (delta.requests, delta.steps, delta.checks, delta.metrics, delta.unmeasured)
        if not any(news) and not any(lists) and self.vus == self._vus_told:
            return None
        self._seq = delta.seq
        self._vus_told = self.vus
        self._unmeasured = {}
        self.dropped = self.interrupted = 0
        self.stopped_iterations = self.stopped_users = 0
        return delta

    def _fold_metrics(self) -> list[MetricDelta]:
        deltas = []
        for (name, kind, tags), values in self._metrics.items():
            if values:
                last = values[-1]
                folded = _drain(values, VALUES)
                if folded is not None:
                    deltas.append(MetricDelta(name, folded, last, kind, tags))
        return deltas


class _CheckCount:
    __slots__ = ("failed", "first", "passed", "samples", "samples_kept", "told")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.passed = 0
        self.failed = 0
        self.samples: list[str] = []
        self.samples_kept = 0
        self.first: FirstFailure | None = None
        self.told = False

    def note(self, error: str | None, first: First | None) -> None:
        if error is None:
            self.passed += 1
            return
        self.failed += 1
        if self.samples_kept < SAMPLES_MAX:
            self.samples.append(error[:MESSAGE_MAX])
            self.samples_kept += 1
        if first is not None and not self.told:
            self.first, self.told = first(), True

    def drain(self, name: str) -> CheckDelta | None:
        if not self.passed and not self.failed:
            return None
        delta = CheckDelta(name, self.passed, self.failed, self.samples, self.first)
        self.passed = 0
        self.failed = 0
        self.samples = []
        self.first = None
        return delta


def _with_status(key: RequestKey, status: int) -> RequestKey:
    tags = (*key.tags, ("status", str(status)))
    return RequestKey(key.step, key.method, key.name, key.kind, tags)


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
