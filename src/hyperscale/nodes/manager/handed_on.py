"""What ended workflows leave for those that depend on them.

Every part of a dependant gets it, and a job may have a thousand parts on both sides: each end is
read once, without the numbers in it, and what was read is kept while more parts are sent.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hyperscale.cluster.jobs.records import PartEnded
from hyperscale.cluster.jobs.state import JobState
from hyperscale.engine.messages import Values, keep_newest
from hyperscale.nodes.protocol.fields import Fields

ALL = -1  # of a workflow that succeeded no further part ends
Left = tuple[Values, Values]
"""The context of a workflow, and what it provides by name."""


class _End(Fields, frozen=True, kw_only=True, tag="ended"):
    """A `PartEnd` without what was measured: the decoder steps over that."""

    context: Values = msgspec.field(default_factory=dict)
    provided: Values = msgspec.field(default_factory=dict)


_ends = msgspec.msgpack.Decoder(_End)


class HandedOn:
    def __init__(self) -> None:
        self._read: dict[str, dict[str, tuple[int, Left]]] = {}

    def of(self, job: JobState, name: str) -> Left:
        """Of all parts of the workflow that have ended by now."""
        workflow = job.workflows[name]
        read = self._read.setdefault(job.job_id, {})
        known = read.get(name)
        if known is not None and known[0] == ALL:
            return known[1]
        ended = [part.ended for part in workflow.parts.values() if part.ended is not None]
        if known is None or known[0] != len(ended) or workflow.lifecycle.succeeded:
            stage = ALL if workflow.lifecycle.succeeded else len(ended)
            known = read[name] = stage, _read(ended)
        return known[1]

    def forget(self, job_id: str) -> None:
        self._read.pop(job_id, None)

    def clear(self) -> None:
        self._read.clear()


def _read(ended: Iterable[PartEnded]) -> Left:
    context: Values = {}
    provided: Values = {}
    for one in sorted(ended, key=lambda one: one.part.number):
        end = _ends.decode(one.result)
        keep_newest(context, end.context)
        keep_newest(provided, end.provided)
    return context, provided
