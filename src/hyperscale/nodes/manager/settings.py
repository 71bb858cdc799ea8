"""Settings of a manager, beside those every node has.

Its own stand in the table `[manager]`, those of jobs in `[jobs]`, those of their records in
`[records]`; all of them also as variables and after `--set`, see `config.sections`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.config.sections import Reading, Section, numbers_of
from hyperscale.errors import BadInput
from hyperscale.ledger.records.settings import RecordsSettings
from hyperscale.nodes.client.managers import REPEATED_S
from hyperscale.nodes.member import settings as member
from hyperscale.nodes.member.access import OTHERS
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.worker import settings as worker


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSettings:
    node: NodeSettings
    jobs: JobSettings = field(default_factory=JobSettings)
    records: RecordsSettings = field(default_factory=RecordsSettings)

    window_s: float = 0.1
    """How often a manager sends the numbers of running jobs to clients that watch."""

    snapshot_wait_s: float = 3.0
    """A new leader shows a running job when its workers have told all of it, or after this."""

    progress_per_s_max: int = 15_000
    """Deltas taken in a second. Workers are asked to report less often from 70 % of it: a thousand
    of them that report ten times a second are not, and one core holds them
    (benchmarks/cluster_ingest.py). A manager that runs late asks for less whatever this says."""

    jobs_of_others: str = "read"
    """What a client may do with the job of another client: "steer" it, "read" of it, or "none".
    Whose a job is follows from certificates; without them it is nobody's, and all may steer it."""

    only_gates: bool = False
    """Clients are refused: they are told where the gates are."""

    def __post_init__(self) -> None:
        if self.jobs_of_others not in OTHERS:
            raise ValueError(f"jobs_of_others takes one of {', '.join(OTHERS)}")
        if self.node.role != "manager":
            raise BadInput(f"{self.node.id} has the role {self.node.role!r}, not 'manager'")
        if not self.node.voters:
            raise BadInput(
                f"{self.node.id} has no voters",
                "name every manager with --voters; a lone manager names itself",
            )
        for name in ("window_s", "progress_per_s_max"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above zero")


SECTIONS = (
    member.NODE.without("role"),
    *member.SECTIONS[1:],
    Section(
        "manager",
        {**numbers_of(ManagerSettings), "jobs_of_others": "read", "only_gates": False},
        may_be_zero=("snapshot_wait_s",),
    ),
    Section("jobs", numbers_of(JobSettings)),
    Section("records", numbers_of(RecordsSettings)),
    worker.SECTION.only(*worker.FENCING),
)


def manager_settings(reading: Reading) -> ManagerSettings:
    """Raises BadInput. `reading` is of `SECTIONS`."""
    worker.check_fencing(reading)
    _check_keys(reading)
    return reading.build(
        "manager",
        ManagerSettings,
        node=member.node_settings(reading, "manager"),
        jobs=reading.build("jobs", JobSettings),
        records=reading.build("records", RecordsSettings),
    )


def _check_keys(reading: Reading) -> None:
    """A job that is forgotten while its client still asks for it would be made once more."""
    kept = reading.of("jobs", "key_kept_s")
    if kept.value < REPEATED_S:
        raise BadInput(
            f"jobs.key_kept_s is {kept.value:g} ({kept.origin}), but a client repeats a submission "
            f"for up to {REPEATED_S:g} s, and would make a second job of it",
            f"jobs.key_kept_s must be at least {REPEATED_S:g}",
        )
