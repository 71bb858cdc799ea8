"""What really happened in a simulated cluster, for its checkers: load as the stages made it, and
records as managers applied them. The code under test knows nothing of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import (
    Dispatched,
    Finished,
    JobRecord,
    Part,
    Steered,
    Submitted,
    TimedOut,
)
from hyperscale.nodes.protocol.parts import DispatchPart
from hyperscale.nodes.worker.runner import Progressed
from hyperscale.sim.host import SimHost
from hyperscale.sim.part_runner import LoadEvent, SimPart, SimRunner
from hyperscale.sim.world import World


@dataclass(slots=True, eq=False)
class ObservedPart:
    """A part on a runner, from its acceptance on."""

    host: SimHost
    order: DispatchPart
    running: SimPart
    prepared: bool = False
    began: bool = False
    over: bool = False  # it makes no load, and will not
    requests: int = 0

    @property
    def where(self) -> str:
        return f"{self.host.name}/{self.host.generation}"

    def shares_with(self, order: DispatchPart) -> bool:
        """It is another part of the same workflow in the same process."""
        mine, other = self.order.part, order.part
        return (
            (mine.job_id, mine.workflow) == (other.job_id, other.workflow)
            and mine != other
            and self.loading
            and not set(self.order.slots).isdisjoint(order.slots)
        )

    @property
    def loading(self) -> bool:
        """Generators end with the worker that started them."""
        return self.began and not self.host.process.dead and self.running.loading


@dataclass(slots=True)
class Truth:
    observed: dict[Part, list[ObservedPart]] = field(default_factory=lambda: defaultdict(list))
    log: dict[int, JobRecord] = field(default_factory=dict)
    """What was applied anywhere, by its place in the log."""
    payloads: dict[int, bytes] = field(default_factory=dict)
    terms: dict[int, int] = field(default_factory=dict)  # of who wrote each record
    jobs: dict[str, Submitted] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    finished: dict[str, Finished] = field(default_factory=dict)
    """The first end of each job: later ones count for nothing."""
    finished_at: dict[str, float] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    paused_at: dict[str, float] = field(default_factory=dict)
    """Jobs that stand still because somebody said so."""
    placed: dict[tuple[Part, Fence], str] = field(default_factory=dict)
    newest: dict[Part, Fence] = field(default_factory=dict)
    cores: dict[str, int] = field(default_factory=dict)  # by worker

    def committed(self, at: float, index: int, payload: bytes, record: JobRecord) -> None:
        self.log[index], self.payloads[index] = record, payload
        match record:
            case Submitted(idempotency_key=key):
                if record.job_id not in self.jobs and (not key or key not in self.keys):
                    self.jobs[record.job_id] = record
                    if key:
                        self.keys[key] = record.job_id
            case Finished():
                self.finished.setdefault(record.job_id, record)
                self.finished_at.setdefault(record.job_id, at)
                self.paused_at.pop(record.job_id, None)
            case Steered(action="pause"):
                self.paused_at.setdefault(record.job_id, at)
            case Steered(action="resume" | "cancel" | "stop") | TimedOut():
                self.paused_at.pop(record.job_id, None)
            case Dispatched():
                for one in record.placements:
                    self.placed[one.part, one.fence] = one.worker
                    self.newest[one.part] = max(one.fence, self.newest.get(one.part, one.fence))
            case _:
                pass

    def forget(self, job_id: str) -> None:
        """Its time is over: whoever submits the same again begins anew."""
        self.forgotten.add(job_id)
        submitted = self.jobs.get(job_id)
        if submitted is not None and self.keys.get(submitted.idempotency_key) == job_id:
            del self.keys[submitted.idempotency_key]

    def of_job(self, job_id: str) -> list[ObservedPart]:
        return [
            one
            for part, observed in self.observed.items()
            if part.job_id == job_id
            for one in observed
        ]

    def is_tended(self, part: Part, fence: Fence) -> bool:
        """Some worker prepares it, waits to begin or makes its load."""
        return any(
            one.order.fence == fence and not one.over and not one.host.process.dead
            for one in self.observed[part]
        )

    def on(self, worker: str) -> list[ObservedPart]:
        return [
            one for all_of in self.observed.values() for one in all_of if one.host.name == worker
        ]

    def loading(self) -> list[ObservedPart]:
        return [one for all_of in self.observed.values() for one in all_of if one.loading]

    def unfinished(self) -> list[str]:
        return [job_id for job_id in self.jobs if job_id not in self.finished]


class ObservedRunner(SimRunner):
    """Tells the truth of what is done on it."""

    def __init__(self, truth: Truth, world: World, host: SimHost, cores: int) -> None:
        super().__init__(host, cores, self._saw)
        self.host = host
        self._truth = truth
        self._world = world
        self._here: dict[int, ObservedPart] = {}
        truth.cores[host.name] = cores

    def run(self, order: DispatchPart, slots: tuple[int, ...], progressed: Progressed) -> SimPart:
        running = super().run(order, slots, progressed)
        if any(one.shares_with(order) for one in self._truth.on(self.host.name)):
            self._world.coverage["part squeezed"] += 1
        one = self._here[id(order)] = ObservedPart(self.host, order, running)
        self._truth.observed[order.part].append(one)
        if order.fence.attempt > 1:
            self._world.coverage["part taken over"] += 1
        self._observe("accepted", order)
        return running

    def _saw(self, deed: LoadEvent, order: DispatchPart, amount: int) -> None:
        one = self._here[id(order)]
        if deed == "loaded":
            one.requests += amount
            if amount and order.part.job_id in self._truth.paused_at:
                self._observe("loaded_in_a_pause", order)
        elif deed == "prepared":
            one.prepared = True
        elif deed == "began":
            one.began = True
            self._observe("began", order)
        elif deed in ("over", "closed"):
            one.over = True

    def _observe(self, kind: str, order: DispatchPart) -> None:
        host = self.host
        self._world.observe(
            kind, node=host.name, life=host.generation, part=order.part, fence=order.fence
        )
