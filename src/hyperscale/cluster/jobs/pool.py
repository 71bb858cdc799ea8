"""The workers the leader knows, what is free on them, and how they are.

Cores are counted by records: a core is in use from the moment its dispatch is decided until the
part's end is held, or its worker says that it has nothing more to do there; one that parts of a job
share is used once. What a worker tells of what is free otherwise only lowers that: it may be busy
with something no record knows of.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import invariant
from hyperscale.cluster.jobs.events import CpuUse
from hyperscale.cluster.jobs.extensions import Extensions
from hyperscale.cluster.jobs.health import Pace, Progress, Routing, Signals
from hyperscale.cluster.jobs.records import Part, Placement
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.cluster.jobs.state import ReplicatedState
from hyperscale.cluster.overload.backoff import grown_s
from hyperscale.cluster.placement.provision import in_use


@dataclass(slots=True)
class Worker:
    name: str
    incarnation: int
    extensions: Extensions
    total: int = 0
    told_free: int = 0
    unknown: int = 0  # cores it uses for what no record knows of
    draining: bool = False
    degraded: bool = False
    cpu: CpuUse | None = None  # lately; None: not told
    registered: bool = False  # with this leader
    life: int = 0  # the incarnation its process began with; 0: not told
    heard_at: float = 0.0  # over TCP, and answered: no later does it believe to be in touch
    former_heard_at: float = 0.0  # in its life before this one
    dead_at: float | None = None
    unreached_since: float | None = None  # since then no command could be brought to it
    deaf: bool = False  # by its own word our answers do not reach it; its reports tell otherwise
    refused_at: float | None = None
    """Since then nobody listens there: its process is gone, as far as one can see."""
    refusals: int = 0
    pause_until: float = 0.0
    pace: Pace = field(default_factory=Pace)
    counters: dict[Part, int] = field(default_factory=dict)
    misses: dict[Part, int] = field(default_factory=dict)
    done: dict[tuple[Part, Fence], int] = field(default_factory=dict)
    """Cores of its parts that have no more load to make: the highest number it told of each."""
    loads_since: dict[tuple[Part, Fence], float] = field(default_factory=dict)
    """Parts of it whose load runs, by its own word: what its CPU is used for."""
    load_s: dict[tuple[Part, Fence], float] = field(default_factory=dict)
    """Load time of its parts, as it told: their numbers may not have come as far."""
    carried: frozenset[tuple[Part, Fence]] = frozenset()
    """Placed under an earlier incarnation, and still held: a worker that refutes its death has a
    new incarnation and the same life."""

    def owns(self, placement: Placement) -> bool:
        """It was placed on this life of the worker."""
        return (
            placement.incarnation == self.incarnation
            or (placement.part, placement.fence) in self.carried
        )

    def has_lost(self, placement: Placement) -> bool:
        """It was placed on a process that is gone. The next one of the same node begins above all
        its incarnations only when it has taken over the directory from it, which the kernel holds
        for as long as a process lives; and its generators die with it."""
        return placement.incarnation < self.life

    def carry(self, held: Iterable[Placement], named: Collection[tuple[Part, Fence]]) -> None:
        """`named` is all it says it has."""
        older = [(p.part, p.fence) for p in held if p.incarnation < self.incarnation]
        self.carried = self.carried | frozenset(one for one in older if one in named)


def _between(before: CpuUse, now: CpuUse) -> CpuUse:
    """What was told before counts for half: a report is of a tenth of a second."""
    return CpuUse(
        (before.machine_percent + now.machine_percent) / 2,
        (before.generator_percent + now.generator_percent) / 2,
    )


class Pool:
    def __init__(
        self, settings: JobSettings, replicated: ReplicatedState, dice: random.Random
    ) -> None:
        self._settings = settings
        self._book = replicated
        self._dice = dice
        self.workers: dict[str, Worker] = {}
        self._reserved: dict[str, list[Placement]] = {}

    def clear(self) -> None:
        self.workers.clear()
        self._reserved.clear()

    # -- what is known ---------------------------------------------------------------------------

    def expect(self, now: float, name: str, incarnation: int) -> Worker:
        """A worker that should be there: it has parts, but has not spoken to this leader yet."""
        worker = self.workers.get(name)
        if worker is None:
            worker = Worker(
                name, incarnation, Extensions(self._settings), heard_at=now, former_heard_at=now
            )
            self.workers[name] = worker
        worker.incarnation = max(worker.incarnation, incarnation)
        return worker

    def register(
        self,
        now: float,
        name: str,
        incarnation: int,
        total: int,
        free: int,
        draining: bool,
        named: Collection[tuple[Part, Fence]] = (),
        life: int = 0,
    ) -> Worker | None:
        """`named` is everything it holds. None for a life that is over."""
        worker = self.workers.get(name)
        if worker is None:
            worker = self.expect(now, name, incarnation)
        elif incarnation < worker.incarnation:
            return None
        elif incarnation > worker.incarnation:
            worker = self._reborn(worker, incarnation)
        worker.total, worker.registered = max(0, total), True
        worker.life = max(worker.life, life)
        worker.carry(self._book.by_worker.get(name, {}).values(), named)
        self.heard(now, worker, free, draining, worker.degraded)
        return worker

    def _reborn(self, worker: Worker, incarnation: int) -> Worker:
        fresh = Worker(
            worker.name,
            incarnation,
            Extensions(self._settings),
            heard_at=worker.heard_at,
            former_heard_at=worker.heard_at,
            load_s=worker.load_s,
        )
        self.workers[worker.name] = fresh
        return fresh

    def heard(
        self,
        now: float,
        worker: Worker,
        free: int,
        draining: bool,
        degraded: bool,
        cpu: CpuUse | None = None,
    ) -> bool:
        """True when it has more room than was thought."""
        before = (worker.unknown, worker.draining, worker.degraded)
        worker.heard_at, worker.dead_at, worker.deaf = now, None, False
        worker.told_free = free
        worker.draining, worker.degraded = draining, degraded
        if cpu is not None:
            worker.cpu = _between(worker.cpu or cpu, cpu)
        worker.unknown = max(0, worker.total - free - self.booked(worker))
        return (worker.unknown, worker.draining, worker.degraded) < before

    def refused(self, now: float, worker: Worker, free: int | None) -> None:
        limits = self._settings
        shortest_s, longest_s = limits.refusal_pause_min_s, limits.refusal_pause_max_s
        worker.pause_until = now + grown_s(shortest_s, worker.refusals, longest_s)
        worker.refusals += 1
        if free is not None:
            worker.told_free = free

    # -- cores -----------------------------------------------------------------------------------

    def booked(self, worker: Worker) -> int:
        return self._in_use(worker, self._held(worker))

    def _held(self, worker: Worker) -> list[Placement]:
        held = self._book.by_worker.get(worker.name, {})
        return [placement for placement in held.values() if worker.owns(placement)]

    def _in_use(self, worker: Worker, placements: Iterable[Placement]) -> int:
        """Cores that parts of one job share count once."""
        total = 0
        by_job: dict[str, list[tuple[tuple[int, ...], int]]] = {}
        for one in placements:
            done = self.done(worker, one)
            if one.slots:
                by_job.setdefault(one.part.job_id, []).append((one.slots, done))
            else:
                total += one.cores - done
        return total + sum(map(in_use, by_job.values()))

    def cores_done(self, worker: Worker, placement: Placement, cores: int) -> bool:
        """How many cores of a part it is done with; told again or out of order it changes nothing.
        True when it has more room than was thought."""
        about = (placement.part, placement.fence)
        cores = min(cores, placement.cores)
        if cores <= worker.done.get(about, 0):
            return False
        worker.done[about] = cores
        return True

    def reserve(self, placements: Iterable[Placement]) -> None:
        for placement in placements:
            self._reserved.setdefault(placement.worker, []).append(placement)

    def release(self, placements: Iterable[Placement]) -> None:
        for placement in placements:
            reserved = self._reserved.get(placement.worker, [])
            invariant(placement in reserved, "only what was reserved is released")
            reserved.remove(placement)
            if not reserved:
                del self._reserved[placement.worker]

    def free(self, worker: Worker) -> int:
        taken = self._taken(worker)
        return max(0, worker.total - self._in_use(worker, taken) - worker.unknown)

    def loads(self, worker: Worker) -> int:
        """How many cores of workflows it makes load for, or is about to: one core may bear
        several."""
        return self._loads(worker, self._taken(worker))

    def loads_told(self, worker: Worker, before: float) -> int:
        """Those that it has made load for since `before`, so that its CPU tells of them."""
        held = self._held(worker)
        return self._loads(worker, (one for one in held if self.loads_since(worker, one) <= before))

    def loads_since(self, worker: Worker, placement: Placement) -> float:
        return worker.loads_since.get((placement.part, placement.fence), math.inf)

    def _loads(self, worker: Worker, placements: Iterable[Placement]) -> int:
        return sum(one.cores - self.done(worker, one) for one in placements)

    def done(self, worker: Worker, placement: Placement) -> int:
        """How many cores of a part have no more load to make."""
        return worker.done.get((placement.part, placement.fence), 0)

    def _taken(self, worker: Worker) -> list[Placement]:
        return self._held(worker) + self._reserved.get(worker.name, [])

    def placements(self) -> Iterator[Placement]:
        """All that have cores, or are about to get some."""
        for held in self._book.by_worker.values():
            yield from held.values()
        for reserved in self._reserved.values():
            yield from reserved

    def takes_part(self, now: float, worker: Worker) -> bool:
        """It counts among the cores there are, though it may have none free. Asked of all workers
        whenever one comes or goes, so no more is looked at than matters: neither evicted nor
        drained."""
        return (
            worker.registered
            and not worker.draining
            and not self.is_silent(now, worker)
            and not self._is_gone(now, worker)
            and self._progress(now, worker) is not Progress.STUCK
        )

    def can_share(self, now: float, worker: Worker) -> bool:
        """It would take more work on cores that work for the same job."""
        return (
            not self.is_lost(now, worker)
            and now >= worker.pause_until
            and self.takes_part(now, worker)
        )

    def total_cores(self, now: float) -> int:
        return sum(w.total for w in self.workers.values() if self.takes_part(now, w))

    def free_cores(self, now: float) -> int:
        return sum(self.free(w) for w in self.workers.values() if self._is_open(now, w))

    # -- health ----------------------------------------------------------------------------------

    def signals(self, now: float, worker: Worker) -> Signals:
        limits = self._settings
        ready = (
            worker.registered
            and not worker.draining
            and not self.is_lost(now, worker)
            and now >= worker.pause_until
            and self.free(worker) > 0
        )
        progress = self._progress(now, worker)
        evict_at = worker.extensions.evict_at()
        overdue = (evict_at is not None and now >= evict_at) or (
            progress is Progress.STUCK
            and worker.pace.idle_s >= limits.stuck_s + limits.stuck_evict_s
        )
        live = not self._is_gone(now, worker)
        return Signals(live, ready, progress, self.is_lost(now, worker), overdue)

    def _progress(self, now: float, worker: Worker) -> Progress:
        """A worker that asked for more time is not stuck until that time is over."""
        limits = self._settings
        found = worker.pace.progress(now, limits.stalled_s, limits.stuck_s)
        if found is Progress.STUCK and worker.extensions.excuses(now):
            return Progress.STALLED
        return found

    def is_lost(self, now: float, worker: Worker) -> bool:
        """It cannot be commanded, for all we know."""
        return (
            worker.dead_at is not None
            or worker.deaf
            or self.is_unreached(now, worker)
            or (worker.registered and self.is_silent(now, worker))
        )

    def is_unreached(self, now: float, worker: Worker) -> bool:
        """What we say to it does not arrive, whatever arrives from it."""
        since = worker.unreached_since
        return since is not None and (
            worker.refused_at is not None or now >= since + self._settings.unreached_s
        )

    def gone_at(self, worker: Worker) -> float:
        """When its load has surely ended, unless it is heard before: who answers probes and
        cannot be commanded is gone too."""
        limits = self._settings
        known = worker.registered or worker.dead_at is not None
        return worker.heard_at + (limits.reschedule_s if known else limits.register_s)

    def silent_at(self, worker: Worker) -> float:
        return worker.heard_at + self._settings.silence_s

    def is_silent(self, now: float, worker: Worker) -> bool:
        return now >= self.silent_at(worker)

    def _is_gone(self, now: float, worker: Worker) -> bool:
        return now >= self.gone_at(worker)

    def _is_open(self, now: float, worker: Worker) -> bool:
        return self.signals(now, worker).routing in (Routing.ROUTE, Routing.INVESTIGATE)

    # -- choosing --------------------------------------------------------------------------------

    def rank(self, now: float, worker: Worker, excluded: Collection[str]) -> int | None:
        """0 is the best; None takes nothing. Whoever lost a part before is the last resort."""
        if not self._is_open(now, worker):
            return None
        poor = worker.degraded or self.signals(now, worker).routing is Routing.INVESTIGATE
        return int(poor) + 2 * (worker.name in excluded)

    @property
    def dice(self) -> random.Random:
        return self._dice
