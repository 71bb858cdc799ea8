"""Notes what virtual users do, at the lowest price per request, and folds it into a delta.

A request costs one `list.extend` of a tuple, a run of a step one `list.append`. Every 100 ms the
flat lists become sparse histograms and sums; nothing is kept per request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Protocol

from hyperscale.metrics.delta import (
    CheckDelta,
    Delta,
    GroupDelta,
    MetricDelta,
    RequestKey,
    StepDelta,
)
from hyperscale.metrics.failures import MESSAGE_MAX, SAMPLES_MAX, FailureKinds
from hyperscale.metrics.histogram import VALUES
from hyperscale.metrics.request_recorder import First, RequestRecorder, drain
from hyperscale.metrics.results import FirstFailure

# Names of requests that a workflow keeps apart; the rest are told as one.
NAMES_MAX = 500
OTHER_NAME = "(other)"
LABELS_MAX = 4 * NAMES_MAX  # remembered for a step: a test may make up names without end
SKIP_REASONS_MAX = 20
METRICS_MAX = 500  # by name, kind and tags

Note = Callable[[tuple[float, ...]], None]
Tags = tuple[tuple[str, str], ...]


class Label(Protocol):
    """What the requests of a call are told under."""

    method: str
    name: str
    kind: str
    tags: Tags


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

    def fold(self, untimed: int = 0) -> StepDelta | None:
        """`untimed` are runs beside those in `durations`."""
        runs = len(self.durations) + self.interrupted + untimed
        if not runs and not self._failed and not self._skips:
            return None
        delta = StepDelta(
            self.name,
            runs=runs,
            failed=self._failed,
            interrupted=self.interrupted,
            duration=drain(self.durations),
            skips=self._skips,
            errors=self._failures.drain(),
        )
        self.interrupted = self._failed = 0
        self._skips = {}
        return delta


class WorkflowRecorder:
    """Everything one process notes about one workflow.

    Plain fields the engine writes: `iterations` (a list of durations in seconds), `dropped`,
    `interrupted`, `stopped_iterations` and `stopped_users` (counts), `cpu_s` (seconds of CPU),
    `offered` (of the planned load), and the gauges `vus`, `cpu` (share of one core) and `rss_mb`.
    """

    def __init__(
        self,
        steps: Iterable[str],
        checks: Iterable[str] = (),
        metrics: Mapping[str, str] | None = None,
        *,
        by_status: bool = False,
        reserved: Container[str] = (),
        flow: str = "",
    ) -> None:
        """`reserved` names are kept apart however many others there are; each iteration is a run
        of the step `flow`."""
        self.steps = {name: StepRecorder(name, self) for name in steps}
        self.iterations: list[float] = []
        self.groups: dict[str, list[float]] = {}
        self.dropped = 0
        self.interrupted = 0
        self.stopped_iterations = 0
        self.stopped_users = 0
        self.vus = 0
        self.cpu = 0.0
        self.cpu_s = 0.0
        self.offered = 0.0
        self.rss_mb = 0.0
        self._by_status = by_status
        self._flow = flow
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
        """Record a number; one that is not finite says nothing and is left out. Beyond the most
        tags it is told without them."""
        number = float(value)
        if math.isfinite(number):
            key = (name, kind or self._kinds[name], tags)
            values = self._metrics.get(key)
            if values is None:
                if len(self._metrics) >= METRICS_MAX:
                    key = (name, key[1], ())
                values = self._metrics.setdefault(key, [])
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
        untimed = {self._flow: len(self.iterations)}
        delta = Delta(
            seq=self._seq + 1,
            vus=self.vus,
            dropped=self.dropped,
            interrupted=self.interrupted,
            iteration=drain(self.iterations),
            requests=[
                new for request in self._requests.values() for new in request.fold(self._by_status)
            ],
            steps=[
                new
                for name, step in self.steps.items()
                if (new := step.fold(untimed.get(name, 0))) is not None
            ],
            groups=[
                GroupDelta(name, folded)
                for name, seconds in self.groups.items()
                if (folded := drain(seconds)) is not None
            ],
            checks=[
                told for name, c in self._checks.items() if (told := c.drain(name)) is not None
            ],
            metrics=self._fold_metrics(),
            lag=drain(self._lag),
            cpu=self.cpu,
            rss_mb=self.rss_mb,
            stopped_iterations=self.stopped_iterations,
            stopped_users=self.stopped_users,
            unmeasured=self._unmeasured,
            cpu_s=self.cpu_s,
            offered=self.offered,
        )
        news = (
            *(delta.dropped, delta.interrupted, delta.iteration, delta.lag),
            *(delta.stopped_users, delta.cpu_s, delta.offered),
        )
        lists = (delta.requests, delta.steps, delta.checks, delta.metrics, delta.unmeasured)
        if not any(news) and not any(lists) and self.vus == self._vus_told:
            return None
        self._seq = delta.seq
        self._vus_told = self.vus
        self._unmeasured = {}
        self.dropped = self.interrupted = 0
        self.stopped_iterations = self.stopped_users = 0
        self.cpu_s = self.offered = 0.0
        return delta

    def _fold_metrics(self) -> list[MetricDelta]:
        deltas = []
        for (name, kind, tags), values in self._metrics.items():
            if values:
                last = values[-1]
                folded = drain(values, VALUES)
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
