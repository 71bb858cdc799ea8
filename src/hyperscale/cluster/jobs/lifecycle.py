"""The life of a workflow (E-1 to E-6, E-12): one table, one way to move, a history to read.

Every move names the state it expects. A decision made on an older state is thereby refused, and
whoever made it sees that. A workflow that has lost all that ran of it goes the way of failure when
that happens and waits there, ready for another attempt, until it is placed again or given up.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple


class LifecycleState(Enum):
    PENDING = "pending"
    DISPATCHED = "dispatched"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    FAILED_CANCELING_DEPENDENTS = "failed_canceling_deps"
    FAILED_READY_FOR_RETRY = "failed_ready"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


_S = LifecycleState

# Beyond the published table: recovery can be cancelled (T6) and given up, with what was measured
# before or without; a refusal for want of cores is no failure. A dependent is held back until its
# parent has completed, so it never has to come back from CANCELLED (T2). There is no AGGREGATED:
# numbers of workflows are put together once, when the job ends.
TRANSITIONS: Final[dict[LifecycleState, frozenset[LifecycleState]]] = {
    _S.PENDING: frozenset({_S.DISPATCHED, _S.CANCELLING, _S.FAILED}),
    _S.DISPATCHED: frozenset({_S.RUNNING, _S.CANCELLING, _S.FAILED, _S.PENDING}),
    _S.RUNNING: frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLING}),
    _S.FAILED: frozenset({_S.FAILED_CANCELING_DEPENDENTS, _S.CANCELLED}),
    _S.FAILED_CANCELING_DEPENDENTS: frozenset({_S.FAILED_READY_FOR_RETRY, _S.CANCELLED}),
    _S.FAILED_READY_FOR_RETRY: frozenset({_S.PENDING, _S.CANCELLED, _S.COMPLETED, _S.FAILED}),
    _S.CANCELLING: frozenset({_S.CANCELLED}),
    _S.COMPLETED: frozenset(),
    _S.CANCELLED: frozenset(),
}

RECOVERY: Final = (
    _S.FAILED,
    _S.FAILED_CANCELING_DEPENDENTS,
    _S.FAILED_READY_FOR_RETRY,
)
"""The way of a workflow that has lost all that ran of it. Its dependents are held back anyway, so
it goes all of it at once."""

OVER: Final = frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLED})
"""No decision leads on from here. Recovery passes FAILED within one record, so a workflow that is
found in FAILED stays there."""

PUBLIC: Final[dict[LifecycleState, str]] = {
    _S.PENDING: "pending",
    _S.DISPATCHED: "pending",
    _S.FAILED_READY_FOR_RETRY: "pending",
    _S.RUNNING: "running",
    _S.COMPLETED: "completed",
    _S.FAILED: "failed",
    _S.FAILED_CANCELING_DEPENDENTS: "failed",
    _S.CANCELLING: "cancelled",
    _S.CANCELLED: "cancelled",
}

HISTORY_MAX: Final = 64


class Step(NamedTuple):
    at_s: float  # the job's age
    source: LifecycleState
    target: LifecycleState
    reason: str

    def __str__(self) -> str:
        return f"{self.at_s:.1f} {self.source.name} → {self.target.name} ({self.reason})"


@dataclass(slots=True)
class Lifecycle:
    state: LifecycleState = LifecycleState.PENDING
    history: deque[Step] = field(default_factory=lambda: deque(maxlen=HISTORY_MAX))
    moves: Counter[tuple[LifecycleState, LifecycleState]] = field(default_factory=Counter)
    refused: int = 0  # decisions on a state that was not there any more

    def transition(
        self, expected: LifecycleState, target: LifecycleState, reason: str, at_s: float
    ) -> bool:
        """True if the workflow was in `expected` and may go to `target`; else nothing changes."""
        if self.state is not expected or target not in TRANSITIONS[expected]:
            self.refused += 1
            return False
        self.history.append(Step(at_s, expected, target, reason))
        self.moves[expected, target] += 1
        self.state = target
        return True

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    @property
    def succeeded(self) -> bool:
        return self.state is LifecycleState.COMPLETED

    @property
    def public(self) -> str:
        return PUBLIC[self.state]

    def lines(self) -> tuple[str, ...]:
        return tuple(str(step) for step in self.history)
