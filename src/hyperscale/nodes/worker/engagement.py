"""One part on this worker: its life, its performer, and what is known of it so far."""

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
from hyperscale.nodes.worker.part_life import Conclude, PartLife, State
from hyperscale.nodes.worker.reporting import Held
from hyperscale.nodes.worker.silence import Silence
from hyperscale.nodes.worker.stage import Ended, Performer, Ready
from hyperscale.runtime.host import Task

VALUES_BYTES_MAX: Final = 4_000_000  # half of what a record of a job may hold
_WORDS: Final[dict[State, PartState]] = {
    State.PREPARING: "preparing",
    State.PREPARED: "prepared",
    State.RUNNING: "running",
    State.PAUSED: "paused",
    State.ENDING: "ending",
    State.ENDED: "ended",
    State.TEARING: "ended",
    State.GONE: "ended",
}


@dataclass(slots=True, eq=False)
class Engagement:
    part: Part
    fence: Fence
    worker: str
    correlation_id: str
    planned_s: float | None
    resume_at_s: float
    cores: int
    life: PartLife
    performer: Performer
    silence: Silence
    cores_done: int = 0  # given back, though the part goes on or is kept
    context: Values = field(default_factory=dict)  # for its start
    run_age_s: float = 0.0
    ready: Ready | None = None
    ended: Ended | None = None
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
        return min(1.0, self.performer.elapsed_s / self.planned_s)

    def held(self, now: float) -> Held:
        performer, silence = self.performer, self.silence
        runs = self.life.state is State.RUNNING
        return Held(
            self.part,
            self.fence,
            self.state,
            performer.elapsed_s,
            self.cores_done,
            performer.test_stop,
            silence.moved,
            silence.idle_s(now, runs=runs, quiet_s=performer.quiet_s),
        )

    def status(self) -> PartStatus:
        return PartStatus(
            part=self.part,
            fence=self.fence,
            state=self.state,
            elapsed_s=self.performer.elapsed_s,
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
            requests=self.performer.teardown_requests,
        )

    def end(self, conclusion: Conclude) -> PartEnd:
        """How it ended: as somebody decided, with the numbers of the performer."""
        ended = self.ended if conclusion.answered else None
        if ended is None:
            ended = Ended(
                measured_s=max(0.0, self.performer.elapsed_s - self.resume_at_s),
                prepare_s=0.0 if self.ready is None else self.ready.seconds,
                state=self.performer.snapshot(),
            )
        outcome = conclusion.outcome or ended.outcome
        decided = conclusion.outcome is not None
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
            error=conclusion.reason if decided else ended.error,
            hint="" if decided else ended.hint,
            bad_input=not decided and ended.bad_input,
            warnings=ended.warnings,
            lost=() if decided else ended.lost,
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


def portable(workflow: str, ended: Ended) -> Ended:
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


def failed(error: Exception) -> Ended:
    """A part that could not be carried out, in words for its author."""
    if isinstance(error, GeneratorLost):
        outcome: Outcome = "cut off" if error.again else "failed"
        return Ended(outcome=outcome, error=error.message, lost=error.lost)
    if isinstance(error, HyperscaleError):
        return Ended(
            outcome="failed",
            error=error.message,
            hint=error.hint,
            bad_input=isinstance(error, BadInput),
        )
    return Ended(outcome="failed", error=f"the worker could not run it: {error!r}")
