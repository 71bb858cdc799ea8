"""What a worker asks of whatever runs its parts: the engine's processes, or the simulator's.

A runner has one slot per core. A running part has slots of its own: it is prepared, started,
steered, ended, perhaps torn down, and closed. Parts of one job may share slots; after the last of
them is closed a slot is as good as new. Users' code and values are opaque on this side of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from hyperscale.cluster.jobs.records import Action, Outcome
from hyperscale.engine.messages import Values
from hyperscale.metrics.delta import Delta
from hyperscale.nodes.protocol.parts import DispatchPart, TestStop

Progressed = Callable[[float, int, Delta], None]
"""Hears what one core did, by its number within the workflow, up to a moment of load time."""


class MachineUse(NamedTuple):
    cpu_percent: float
    memory_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReady:
    """The author's code is loaded and waits at the barrier."""

    seconds: float
    context: Values = field(default_factory=dict)  # what setup() wrote


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadEnded:
    """How the load of a part went, in its own words; see `PartEnd` for the fields."""

    outcome: Outcome = "completed"
    measured_s: float = 0.0
    iterations: int = 0
    peak_vus: int = 0
    prepare_s: float = 0.0
    state: bytes = b""
    context: Values = field(default_factory=dict)
    provided: Values = field(default_factory=dict)
    error: str = ""
    hint: str = ""
    bad_input: bool = False
    warnings: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    test_stop: TestStop | None = None


class RunningPart(Protocol):
    @property
    def elapsed_s(self) -> float:
        """Load time of the workflow: a part that goes on elsewhere begins where it was."""
        ...

    @property
    def quiet_s(self) -> float:
        """For how long from now nothing need move, as its generators say; 0: something should."""
        ...

    @property
    def cores_done(self) -> int:
        """How many of its slots have no more load to make; it never falls."""
        ...

    @property
    def teardown_requests(self) -> int:
        """How many requests teardown() made."""
        ...

    @property
    def test_stop(self) -> TestStop | None:
        """The test's own code asked for the end of the run."""
        ...

    async def prepare(self) -> LoadReady:
        """Raises HyperscaleError with what the author should know."""
        ...

    def start(self, context: Values, run_age_s: float = 0.0) -> None:
        """Begin the load; `context` is what setup() wrote, wherever it ran. The load of the job
        began `run_age_s` ago."""
        ...

    async def ended(self) -> LoadEnded:
        """Return when the load that was started is over, for whatever reason."""
        ...

    async def teardown(self) -> str:
        """Run teardown(); returns what went wrong, or nothing."""
        ...

    def steer(self, action: Action, amount: int = 0) -> None:
        """Take note and return. `cancel` ends at once, `stop` lets iterations finish; `amount` of
        a scaling is by how many VUs the whole workflow changes, of a rate the percentage of the
        planned one."""
        ...

    def lease(self, seconds: float) -> None:
        """The load ends by itself unless this is said again in time."""
        ...

    def kill(self) -> None:
        """End everything of this part now; what is awaited returns soon after."""
        ...

    def snapshot(self) -> bytes:
        """All that was measured so far, mergeable."""
        ...

    async def close(self) -> None:
        """Give the slots back; nothing of the part is left. Safe to call again."""
        ...


class Runner(Protocol):
    async def open(self) -> None:
        """Raises OSError or HyperscaleError when nothing can be run here."""
        ...

    def run(
        self, order: DispatchPart, slots: tuple[int, ...], progressed: Progressed
    ) -> RunningPart:
        """Run a part on these slots of its job, which are free or its own.
        Raises HyperscaleError for an order that makes no sense."""
        ...

    def use(self) -> MachineUse: ...

    async def close(self) -> None:
        """End everything, whatever state it is in."""
        ...
