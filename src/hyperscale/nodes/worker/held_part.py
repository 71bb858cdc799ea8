"""One part on this worker: its life, what runs of it, and what is known of it so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Outcome, Part
from hyperscale.engine.messages import Values
from hyperscale.engine.part_run import GeneratorLost
from hyperscale.errors import BadInput, HyperscaleError
from hyperscale.nodes.protocol.parts import (
    PartEnd,
    PartPrepared,
    PartState,
    PartStatus,
    PartTornDown,
)
from hyperscale.nodes.worker.part_life import LifeState, PartLife, TellEnd
from hyperscale.nodes.worker.reporting import PartView
from hyperscale.nodes.worker.runner import LoadEnded, LoadReady, RunningPart
from hyperscale.runtime.host import Task

# A worker looks once a second at least, with each report.
LOOK_S_MAX: Final = 3.0
CONTEXT_JOBS_MAX: Final = 1_000
VALUES_BYTES_MAX: Final = 4_000_000  # half of what a record of a job may hold
_WORDS: Final[dict[LifeState, PartState]] = {
    LifeState.PREPARING: "preparing",
    LifeState.PREPARED: "prepared",
    LifeState.RUNNING: "running",
    LifeState.PAUSED: "paused",
    LifeState.ENDING: "ending",
    LifeState.ENDED: "ended",
    LifeState.TEARING: "ended",
    LifeState.GONE: "ended",
}


class IdleClock:
    """For how long a part has not moved, though nothing explains it.

    The worker judges that, beside the work and by its own clock: a leader that hears nothing of a
    part knows nothing of it. Time in which this process itself did not look (it was suspended, its
    machine slept) says nothing of the generators and does not count.
    """

    def __init__(self, now: float) -> None:
        self.moved = 0
        """Events of the part's own so far: iterations, calls, runs of steps."""
        self._idle_s = 0.0
        self._looked_at = now

    def move(self, amount: int) -> None:
        if amount > 0:
            self.moved += amount
            self._idle_s = 0.0

    def idle_s(self, now: float, *, runs: bool, quiet_s: float) -> float:
        """`runs`: it is to make load. `quiet_s`: for so long from now it need not move, as its
        generators say."""
        passed_s = min(now - self._looked_at, LOOK_S_MAX)
        self._looked_at = now
        if not runs or quiet_s > 0.0:
            self._idle_s = 0.0
        else:
            self._idle_s += max(0.0, passed_s)
        return self._idle_s


class ContextVersions:
    """Which context of each job this worker has seen: an order with an older one is out of date.

    Of the jobs it ran last only; an order of a job nobody remembers is taken at its word.
    """

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}

    def is_old(self, job_id: str, version: int) -> bool:
        return version < self._newest.get(job_id, 0)

    def note(self, job_id: str, version: int) -> None:
        self._newest.pop(job_id, None)
        self._newest[job_id] = version
        if len(self._newest) > CONTEXT_JOBS_MAX:
            del self._newest[next(iter(self._newest))]


@dataclass(slots=True, eq=False)
class HeldPart:
    part: Part
    fence: Fence
    worker: str
    correlation_id: str
    planned_s: float | None
    resume_at_s: float
    cores: int
    life: PartLife
    running: RunningPart
    idle_clock: IdleClock
    cores_done: int = 0  # given back, though the part goes on or is kept
    context: Values = field(default_factory=dict)  # for its start
    run_age_s: float = 0.0
    ready: LoadReady | None = None
    ended: LoadEnded | None = None
    tasks: list[Task] = field(default_factory=list)

    @property
    def key(self) -> tuple[Part, Fence]:
        return self.part, self.fence

    @property
    def state(self) -> PartState:
        return _WORDS[self.life.state]

    @property
    def progress(self) -> float:
        """0..1, as far as anybody can tell."""
        if not self.planned_s:
            return 0.0
        return min(1.0, self.running.elapsed_s / self.planned_s)

    def held(self, now: float) -> PartView:
        running, idle_clock = self.running, self.idle_clock
        runs = self.life.state is LifeState.RUNNING
        return PartView(
            self.part,
            self.fence,
            self.state,
            running.elapsed_s,
            self.cores_done,
            running.test_stop,
            idle_clock.moved,
            idle_clock.idle_s(now, runs=runs, quiet_s=running.quiet_s),
        )

    def status(self) -> PartStatus:
        return PartStatus(
            part=self.part,
            fence=self.fence,
            state=self.state,
            elapsed_s=self.running.elapsed_s,
            prepared=self.prepared() if self.state == "prepared" else None,
            cores_done=self.cores_done,
        )

    def prepared(self) -> PartPrepared:
        assert self.ready is not None
        return PartPrepared(
            part=self.part,
            fence=self.fence,
            worker=self.worker,
            seconds=self.ready.seconds,
            context=self.ready.context,
        )

    def torn_down(self, warning: str) -> PartTornDown:
        return PartTornDown(
            part=self.part,
            fence=self.fence,
            worker=self.worker,
            warning=warning,
            requests=self.running.teardown_requests,
        )

    def end(self, decided: TellEnd) -> PartEnd:
        """How it ended: as somebody decided, with the numbers of what ran."""
        ended = self.ended if decided.answered else None
        if ended is None:
            ended = LoadEnded(
                measured_s=max(0.0, self.running.elapsed_s - self.resume_at_s),
                prepare_s=0.0 if self.ready is None else self.ready.seconds,
                state=self.running.snapshot(),
            )
        outcome = decided.outcome or ended.outcome
        by_order = decided.outcome is not None
        return PartEnd(
            part=self.part,
            fence=self.fence,
            worker=self.worker,
            outcome=outcome,
            measured_s=ended.measured_s,
            iterations=ended.iterations,
            peak_vus=ended.peak_vus,
            prepare_s=ended.prepare_s,
            state=ended.state,
            context=ended.context,
            provided=ended.provided,
            error=decided.reason if by_order else ended.error,
            hint="" if by_order else ended.hint,
            bad_input=not by_order and ended.bad_input,
            warnings=ended.warnings,
            lost=() if by_order else ended.lost,
            test_stop=ended.test_stop,
        )


def check_values(workflow: str, *handed_on: Values) -> None:
    """Raises BadInput for values that would not fit into a message beside the numbers."""
    size_bytes = sum(len(stamped.value) for values in handed_on for stamped in values.values())
    if size_bytes > VALUES_BYTES_MAX:
        raise BadInput(
            f"{workflow} hands on {size_bytes / 1e6:,.0f} MB of values, and at most "
            f"{VALUES_BYTES_MAX / 1e6:,.0f} MB can travel between machines",
            "pass on what is needed to find the data, not the data",
        )


def portable(workflow: str, ended: LoadEnded) -> LoadEnded:
    """As it is, or failed for what it wants to hand on; its numbers are kept."""
    try:
        check_values(workflow, ended.context, ended.provided)
    except BadInput as error:
        refused = failed(error)
        return replace(
            ended,
            outcome=refused.outcome,
            error=refused.error,
            hint=refused.hint,
            bad_input=True,
            context={},
            provided={},
        )
    return ended


def failed(error: Exception) -> LoadEnded:
    """A part that could not be carried out, in words for its author."""
    if isinstance(error, GeneratorLost):
        outcome: Outcome = "cut off" if error.again else "failed"
        return LoadEnded(outcome=outcome, error=error.message, lost=error.lost)
    if isinstance(error, HyperscaleError):
        return LoadEnded(
            outcome="failed",
            error=error.message,
            hint=error.hint,
            bad_input=isinstance(error, BadInput),
        )
    return LoadEnded(outcome="failed", error=f"the worker could not run it: {error!r}")
