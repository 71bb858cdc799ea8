"""Every number of the job records, with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from hyperscale.ledger.checkpoints import Policy
from hyperscale.ledger.wal.record import PAYLOAD_BYTES_MAX
from hyperscale.ledger.wal.settings import KIB, MIB, WalSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsSettings:
    quorum_timeout_s: float = 5.0
    """How long a caller waits for a majority."""
    request_timeout_s: float = 2.0
    """How long a voter may take to answer one request; it covers a slow disk."""
    retry_s: float = 0.25
    """Pause after a request that failed."""
    ping_s: float = 1.0
    """A leader with nothing to say says so this often: a voter that restarted learns what is
    committed, and the leader who is there."""
    reachable_s: float = 3.0
    """A voter that answered nothing for three pings is not counted on for new records."""

    batch_records_max: int = 1_000
    batch_bytes_max: int = 1 * MIB
    """Of one request: one sync at the other side."""
    pipeline_max: int = 4
    """Requests under way to one voter: while one is synced the next ones travel."""
    part_bytes: int = 256 * KIB
    """Of a state that is sent piece by piece."""
    state_bytes_max: int = 1 << 30
    """A state that claims to be larger is refused before anything is kept of it."""

    record_bytes_max: int = 8 * MIB
    """Half of what the log underneath takes."""
    pending_max: int = 10_000
    pending_bytes_max: int = 64 * MIB
    """Not yet confirmed by a majority; beyond it new records are refused."""
    jobs_max: int = 20_000
    bytes_max: int = 512 * MIB
    """A new job is refused beyond either; jobs that are here may go on and end."""

    checkpoint: Policy = field(default_factory=lambda: Policy(records=20_000, seconds=300.0))
    log_bytes_max: int = 64 * MIB
    """A checkpoint is also due when the entries in memory weigh this much."""
    entries_kept: int = 2_000
    """Left in memory after a checkpoint, so that a voter a little behind gets entries and not the
    whole state."""
    tidy_s: float = 1.0
    """How often jobs whose time is up are looked for."""
    forget_max: int = 200
    """Jobs forgotten in one look."""
    wal: WalSettings = field(default_factory=WalSettings)

    def __post_init__(self) -> None:
        assert 0 < self.record_bytes_max <= PAYLOAD_BYTES_MAX // 2
        assert self.pipeline_max >= 1
        assert self.batch_records_max >= 1
        assert self.part_bytes >= 1
        assert self.entries_kept >= 0
        assert self.reachable_s > self.ping_s
