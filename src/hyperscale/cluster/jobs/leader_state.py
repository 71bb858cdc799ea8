"""What a leader knows beside the replicated state: workers, queue, deadlines, undecided records.

A decision is a record. From the moment it is handed over until it is applied or has failed it is
under way, and the same matter is not decided again. This state dies with the leadership; the next
leader starts from the replicated state and from what workers report.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import invariant
from hyperscale.cluster.jobs.allocation import Allocation
from hyperscale.cluster.jobs.deadlines import Deadlines
from hyperscale.cluster.jobs.effects import Answer, Append, Effect, LogEvent
from hyperscale.cluster.jobs.health import HealthTracker
from hyperscale.cluster.jobs.led_time import LedTime
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.pool import Pool
from hyperscale.cluster.jobs.queue import Queue
from hyperscale.cluster.jobs.records import (
    Aged,
    Dispatched,
    Extended,
    GivenUp,
    JobRecord,
    Judged,
    Part,
    PartEnded,
    PartLost,
    Placement,
    Returned,
    Steered,
    Submitted,
    ToldLate,
)
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.cluster.jobs.state import Condense, JobState, ReplicatedState, WorkflowState
from hyperscale.cluster.jobs.timeouts import Idle, paused_s, should_move

Token = tuple[Part, Fence]
Matter = tuple[str, ...]


def token(placement: Placement) -> Token:
    return placement.part, placement.fence


def matter(record: JobRecord) -> Matter:
    """What a record decides: of each matter at most one record is under way."""
    match record:
        case PartEnded() | PartLost() | GivenUp():
            return "part", record.job_id, record.part.workflow, str(record.part.number)
        case ToldLate():
            fence = "-".join(map(str, record.fence))
            return "told", record.job_id, record.part.workflow, str(record.part.number), fence
        case Returned(parts=parts) if parts:
            return "part", record.job_id, record.workflow, str(parts[0])
        case Submitted():
            return "submit", record.job_id
        case Steered():
            return "steer", record.job_id, record.action, str(record.amount), record.workflow
        case Extended():
            return "extend", record.job_id, record.worker
        case Aged():
            return "age", record.job_id
        case Judged():
            return "judge", record.job_id, record.workflow, str(record.number)
    workflow = getattr(record, "workflow", None)
    return ("job", record.job_id) if workflow is None else ("workflow", record.job_id, workflow)


@dataclass(frozen=True, slots=True)
class Refusal:
    no_room: bool
    reason: str
    for_good: bool = False  # no worker could be sent it


@dataclass(slots=True)
class Watch:
    """What this manager knows of a job beside its records."""

    arrival: int
    born: float  # in led time
    ahead_s: dict[str, float] = field(default_factory=dict)
    """By how much a workflow's load time is ahead of what ages tell: managers were down."""

    # While leading.
    epoch: int = 0
    slots: int = 0
    prepared: dict[Token, bytes] = field(default_factory=dict)
    sent: dict[Token, float] = field(default_factory=dict)
    refused: dict[Token, Refusal] = field(default_factory=dict)
    started: set[Token] = field(default_factory=set)
    idle: dict[Token, Idle] = field(default_factory=dict)
    """Parts that stand still, as their workers say."""
    unheard: set[str] = field(default_factory=set)  # workers that held parts of it before we led
    hears_until: float = 0.0
    ends_told_by: float = 0.0
    patient_since: float = 0.0  # what has not moved before is not held against it
    ready: dict[str, set[Token]] = field(default_factory=dict)
    """By workflow: prepared or started. Some may be gone since, so there are never too few."""
    stopped: set[Token] = field(default_factory=set)
    cancelled: dict[Token, float] = field(default_factory=dict)
    being_lost: dict[Token, str] = field(default_factory=dict)
    teardown: dict[Token, float] = field(default_factory=dict)
    untold: dict[Token, float] = field(default_factory=dict)
    """Since when a worker has said that a part has ended, and not how."""
    unplaced_since: dict[Part, float] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)
    """By worker: parts of the job that it did not take, one after the other."""
    unsendable: dict[str, str] = field(default_factory=dict)  # workflow -> why
    begins_at: float = 0.0  # its load, when a gate said so
    end_wanted: Steered | None = None
    making_results: bool = False

    def is_leaving(self, placement: Placement) -> bool:
        """Its loss is on its way into the log: it must not be started any more."""
        if not self.refused and not self.being_lost:
            return False
        return token(placement) in self.refused or token(placement) in self.being_lost

    def is_ready(self, part: Part, fence: Fence) -> None:
        self.ready.setdefault(part.workflow, set()).add((part, fence))

    def may_start(self, workflow: WorkflowState) -> bool:
        """Whether it is worth looking if all of its parts are ready."""
        return len(self.ready.get(workflow.needs.name, ())) >= len(workflow.parts)

    def reset(self) -> None:
        self.epoch = 0
        self.slots = 0
        self.end_wanted = None
        self.making_results = False
        for known in (self.prepared, self.sent, self.cancelled, self.being_lost, self.teardown):
            known.clear()
        self.refused.clear()
        self.untold.clear()
        self.started.clear()
        self.idle.clear()
        self.unheard.clear()
        self.hears_until = self.ends_told_by = self.begins_at = 0.0
        self.ready.clear()
        self.stopped.clear()
        self.unplaced_since.clear()
        self.refusals.clear()
        self.unsendable.clear()


class LeaderState:
    def __init__(
        self, settings: JobSettings, dice: random.Random, condense: Condense | None = None
    ) -> None:
        self.settings = settings
        self.replicated = ReplicatedState(condense or Condense())
        self.pool = Pool(settings, self.replicated, dice)
        self.queue = Queue(settings)
        self.health = HealthTracker(
            settings.evict_share, settings.evict_population_min, settings.evict_hold_s
        )
        self.deadlines = Deadlines()
        self.watches: dict[str, Watch] = {}
        self.led = LedTime()
        self.leading = False
        self.term = 0
        self.under_way: dict[Matter, JobRecord] = {}
        self.not_before: dict[Matter, float] = {}
        self.in_doubt: dict[Matter, JobRecord] = {}
        self.dirty: dict[str, None] = {}
        self.unplaced_jobs: set[str] = set()
        self.placement_due = False
        self.transitions: Counter[tuple[LifecycleState, LifecycleState]] = Counter()
        self.transitions_refused = 0
        self.time_checks = 0
        self.decided_at = 0.0
        self._arrivals = 0
        self._out: list[Effect] = []

    # -- effects ---------------------------------------------------------------------------------

    def emit(self, effect: Effect) -> None:
        self._out.append(effect)

    def answer(self, value: object) -> None:
        self._out.append(Answer(value))

    def log(self, job_id: str, event: str, level: str = "info", **facts: object) -> None:
        self.emit(LogEvent(job_id, event, facts, level))

    def drain(self) -> list[Effect]:
        out, self._out = self._out, []
        return out

    def append(self, now: float, record: JobRecord) -> bool:
        """False when the matter is under way already, or has just failed."""
        invariant(self.leading, "only a leader decides")
        about = matter(record)
        if self.is_under_way(now, about):
            return False
        self.under_way[about] = record
        if isinstance(record, Dispatched):
            self.pool.reserve(record.placements)
        self.emit(Append(record))
        return True

    def is_under_way(self, now: float, about: Matter) -> bool:
        return about in self.under_way or now < self.not_before.get(about, now)

    def arrived(self, record: JobRecord) -> bool:
        """The record is applied, or not written: its matter may be decided again."""
        about = matter(record)
        if self.under_way.get(about) != record:
            return False
        del self.under_way[about]
        if isinstance(record, Dispatched):
            self.pool.release(record.placements)
        return True

    def not_written(self, now: float, record: JobRecord) -> bool:
        """Its matter may be decided anew, a little later."""
        if not self.arrived(record):
            return False
        again = now + self.settings.append_retry_s
        self.not_before[matter(record)] = again
        self.deadlines.set(("again", *matter(record)), again)
        return True

    def doubtful(self, now: float, record: JobRecord) -> None:
        """It may yet appear, so nothing else may be decided: the same record is handed over again.
        Whichever copy comes first takes effect, the other finds its matter settled."""
        about = matter(record)
        if self.under_way.get(about) == record:
            self.in_doubt[about] = record
            self.deadlines.set(("again", *about), now + self.settings.append_unknown_s)

    def again(self, about: Matter) -> None:
        self.not_before.pop(about, None)
        record = self.in_doubt.pop(about, None)
        if record is not None and self.under_way.get(about) == record:
            self.emit(Append(record))

    # -- jobs ------------------------------------------------------------------------------------

    def watch(self, now: float, job_id: str) -> Watch:
        watch = self.watches.get(job_id)
        if watch is None:
            self._arrivals += 1
            watch = self.watches[job_id] = Watch(self._arrivals, self.led.at(now))
        return watch

    def next_epoch(self, job: JobState) -> int:
        watch = self.watches[job.job_id]
        watch.epoch = max(watch.epoch, job.epoch) + 1
        return watch.epoch

    def next_slot(self, job: JobState) -> int:
        return max(self.watches[job.job_id].slots, job.slots)

    def use_slots(self, job: JobState, allocation: Iterable[Allocation]) -> None:
        used = (slot for one in allocation for _, slots in one for slot in slots)
        self.watches[job.job_id].slots = 1 + max(used)

    def age_s(self, now: float, job_id: str) -> float:
        watch = self.watches.get(job_id)
        return 0.0 if watch is None else max(0.0, self.led.at(now) - watch.born)

    def learn_age(self, now: float, watch: Watch, age_s: float) -> None:
        """A record says how old the job was at least."""
        watch.born = min(watch.born, self.led.at(now) - age_s)

    def idle_s(self, placement: Placement) -> float:
        """For how long a part has not moved, as its worker says; 0 where it need not."""
        job = self.replicated.jobs[placement.part.job_id]
        watch = self.watches[job.job_id]
        told = watch.idle.get(token(placement))
        if told is None or not should_move(job, job.workflows[placement.part.workflow]):
            return 0.0
        return told.since(watch.patient_since)

    def hear_first(self, now: float) -> None:
        """A new leader applies no limit to a job before its workers could tell what happened
        before it led."""
        for worker, held in self.replicated.by_worker.items():
            for part in held:
                watch = self.watches[part.job_id]
                watch.unheard.add(worker)
                watch.hears_until = now + self.settings.register_s

    def hears_until(self, job: JobState) -> float:
        return self.watches[job.job_id].hears_until

    def heard_of(self, now: float, worker: str, untold: set[str]) -> None:
        """It has registered. Of the jobs in `untold` it has ends to tell, which come next."""
        for job_id in {part.job_id for part in self.replicated.by_worker.get(worker, ())}:
            watch = self.watches[job_id]
            if worker in watch.unheard:
                watch.unheard.discard(worker)
                if job_id in untold:
                    watch.ends_told_by = now + self.settings.limit_grace_s
                if not watch.unheard:
                    watch.hears_until = watch.ends_told_by
                    self.touch(job_id)

    def load_s(self, now: float, job: JobState, workflow: WorkflowState) -> float:
        """The workflow's load time: what its workers' clocks show, or would show."""
        if not workflow.started:
            return 0.0
        age = self.age_s(now, job.job_id)
        pauses = paused_s(job, age) - workflow.started_paused_s
        ahead = self.watches[job.job_id].ahead_s.get(workflow.needs.name, 0.0)
        return max(0.0, age - job.load_age_s(workflow) - pauses + ahead)

    def believable_s(self, now: float, part: Part, elapsed_s: float) -> float:
        """The load time a worker tells, or ours when that cannot be: every load ends in time."""
        job = self.replicated.jobs.get(part.job_id)
        workflow = job.workflows.get(part.workflow) if job else None
        if job is None or workflow is None:
            return 0.0
        latest_s = workflow.needs.limit_s + self.settings.limit_grace_s
        return elapsed_s if 0.0 <= elapsed_s <= latest_s else self.load_s(now, job, workflow)

    def touch(self, job_id: str) -> None:
        self.dirty[job_id] = None

    def placements_on(self, worker: str) -> list[Placement]:
        held = self.replicated.by_worker.get(worker, {})
        return [held[part] for part in sorted(held)]

    def stop_leading(self) -> None:
        self.leading = False
        self.under_way.clear()
        self.not_before.clear()
        self.in_doubt.clear()
        self.dirty.clear()
        self.unplaced_jobs.clear()
        self.placement_due = False
        self.queue.clear()
        self.pool.clear()
        self.health.clear()
        self.deadlines.clear()
        for watch in self.watches.values():
            watch.reset()
