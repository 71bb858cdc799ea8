"""Job records that survive the loss of a minority of managers.

    records = QuorumRecords(host, "records", "m1", ("m1", "m2", "m3"), send)   # or LocalRecords
    await records.open()
    await records.lead(term)                       # when the election says so
    index = await records.append(job_id, kind, payload, fence)
    reply = await records.handle(peer, request)    # what another voter's `send` brings

`api` is what callers see. `replica` holds the decisions, `states` the theory; `quorum` joins them
to disk and peers.
"""

from hyperscale.ledger.records.api import (
    Deposed,
    NotLeader,
    PeerUnreachable,
    QuorumTimeout,
    QuorumUnavailable,
    Record,
    Records,
    RecordsError,
    RecordsFull,
    RecordTooLarge,
    Send,
    StaleFence,
    Status,
)
from hyperscale.ledger.records.quorum import LocalRecords, QuorumRecords
from hyperscale.ledger.records.settings import RecordsSettings

__all__ = [
    "Deposed",
    "LocalRecords",
    "NotLeader",
    "PeerUnreachable",
    "QuorumRecords",
    "QuorumTimeout",
    "QuorumUnavailable",
    "Record",
    "RecordTooLarge",
    "Records",
    "RecordsError",
    "RecordsFull",
    "RecordsSettings",
    "Send",
    "StaleFence",
    "Status",
]
