"""A step of one user, as clients see it: where a request is noted that is made inside it.

A request that went well is noted at once. A failed one waits until the step ends, because the
author may accept it (an expected 404).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from hyperscale.engine.explain import explain
from hyperscale.metrics.recorder import StepRecorder
from hyperscale.workload.results import WITHOUT_LATENCY, CallResult, Connect, Outcome
from hyperscale.workload.scope import Label, Note

if TYPE_CHECKING:
    from hyperscale.engine.vu import VirtualUser

# A step that never ends (a task it left behind) must not keep what failed for ever.
PENDING_MAX = 100


class StepScope:
    __slots__ = ("notes", "pending", "step", "user")

    def __init__(self, user: VirtualUser, step: StepRecorder) -> None:
        self.user = user
        self.step = step
        self.notes = cast("dict[Label, Note]", step.notes)
        self.pending: list[tuple[Label, CallResult, bool]] | None = None

    def open(self, label: Label) -> Note:
        return self.step.open(label)

    def connected(self, label: Label, connect: Connect) -> None:
        self.step.of(label).connected(connect.dns_s, connect.connect_s, connect.tls_s)

    def failed(self, label: Label, result: CallResult, *, sent: bool) -> None:
        if self.pending is None:
            self.pending = []
        self.pending.append((label, result, sent))
        if len(self.pending) >= PENDING_MAX:
            self.settle()

    def settle(self) -> None:
        """Count what failed, and what the author accepted meanwhile."""
        pending, self.pending = self.pending, None
        for label, result, sent in pending or ():
            self.count(label, result, sent)

    def count(self, label: Label, result: CallResult, sent: bool = True) -> None:
        requests = self.step.of(label)
        outcome = result.outcome
        timed = sent and outcome not in WITHOUT_LATENCY
        if timed:
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
            detail = str(result.status) if outcome is Outcome.STATUS else ""
            first = partial(explain, *self.user.moment(), result=result)
            requests.failure(outcome, detail, result.error, first, timed=timed, sent=sent)

    def called_failed(self, label: Label, result: CallResult) -> None:
        first = partial(explain, *self.user.moment(), result=result)
        self.step.of(label).failure(result.outcome, "", result.error, first, timed=True)
