"""Managers among themselves: the replicated job records, whose own messages are opaque here."""

from __future__ import annotations

from hyperscale.nodes.protocol.fields import Fields
from hyperscale.wire.messages import Priority, Registry

# A full batch is one request; a single record may be larger than a batch.
REQUEST_BYTES_MAX = 12 << 20


class RecordsRequest(Fields, frozen=True, kw_only=True):
    data: bytes


class RecordsReply(Fields, frozen=True, kw_only=True):
    data: bytes


RECORDS = Registry()
# Shedding these under load would stop the very work that makes the load go away.
for _kind, _struct in (("records.request", RecordsRequest), ("records.reply", RecordsReply)):
    RECORDS.add(_struct, kind=_kind, priority=Priority.CRITICAL, max_bytes=REQUEST_BYTES_MAX)
