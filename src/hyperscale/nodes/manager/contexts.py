"""What ended workflows leave for those that depend on them.

Every part of a dependant gets it, and a job may have a thousand parts on both sides: each end is
read once, without the numbers in it, and what was read is kept while more parts are sent.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hyperscale.cluster.jobs.state import JobState, PartState, WorkflowState
from hyperscale.engine.messages import Values, handed_on, of_highest_core
from hyperscale.nodes.protocol.fields import Fields

ALL = -1  # of a workflow that succeeded no further part ends
Left = tuple[Values, Values]
"""The context of a workflow, and what it provides by name."""


class _End(Fields, frozen=True, kw_only=True, tag="ended"):
    """A `PartEnd` without what was measured: the decoder steps over that."""

    context: Values = msgspec.field(default_factory=dict)
    provided: Values = msgspec.field(default_factory=dict)


_ends = msgspec.msgpack.Decoder(_End)
_values = msgspec.msgpack.Decoder(Values)


class Contexts:
    def __init__(self) -> None:
        self._read: dict[str, dict[str, tuple[int, Left]]] = {}

    def of(self, job: JobState, name: str) -> Left:
        """Of all parts of the workflow that have ended by now."""
        workflow = job.workflows[name]
        read = self._read.setdefault(job.job_id, {})
        known = read.get(name)
        if known is not None and known[0] == ALL:
            return known[1]
        ended = [end for part in workflow.parts.values() for end in _last_word(part)]
        if known is None or known[0] != len(ended) or workflow.lifecycle.succeeded:
            stage = ALL if workflow.lifecycle.succeeded else len(ended)
            known = read[name] = stage, _read(workflow, ended)
        return known[1]

    def forget(self, job_id: str) -> None:
        self._read.pop(job_id, None)

    def clear(self) -> None:
        self._read.clear()


def _last_word(part: PartState) -> list[bytes]:
    """How it ended; or, cut off with no time left to go on elsewhere, how its last attempt did."""
    if part.ended is not None:
        return [part.ended.result]
    return [loss.result for loss in part.losses[-1:] if part.given_up and loss.result]


def _read(workflow: WorkflowState, ended: Iterable[bytes]) -> Left:
    ends = [_ends.decode(one) for one in ended]
    setup_wrote = _values.decode(workflow.context) if workflow.context else {}
    context = handed_on(setup_wrote, (end.context for end in ends))
    return context, of_highest_core(end.provided for end in ends)
