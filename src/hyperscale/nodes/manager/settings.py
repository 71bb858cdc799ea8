"""Settings of a manager, beside those every node has."""

from __future__ import annotations

from dataclasses import dataclass, field

from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.errors import BadInput
from hyperscale.ledger.records.settings import RecordsSettings
from hyperscale.nodes.member.settings import NodeSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSettings:
    node: NodeSettings
    jobs: JobSettings = field(default_factory=JobSettings)
    records: RecordsSettings = field(default_factory=RecordsSettings)

    window_s: float = 0.1
    """Numbers of running jobs reach whoever watches this often."""

    snapshot_wait_s: float = 3.0
    """A new leader shows a running job when its workers have told all of it, or after this."""

    progress_per_s_max: int = 8_000
    """Deltas taken in; beyond it workers are asked to report less often. One costs a manager a
    tenth of a millisecond and more (benchmarks/cluster.py ingest)."""

    def __post_init__(self) -> None:
        if self.node.role != "manager":
            raise BadInput(f"{self.node.id} has the role {self.node.role!r}, not 'manager'")
        if not self.node.voters:
            raise BadInput(
                f"{self.node.id} has no voters",
                "name every manager with --voters; a lone manager names itself",
            )
