"""Settings of a worker, beside those every node has.

`cores` is `--cores` on the command line, `HYPERSCALE_WORKER_CORES` in the environment and `cores`
in the `[worker]` table of `hyperscale.toml`; strongest first. Every time is in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import msgspec

from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.config.sections import Reading, Section, numbers_of
from hyperscale.errors import BadInput
from hyperscale.nodes.member import settings as member
from hyperscale.nodes.member.settings import NodeSettings

CORES_MAX = 1_024
# Start only with one that keeps the worker's files closed; with what can be had; without any.
SANDBOXES = ("required", "auto", "off")
# Between the end of a lone worker's load and its parts' new beginning: for clocks and timers.
FENCE_MARGIN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    node: NodeSettings
    cores: int
    memory_mb: int = 0  # of one generator process; 0: no limit of our own
    sandbox: str = "auto"  # around generators, see SANDBOXES
    run_as: str = ""  # the user that generators become, when the worker is root

    # Load ends when no manager has answered for this long; they wait 8 s before they move it.
    fence_s: float = 6.0
    # Deltas come from the generators every 100 ms; half of that keeps their order and adds little.
    flush_s: float = 0.05
    # Managers hear of us at least this often, and generators are given their lease anew.
    contact_s: float = 1.0
    request_timeout_s: float = 2.0

    prepare_s: float = 90.0  # above the engine's own limit, which has the better words
    start_wait_s: float = 300.0  # prepared, and nobody opens the barrier: as long as a dispatch
    # For what was told to end and does not. Managers call a cancel unconfirmed after 5 s.
    kill_grace_s: float = 3.0
    cut_grace_s: float = 1.0  # the same when cut off: all is over before managers move the work
    teardown_s: float = 45.0
    hold_s: float = 120.0  # an ended part waits for its teardown this long without a manager
    drain_s: float = 600.0  # running parts may finish for this long after SIGTERM
    tombstone_s: float = 900.0  # how long a finished part's token is remembered
    starved_s: float = 1.0  # our own loop runs this late: ask managers for more time

    def __post_init__(self) -> None:
        if self.node.role != "worker":
            raise BadInput(f"{self.node.id} has the role {self.node.role!r}, not 'worker'")
        if not 1 <= self.cores <= CORES_MAX:
            raise ValueError(f"cores takes 1 to {CORES_MAX}, not {self.cores}")
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name.endswith("_s") and not value > 0:
                raise ValueError(f"{one.name} must be above zero, not {value:g}")
        if self.memory_mb < 0:
            raise ValueError(f"memory_mb takes nothing below zero, not {self.memory_mb}")
        if self.sandbox not in SANDBOXES:
            raise ValueError(f"sandbox takes {', '.join(SANDBOXES)}, not {self.sandbox!r}")
        if self.run_as and self.sandbox == "off":
            raise ValueError("run_as is a part of the sandbox, which is off")
        if self.contact_s * 2 > self.fence_s:
            raise ValueError(
                f"with fence_s {self.fence_s:g} and contact_s {self.contact_s:g} a worker would "
                "stop its load before it has missed two answers"
            )


# What managers must know of their workers, and workers of their managers.
FENCING = ("fence_s", "cut_grace_s")
SECTION = Section(
    "worker",
    {"cores": 0, "sandbox": "auto", "run_as": "", **numbers_of(WorkerSettings)},
    ("cores", "memory_mb", "sandbox", "run_as"),
)


def sections() -> tuple[Section, ...]:
    from hyperscale.engine.cores import usable_cores

    return (
        member.NODE.without("role", "voters", *member.MANAGERS_ALONE),
        *member.SECTIONS[1:],
        msgspec.structs.replace(SECTION, defaults={**SECTION.defaults, "cores": usable_cores()}),
        Section("jobs", numbers_of(JobSettings)).only("reschedule_s"),
    )


def worker_settings(reading: Reading) -> WorkerSettings:
    """Raises BadInput. `reading` is of `sections()`."""
    check_fencing(reading)
    node = member.node_settings(reading, "worker")
    return reading.build("worker", WorkerSettings, node=node)


def check_fencing(reading: Reading) -> None:
    """A lone worker's load must be over before managers begin it elsewhere, or it is doubled.

    Each side knows its own numbers for sure and the other's from the file they share."""
    fence, grace = (reading.of("worker", name) for name in FENCING)
    moved = reading.of("jobs", "reschedule_s")
    needed_s = fence.value + grace.value + FENCE_MARGIN_S
    if moved.value < needed_s:
        raise BadInput(
            f"jobs.reschedule_s is {moved.value:g} ({moved.origin}), but a worker that is cut off "
            f"may run for {fence.value + grace.value:g} s: worker.fence_s is {fence.value:g} "
            f"({fence.origin}), worker.cut_grace_s is {grace.value:g} ({grace.origin})",
            f"jobs.reschedule_s must be at least {needed_s:g}, on managers and on workers",
        )
