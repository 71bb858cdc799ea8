"""Managers among themselves: the replicated job records, whose own messages are opaque here, and
what a leader has heard of parts that run."""

from __future__ import annotations

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part
from hyperscale.nodes.protocol import Fields
from hyperscale.wire.messages import Priority, Registry

# A full batch is one request; a single record may be larger than a batch.
REQUEST_BYTES_MAX = 12 << 20


class RecordsRequest(Fields, frozen=True, kw_only=True):
    data: bytes


class RecordsReply(Fields, frozen=True, kw_only=True):
    data: bytes


class Note(Fields, frozen=True, kw_only=True, array_like=True):
    """Of one part, as its leader last heard of it: `metrics.aggregate`, brief."""

    part: Part
    fence: Fence
    at_s: float  # load time
    iterations: int
    state: bytes


class NoteParts(Fields, frozen=True, kw_only=True):
    """Told one way, now and then: should the leader and a worker die together, the next leader
    knows what was heard of that worker's parts."""

    term: int
    notes: tuple[Note, ...]


RECORDS = Registry()
# Shedding these under load would stop the very work that makes the load go away.
for _kind, _struct in (("records.request", RecordsRequest), ("records.reply", RecordsReply)):
    RECORDS.add(_struct, kind=_kind, priority=Priority.CRITICAL, max_bytes=REQUEST_BYTES_MAX)
# Telemetry: a loaded node does without, and gets the next one.
RECORDS.add(NoteParts, kind="note.parts", priority=Priority.NORMAL, max_bytes=REQUEST_BYTES_MAX)
