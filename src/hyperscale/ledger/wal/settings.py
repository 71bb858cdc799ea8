"""Every number of the log, with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.ledger.wal.record import HEADER_BYTES, PAYLOAD_BYTES_MAX, POSITION_MAX
from hyperscale.ledger.wal.segment import SEGMENT_BYTES_MAX

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True)
class WalSettings:
    segment_bytes_max: int = 64 * MIB
    """A segment is the unit of compaction; at 64 MiB its header costs nothing and a scan of one
    takes well under a second."""
    batch_wait_us: int = 500
    """The longest a batch is gathered while entries keep arriving, about one sync of an SSD. An
    entry that comes alone is written at once; what arrives during a sync is the next batch."""
    batch_entries_max: int = 1_000
    batch_bytes_max: int = 1 * MIB
    """Both bound how long the first waiter of a batch waits for the last."""
    queue_entries_max: int = 10_000
    queue_bytes_max: int = 16 * MIB
    """What is accepted while the disk is busy; beyond it callers wait outside. An empty queue
    takes anything."""
    payload_bytes_max: int = PAYLOAD_BYTES_MAX
    read_bytes: int = 256 * KIB
    """One bite of a scan: about a millisecond of checking before the event loop gets its turn.
    Also the distance of two marks of the index."""

    def __post_init__(self) -> None:
        assert 1 <= self.batch_entries_max <= POSITION_MAX + 1
        assert 1 <= self.payload_bytes_max <= PAYLOAD_BYTES_MAX
        assert self.queue_entries_max >= 1
        assert self.queue_bytes_max >= 1
        assert self.batch_bytes_max >= 1
        assert 1 <= self.segment_bytes_max <= SEGMENT_BYTES_MAX
        assert self.read_bytes >= HEADER_BYTES
        assert self.batch_wait_us >= 0
