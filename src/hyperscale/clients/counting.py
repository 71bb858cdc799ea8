"""Where the exchanges of all clients are counted."""

from __future__ import annotations

from hyperscale.workload.results import CallResult, Outcome
from hyperscale.workload.scope import CURRENT, Label


def note(label: Label, result: CallResult, sent: bool) -> None:
    """Count one exchange, or a call that never came to one."""
    scope = CURRENT.get()
    scope.user.last = result
    if result.connect is not None:
        scope.connected(label, result.connect)
    if result.outcome is not Outcome.OK:
        scope.failed(label, result, sent=sent)
        return
    (scope.notes.get(label) or scope.open(label))(
        (
            result.started,
            result.sent,
            result.first_byte,
            result.ended,
            scope.user.lateness,
            result.status,
            result.bytes_in,
            result.bytes_out,
        )
    )
