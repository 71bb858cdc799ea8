"""The replicated state of jobs: the outcome of their records, the same on every manager.

Only `apply` changes it. Everything else reads. Results and contexts are bytes that nobody
here looks into.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import invariant
from hyperscale.cluster.jobs.layers import layers
from hyperscale.cluster.jobs.lifecycle import Lifecycle, LifecycleState
from hyperscale.cluster.jobs.records import (
    Action,
    Finished,
    JobStatus,
    Needs,
    Part,
    PartEnded,
    Placement,
    Submitted,
)
from hyperscale.cluster.jobs.unheard import ANY_NUMBER

Ending = Literal["", "stop", "cancel", "timeout"]
"""Why a job is being brought to its end before it came there by itself."""


@dataclass(slots=True)
class Loss:
    """A worker went away with a part, or processes of it died. What it had reported is kept and
    counted."""

    worker: str
    at_s: float  # of the workflow's load time
    cores: int
    iterations: int
    unheard: int  # iterations that may have been done as well
    result: bytes
    reason: str
    age_s: float  # the job's, when it was recorded
    under_load: bool  # it ran a test: something of the plan was not delivered
    resumed_at_s: float | None = None  # load time at which it went on
    generators: str = ""  # what died of it, in words, where the worker lives
    fence: Fence | None = None  # of an attempt whose worker may come back and tell more


@dataclass(slots=True)
class PartState:
    number: int
    first_core: int
    cores: int
    attempts: int = 0
    live: Placement | None = None
    holding: Placement | None = None  # ended; its processes are kept for teardown()
    ended: PartEnded | None = None
    losses: list[Loss] = field(default_factory=list)
    given_up: str = ""
    iterations_done: int = 0  # in earlier attempts; a piece of a part begins with its share
    left_out: int = 0  # iterations among them that nobody made after all
    made_up: int = 0  # of these, how many the last attempt was given to make
    slots: tuple[int, ...] = ()  # of its last placement

    @property
    def is_final(self) -> bool:
        return self.ended is not None or bool(self.given_up)

    def awaited(self, fence: Fence) -> Loss | None:
        """The loss of that attempt, if its worker has not told how far it had come."""
        return next((loss for loss in self.losses if loss.fence == fence), None)

    @property
    def is_untold(self) -> bool:
        """Nobody knows how many of its iterations were made."""
        return self.iterations_done >= ANY_NUMBER  # `left_out` does not make up for that

    @property
    def is_unplaced(self) -> bool:
        """To be placed again."""
        return self.live is None and not self.is_final


@dataclass(slots=True)
class WorkflowState:
    needs: Needs
    layer: int
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    parts: dict[int, PartState] = field(default_factory=dict)
    total_cores: int = 0
    epoch: int = 0  # of its last dispatch
    dispatched_age_s: float = 0.0
    tries: int = 0  # attempts used up by parts that were since returned
    excluded: set[str] = field(default_factory=set)  # workers that were lost with a part of it
    context: bytes = b""
    started: bool = False
    started_age_s: float = 0.0
    started_paused_s: float = 0.0  # how long the job had been paused by then
    steered: dict[Action, int] = field(default_factory=dict)
    """Its VUs ("scale") and the percentage of its planned rate ("rate"), where not as planned."""
    returned: str = ""  # why parts went without a worker, when nobody was lost
    error: str = ""
    torn_down: bool = False
    teardown_requests: int = 0
    warning: str = ""

    @property
    def is_over(self) -> bool:
        return self.lifecycle.is_over

    @property
    def is_winding_down(self) -> bool:
        """Its parts are to end; nothing of it is placed or started any more."""
        return self.is_over or self.lifecycle.state is LifecycleState.CANCELLING

    @property
    def needs_teardown(self) -> bool:
        if self.torn_down or not self.needs.tears_down:
            return False
        return self.started or any(part.holding for part in self.parts.values())

    @property
    def is_settled(self) -> bool:
        """Nothing of it runs, and nothing of it will."""
        return self.is_over and not self.is_live and not self.needs_teardown

    @property
    def is_live(self) -> bool:
        return any(part.live is not None for part in self.parts.values())

    def live(self) -> list[Placement]:
        return [part.live for part in self.parts.values() if part.live is not None]

    def holder(self) -> Placement | None:
        """Where teardown() is to run."""
        if not self.needs.tears_down:
            return None
        return next((p.holding for p in self.parts.values() if p.holding is not None), None)

    def unplaced(self) -> list[PartState]:
        return [part for part in self.parts.values() if part.is_unplaced]

    def results(self) -> list[bytes]:
        """All that counts of what was measured, each once."""
        found = [loss.result for part in self.parts.values() for loss in part.losses if loss.result]
        return found + [part.ended.result for part in self.parts.values() if part.ended is not None]


@dataclass(frozen=True, slots=True)
class Mark:
    workflow: str
    at_s: float
    text: str


MARKS_MAX = 256
"""Of a job. One that is steered by a program, or loses workers all the time, has no more."""


@dataclass(slots=True)
class JobState:
    submitted: Submitted
    layers: tuple[tuple[str, ...], ...]
    workflows: dict[str, WorkflowState]
    age_s: float = 0.0  # at its last record
    epoch: int = 0  # dispatches so far
    slots: int = 0  # numbers of cores used so far
    dispatched_age_s: float | None = None  # of the first dispatch
    begun_age_s: float | None = None  # of one that was held: when it was told to begin
    ending: Ending = ""
    reason: str = ""
    by: str = ""
    paused: bool = False
    paused_age_s: float = 0.0  # since when, if paused
    paused_s: float = 0.0  # in total, without the present pause
    command_ids: dict[str, None] = field(default_factory=dict)  # the latest ones, oldest first
    extended: dict[str, float] = field(default_factory=dict)  # by worker
    judged: dict[tuple[str, int], tuple[float | None, float | None]] = field(default_factory=dict)
    """How thresholds stand, by workflow and number: bad since when, crossed with what."""
    unconfirmed: list[str] = field(default_factory=list)  # workers that did not confirm their end
    marks: list[Mark] = field(default_factory=list)
    finished: Finished | None = None

    @property
    def job_id(self) -> str:
        return self.submitted.job_id

    @property
    def is_over(self) -> bool:
        return self.finished is not None

    @property
    def is_held(self) -> bool:
        """Its load must not begin yet."""
        return self.submitted.held and self.begun_age_s is None

    @property
    def is_settled(self) -> bool:
        return all(workflow.is_settled for workflow in self.workflows.values())

    @property
    def status(self) -> JobStatus:
        if self.finished is not None:
            return self.finished.status
        if self.is_settled:
            return "completing"
        if self.ending:
            return "cancelling"
        if any(w.started or w.is_over for w in self.workflows.values()):
            return "running"
        if any(w.lifecycle.state is LifecycleState.DISPATCHED for w in self.workflows.values()):
            return "dispatching"
        return "queued"

    @property
    def extension_s(self) -> float:
        """The longest of its workers' extensions, never more than the time it was given."""
        return min(self.submitted.timeout_s, max(self.extended.values(), default=0.0))

    def mark(self, workflow: str, at_s: float, text: str) -> None:
        """For the timeline of a workflow, at its load time."""
        if len(self.marks) < MARKS_MAX:
            self.marks.append(Mark(workflow, at_s, text))

    def run_age_s(self, age_s: float) -> float:
        """How long ago its load began, when the job is that old: with the first workflow."""
        starts = (w.started_age_s for w in self.workflows.values() if w.started)
        return max(0.0, age_s - min(starts, default=age_s))

    def load_age_s(self, workflow: WorkflowState) -> float:
        """The job's age when the measured load of a workflow that was started began, or will."""
        needs, began = workflow.needs, workflow.started_age_s
        return began + max(0.0, needs.start_time_s - self.run_age_s(began)) + needs.warmup_s

    def current_layer(self) -> int | None:
        """The first layer with something left to do; the next one starts after all of it."""
        unsettled = (w.layer for w in self.workflows.values() if not w.is_settled)
        return min(unsettled, default=None)

    def outcome(self) -> tuple[JobStatus, str]:
        """How it ends, given how its workflows ended."""
        done = [w.lifecycle.succeeded for w in self.workflows.values()]
        if all(done):
            return "completed", ""
        if self.ending == "timeout":
            return "timeout", self.reason
        if self.ending:
            return "cancelled", self.reason
        errors = [f"{name}: {w.error}" for name, w in self.workflows.items() if w.error]
        return ("partial" if any(done) else "failed"), "; ".join(errors)


@dataclass(frozen=True, slots=True)
class Condense:
    """What is kept of the bytes of a job once its end is recorded, by whoever can read them."""

    body: Callable[[bytes], bytes] = lambda body: body
    result: Callable[[bytes], bytes] = lambda result: result


@dataclass(slots=True)
class ReplicatedState:
    """All jobs, in the order they came."""

    condense: Condense = field(default_factory=Condense)
    jobs: dict[str, JobState] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)  # idempotency key -> job
    by_worker: dict[str, dict[Part, Placement]] = field(default_factory=dict)
    """Where cores are in use: parts that run, and those kept for teardown."""

    def placement(self, part: Part) -> Placement | None:
        job = self.jobs.get(part.job_id)
        workflow = job.workflows.get(part.workflow) if job else None
        state = workflow.parts.get(part.number) if workflow else None
        return None if state is None else state.live

    def holder(self, part: Part, fence: Fence) -> str:
        """The worker of that attempt, whether it runs, is kept for teardown or was lost."""
        job = self.jobs.get(part.job_id)
        workflow = job.workflows.get(part.workflow) if job else None
        state = workflow.parts.get(part.number) if workflow else None
        if state is None:
            return ""
        for placement in (state.live, state.holding):
            if placement is not None and placement.fence == fence:
                return placement.worker
        loss = state.awaited(fence)
        return "" if loss is None else loss.worker

    def forget(self, job_id: str) -> bool:
        job = self.jobs.pop(job_id, None)
        if job is None:
            return False
        if self.keys.get(job.submitted.idempotency_key) == job_id:
            del self.keys[job.submitted.idempotency_key]
        for workflow in job.workflows.values():
            for part in workflow.parts.values():
                for placement in (part.live, part.holding):
                    if placement is not None:
                        self.free(placement)
        return True

    def occupy(self, placement: Placement) -> None:
        held = self.by_worker.setdefault(placement.worker, {})
        invariant(placement.part not in held, "a part is placed once on a worker")
        held[placement.part] = placement

    def free(self, placement: Placement) -> None:
        held = self.by_worker.get(placement.worker, {})
        invariant(held.get(placement.part) == placement, "only cores in use become free")
        del held[placement.part]
        if not held:
            del self.by_worker[placement.worker]


def new_job(record: Submitted) -> JobState:
    """Raises ValueError for a job whose workflows cannot be ordered."""
    order = layers(record.workflows)
    by_name = {needs.name: needs for needs in record.workflows}
    return JobState(
        submitted=record,
        layers=order,
        workflows={
            name: WorkflowState(needs=by_name[name], layer=layer)
            for layer, names in enumerate(order)
            for name in names
        },
        age_s=record.age_s,
    )
