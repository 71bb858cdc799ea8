"""Records and a shell for tests: effects are kept in lists, records come back when told."""

from __future__ import annotations

import random
from typing import Any, TypeVar

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.core import Jobs
from hyperscale.cluster.jobs.effects import (
    Answer,
    Append,
    CollectReported,
    Dispatch,
    Effect,
    MakeResults,
)
from hyperscale.cluster.jobs.events import (
    Applied,
    Asks,
    CpuUse,
    DispatchAnswered,
    Ended,
    Event,
    Heard,
    Lead,
    PartReport,
    Prepared,
    ReportedCollected,
    ResultsMade,
    Steer,
    Submit,
    Tick,
    WorkerDied,
    WorkerRegistered,
    WorkerReported,
)
from hyperscale.cluster.jobs.queries import JobQueries
from hyperscale.cluster.jobs.records import JobRecord, Needs, Outcome, Part, Placement, Submitted
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.cluster.jobs.state import JobState, WorkflowState

E = TypeVar("E")


def needs(name: str = "load", **given: Any) -> Needs:
    facts: dict[str, Any] = {
        "is_test": True,
        "priority": "auto",
        "depends": (),
        "peak_vus": 100,
        "planned_s": 60.0,
        "limit_s": 90.0,
    }
    facts.update(given)
    if not facts["is_test"]:
        facts["planned_s"] = None
    return Needs(name=name, **facts)


def submitted(*workflows: Needs, job_id: str = "j1", **given: Any) -> Submitted:
    facts: dict[str, Any] = {"timeout_s": 300.0, "body": b"body", "digest": "d"}
    facts.update(given)
    return Submitted(job_id, 0.0, "test", workflows or (needs(),), **facts)


def part(number: int = 0, workflow: str = "load", job_id: str = "j1") -> Part:
    return Part(job_id, workflow, number)


def placement(
    number: int = 0,
    worker: str = "w1",
    fence: Fence = Fence(1, 1, 1),
    first_core: int = 0,
    cores: int = 2,
    **given: Any,
) -> Placement:
    where = part(number, given.pop("workflow", "load"), given.pop("job_id", "j1"))
    return Placement(where, fence, worker, given.pop("incarnation", 1), first_core, cores, **given)


class Shell:
    """A manager that leads, with a log that commits at once unless told to hold."""

    def __init__(self, settings: JobSettings | None = None, seed: int = 1) -> None:
        self.core = Jobs(settings or JobSettings(), random.Random(seed))
        self.now = 0.0
        self.log: list[JobRecord] = []
        self.seen: list[Effect] = []
        self.held: list[JobRecord] = []
        self.hold = False
        self.lost_at_s, self.lost_pace = 41.0, 0.0
        self.beating: set[str] = set()
        self.cpu: dict[str, CpuUse] = {}  # of workers that tell it
        self.degraded: set[str] = set()
        self.ready: list[Placement] = []
        self.receive(Lead(1))

    @property
    def jobs(self) -> JobQueries:
        return self.core.queries

    def receive(self, event: Event) -> Any:
        """Carries out the effects; returns the answer, if the event asks for one."""
        effects = self.core.receive(self.now, event)
        answers = [effect.value for effect in effects if isinstance(effect, Answer)]
        assert len(answers) == isinstance(event, Asks)
        self.carry([effect for effect in effects if not isinstance(effect, Answer)])
        return answers[0] if answers else None

    def carry(self, effects: list[Effect]) -> None:
        self.seen += effects
        for effect in effects:
            match effect:
                case Append(record) if self.hold:
                    self.held.append(record)
                case Append(record):
                    self.commit(record)
                case CollectReported(place):
                    heard = Heard(self.lost_at_s, 7, b"partial", self.lost_pace)
                    self.receive(ReportedCollected(place, heard))
                case MakeResults(job_id, status, reason):
                    self.receive(ResultsMade(job_id, status, reason, b"results"))

    def commit(self, record: JobRecord) -> None:
        self.log.append(record)
        self.receive(Applied(record))

    def release(self) -> None:
        self.hold = False
        held, self.held = self.held, []
        for record in held:
            self.commit(record)

    def take(self, kind: type[E]) -> list[E]:
        """Effects of this kind since the last time anybody looked for it."""
        found = [effect for effect in self.seen if isinstance(effect, kind)]
        self.seen = [effect for effect in self.seen if not isinstance(effect, kind)]
        return found

    def records(self, kind: type[E]) -> list[E]:
        return [record for record in self.log if isinstance(record, kind)]

    # -- events ----------------------------------------------------------------------------------

    def register(
        self, worker: str = "w1", cores: int = 4, incarnation: int = 1, life: int = 0
    ) -> None:
        self.beating.add(worker)
        self.receive(WorkerRegistered(worker, incarnation, cores, cores, [], life=life))

    def die(self, worker: str) -> None:
        self.beating.discard(worker)
        self.receive(WorkerDied(worker, 1))

    def hear(self, worker: str, *reports: PartReport, free: int = 0, incarnation: int = 1) -> None:
        assert self.receive(WorkerReported(worker, incarnation, free, reports)) is not None

    def submit(self, *workflows: Needs, job_id: str = "j1", **given: Any) -> object:
        answer: object = self.receive(Submit(submitted(*workflows, job_id=job_id, **given)))
        return answer

    def dispatched(self) -> list[Placement]:
        return [effect.placement for effect in self.take(Dispatch)]

    def prepare(self, place: Placement, context: bytes = b"") -> None:
        self.ready.append(place)
        self.receive(DispatchAnswered(place, True))
        self.receive(Prepared(place.part, place.fence, context))

    def prepare_all(self) -> list[Placement]:
        places = self.dispatched()
        for place in places:
            self.prepare(place)
        return places

    def end(
        self, place: Placement, outcome: Outcome = "completed", error: str = "", **given: Any
    ) -> bool:
        facts = {"measured_s": 60.0, "iterations": 600, "result": b"result"} | given
        end = Ended(place.part, place.fence, place.worker, outcome, error=error, **facts)
        return bool(self.receive(end))

    def steer(
        self,
        action: Any,
        amount: int = 0,
        job_id: str = "j1",
        workflow: str = "",
        command_id: str = "",
    ) -> Any:
        return self.receive(Steer(job_id, action, amount, "ada", "", workflow, command_id))

    def wait(self, seconds: float) -> None:
        """Let time pass, ticking at every deadline on the way; workers say that they live."""
        end = self.now + seconds
        while self.now < end:
            step = min(end, self.now + 1.0)
            for _ in range(1_000):
                deadline = self.core.next_deadline()
                if deadline is None or deadline > step:
                    break
                self.now = max(self.now, deadline)
                self.receive(Tick())
            self.now = step
            self.beat()

    def beat(self) -> None:
        pool = self.jobs.pool
        for name in sorted(self.beating & set(pool.workers)):
            worker = pool.workers[name]
            if worker.registered:
                free = pool.free(worker) + worker.unknown
                report = WorkerReported(
                    name,
                    worker.incarnation,
                    free,
                    self._reports(name) if name in self.cpu else [],
                    degraded=name in self.degraded,
                    cpu=self.cpu.get(name),
                )
                assert self.receive(report) is not None

    def _reports(self, worker: str) -> list[PartReport]:
        """All that was prepared and started runs."""
        found = []
        for place in self.jobs.replicated.by_worker.get(worker, {}).values():
            name, job_id = place.part.workflow, place.part.job_id
            load_s = self.jobs.load_s(self.now, job_id, name)
            if place in self.ready and self.workflow(name, job_id).started:
                counter = int(10 * self.now)
                found.append(PartReport(place.part, place.fence, "running", load_s, counter))
        return found

    # -- views -----------------------------------------------------------------------------------

    def job(self, job_id: str = "j1") -> JobState:
        job = self.jobs.job(job_id)
        assert job is not None
        return job

    def workflow(self, name: str = "load", job_id: str = "j1") -> WorkflowState:
        return self.job(job_id).workflows[name]
