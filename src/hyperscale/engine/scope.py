"""A step of one user, as clients see it: where a request is noted that is made inside it.

A request that went well is noted at once. A failed one waits until the step ends, because the
author may accept it (an expected 404).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from hyperscale.engine.explain import explain
from hyperscale.metrics.recorder import StepRecorder
from hyperscale.workload.custom_metrics import MetricKind
from hyperscale.workload.results import WITHOUT_LATENCY, CallResult, Connect, Outcome
from hyperscale.workload.scope import Label, Note, Unrecorded

if TYPE_CHECKING:
    from hyperscale.engine.vu import VirtualUser

# A step that never ends (a task it left behind) must not keep what failed for ever.
PENDING_MAX = 100


class UnmeasuredScope(Unrecorded):
    """Calls of setup(), teardown() and hooks of state: counted, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = 0

    def open(self, label: Label) -> Note:
        return self._count

    def failed(self, label: Label, result: CallResult, *, sent: bool) -> None:
        self.requests += sent

    def _count(self, row: tuple[float, ...]) -> None:
        self.requests += 1


class StepScope:
    __slots__ = ("notes", "pending", "step", "user")

    def __init__(self, user: VirtualUser, step: StepRecorder) -> None:
        self.user = user
        self.step = step
        self.notes = cast("dict[Label, Note]", step.notes)
        self.pending: list[tuple[Label, CallResult, bool, bool]] | None = None

    @property
    def name(self) -> str:
        return self.step.name

    def open(self, label: Label) -> Note:
        return self.step.open(label)

    def connected(self, label: Label, connect: Connect) -> None:
        self.step.of(label).connected(connect.dns_s, connect.connect_s, connect.tls_s)

    def measure(self, name: str, kind: MetricKind, value: float) -> None:
        self.user.measure(name, kind, value, None)

    def failed(self, label: Label, result: CallResult, *, sent: bool) -> None:
        if sent or result.outcome is not Outcome.CANCELLED:  # else the load ended before it
            self._keep(label, result, sent=sent)

    def called_failed(self, label: Label, result: CallResult) -> None:
        if not any(result is known for _, known, _, _ in self.pending or ()):
            self._keep(label, result, noted=True)

    def _keep(
        self, label: Label, result: CallResult, *, sent: bool = True, noted: bool = False
    ) -> None:
        """`noted`: it has its row already."""
        if self.pending is None:
            self.pending = []
        self.pending.append((label, result, sent, noted))
        if len(self.pending) >= PENDING_MAX or self.user.left:
            self.settle()

    def settle(self) -> None:
        """Count what failed, and what the author accepted meanwhile."""
        pending, self.pending = self.pending, None
        for label, result, sent, noted in pending or ():
            self.count(label, result, sent, noted)

    def count(
        self, label: Label, result: CallResult, sent: bool = True, noted: bool = False
    ) -> None:
        requests = self.step.of(label)
        outcome = result.outcome
        if outcome is Outcome.CANCELLED and self.user.stopped:
            requests.unanswered()  # we gave it up, the target did not fail
            return
        timed = noted or (sent and outcome not in WITHOUT_LATENCY)
        if timed and not noted:
            requests.samples.extend(
                (
                    result.started,
                    result.sent,
                    result.first_byte,
                    result.ended,
                    self.user.lateness,
                    result.status,
                    result.bytes_in,
                    result.bytes_out,
                )
            )
        if outcome is not Outcome.OK:
            detail = ""
            if outcome is Outcome.STATUS:
                detail = str(result.status) if result.status else getattr(result, "code", "")
            first = partial(explain, *self.user.moment(), result=result)
            requests.failure(outcome, detail, result.error, first, timed=timed, sent=sent)
