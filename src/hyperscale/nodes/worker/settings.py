"""Settings of a worker, beside those every node has.

`cores` is `--cores` on the command line, `HYPERSCALE_WORKER_CORES` in the environment and `cores`
in the `[worker]` table of `hyperscale.toml`; strongest first. Every time is in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches

from hyperscale.errors import BadInput
from hyperscale.nodes.member.settings import NodeSettings

ENV_PREFIX = "HYPERSCALE_WORKER_"
TABLE = "worker"
CORES_MAX = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    node: NodeSettings
    cores: int
    memory_mb: int = 0  # of one generator process; 0: no limit of our own

    # Load ends when no manager has answered for this long; they wait 8 s before they move it.
    fence_s: float = 6.0
    # Deltas come from the generators every 100 ms; half of that keeps their order and adds little.
    flush_s: float = 0.05
    # Managers hear of us at least this often, and generators are given their leash anew.
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
    starved_s: float = 1.0  # our own loop runs this late: ask managers for patience

    def __post_init__(self) -> None:
        if self.node.role != "worker":
            raise BadInput(f"{self.node.id} has the role {self.node.role!r}, not 'worker'")
        if not 1 <= self.cores <= CORES_MAX:
            raise BadInput(f"--cores takes 1 to {CORES_MAX}, not {self.cores}")
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name.endswith("_s") and not value > 0:
                raise BadInput(f"worker setting {one.name} must be above zero, not {value:g}")
        if self.memory_mb < 0:
            raise BadInput(f"--memory-mb takes nothing below zero, not {self.memory_mb}")
        if self.contact_s * 2 > self.fence_s:
            raise BadInput(
                f"fence_s is {self.fence_s:g}, but managers are told only every "
                f"{self.contact_s:g} s",
                "a worker must miss several answers before it stops its load: raise fence_s",
            )


_KNOWN = {one.name: one for one in fields(WorkerSettings) if one.name != "node"}
NAMES = tuple(_KNOWN)


def read_worker_settings(
    node: NodeSettings,
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    table: Mapping[str, object],
) -> WorkerSettings:
    """Raises BadInput. `flags` and the `[worker]` table may name any of `NAMES`."""
    values: dict[str, object] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in _KNOWN:
            near = get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it knows {', '.join(sorted(NAMES))}"
            raise BadInput(f"[{TABLE}] has no setting {key!r}", hint)
        values[name] = value
    values |= {
        name: environ[ENV_PREFIX + name.upper()]
        for name in NAMES
        if environ.get(ENV_PREFIX + name.upper())
    }
    values |= {name: flags[name] for name in NAMES if flags.get(name) not in (None, "")}
    numbers = {name: _number(name, value) for name, value in values.items()}
    if "cores" not in numbers:
        from hyperscale.engine.cores import usable_cores

        numbers["cores"] = usable_cores()
    return WorkerSettings(node=node, **numbers)  # type: ignore[arg-type]  # made whole by `_number`


def _number(name: str, value: object) -> float | int:
    whole = name in ("cores", "memory_mb")
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        return int(value) if whole else float(value)
    except ValueError:
        wanted = "a whole number" if whole else "a number"
        raise BadInput(f"worker setting {name} takes {wanted}, not {value!r}") from None
