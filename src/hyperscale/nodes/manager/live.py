"""What running parts have reported: numbers for the eye and for the worst case.

A report is noted when it comes and added up later, many at once: per workflow in windows of 100 ms
for whoever watches, per part every few reports, so that real load is not forgotten when its worker
dies. The truth at the end does not come from here but from the parts' own final results. A new
leader begins empty and asks the workers for snapshots.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part, Placement
from hyperscale.engine.results import aggregate_of
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.exported import DamagedState
from hyperscale.metrics.packed import Outlines, PackedDelta, pack
from hyperscale.metrics.tiers import LOAD_S_MAX, POINTS_MAX
from hyperscale.nodes.protocol.jobs import Snapshot, Window
from hyperscale.nodes.protocol.parts import Progress
from hyperscale.nodes.protocol.records import Note
from hyperscale.workload.facts import WorkflowFacts

# A watcher that is further behind gets a snapshot instead: five seconds of windows.
WINDOWS_MAX = 50
# An interval weighs some 2 KB, 6 KB at most: with these a workflow stays below 40 MB. One or two
# parts have all tiers of a timeline, those of many have fewer intervals of one width.
POINTS_OF_ALL = 2 * POINTS_MAX
POINTS_MIN = 10
# Deltas of one part that wait to be added up. Adding up costs by the visit, waiting some 1 KB each:
# with these a thousand parts hold 64 MB at the mean. Parts of one workflow begin together, so each
# is visited at another of its reports: a thousand visits at once would hold up everything else.
WAITING_MAX = 128
# Visits after which the sums of a part are added up themselves: they take a third of a visit's time
# and a thousand parts that never are hold 27 MB more at times.
COMPACT_EVERY = 4
# A part's rate is measured over this much of its load time.
RATE_S = 1.0
# Deltas of one workflow that wait for the window, should it be late: a second of a full manager.
PENDING_MAX = 16_384
_ALL = 0  # all parts together count as one core


@dataclass(slots=True)
class LivePart:
    number: int
    fence: Fence
    worker: str
    first_core: int
    points_max: int
    aggregate: WorkflowAggregate
    outlines: Outlines
    seq: int = 0
    complete: bool = True  # false: it began before we led, and its snapshot has not come
    state: str = "preparing"
    vus: int = 0
    elapsed_s: float = 0.0
    requests: int = 0
    failed: int = 0
    waiting: list[PackedDelta] = field(default_factory=list)
    visits: int = 0
    rate: float = 0.0
    rated: tuple[float, int] = (0.0, 0)  # load time and requests when it was last measured

    def lasted(self, elapsed_s: float) -> None:
        self.elapsed_s = max(self.elapsed_s, elapsed_s)
        since_s, before = self.rated
        if self.elapsed_s >= since_s + RATE_S:
            self.rate = max(0, self.requests - before) / (self.elapsed_s - since_s)
            self.rated = (self.elapsed_s, self.requests)

    def heard(self, delta: PackedDelta) -> None:
        self.seq = delta.seq
        self.vus = delta.vus
        self.requests += delta.requests
        self.failed += delta.failed
        self.waiting.append(delta)
        if (self.number + self.seq) % WAITING_MAX == 0 or len(self.waiting) >= WAITING_MAX:
            self.summed()

    def restored(self, facts: WorkflowFacts, state: bytes, seq: int) -> None:
        """A snapshot takes the place of all that was heard."""
        whole = aggregate_of(facts, self.points_max)
        whole.restore(self.first_core, state, seq)
        self.aggregate, self.seq, self.complete = whole, seq, True
        self.requests, self.failed = whole.requests, whole.failed
        self.waiting.clear()

    def summed(self) -> WorkflowAggregate:
        """All that was heard, added up."""
        if self.waiting:
            merged = self.outlines.add_up(self.waiting, self.seq, self.vus)
            count = len(self.waiting)
            self.aggregate.apply(self.first_core, merged, self.elapsed_s, merged=count)
            self.waiting.clear()
            self.visits += 1
            if (self.number + self.visits) % COMPACT_EVERY == 0:
                self.aggregate.compact()
        self.aggregate.advance(self.elapsed_s)
        return self.aggregate


@dataclass(slots=True)
class LiveWorkflow:
    facts: WorkflowFacts
    outlines: Outlines
    parts: dict[int, LivePart] = field(default_factory=dict)
    kept: WorkflowAggregate | None = None  # of parts that ended or were lost, each added once
    pending: list[PackedDelta] = field(default_factory=list)
    index: int = 0
    elapsed_s: float = 0.0
    requests: int = 0
    failed: int = 0
    windows: deque[Window] = field(default_factory=lambda: deque(maxlen=WINDOWS_MAX))
    whole: WorkflowAggregate | None = None  # all windows; None when numbers were replaced

    @property
    def complete(self) -> bool:
        return all(part.complete for part in self.parts.values())

    def heard(self, delta: PackedDelta) -> None:
        self.pending.append(delta)
        if len(self.pending) >= PENDING_MAX:
            self.pending = [pack(self.outlines.add_up(self.pending, 0))]

    def turn(self) -> None:
        """Close the window: what comes late is in the next one, and totals never go back."""
        if not self.pending:
            return
        self.index += 1
        vus = sum(part.vus for part in self.parts.values())
        pending, self.pending = self.pending, []  # what cannot be merged is not tried again
        merged = self.outlines.add_up(pending, self.index, vus)
        if self.whole is not None:
            self.whole.apply(_ALL, merged, self.elapsed_s)
        self.windows.append(
            Window(
                workflow=self.facts.name,
                index=self.index,
                elapsed_s=self.elapsed_s,
                delta=merged,
                workers=len(self.parts),
            )
        )

    def merged(self) -> WorkflowAggregate:
        """Everything known of the workflow, as one; to look at, not to keep."""
        self.turn()
        if self.whole is None:
            self.whole = aggregate_of(self.facts)
            known = [part.summed() for part in self.parts.values()]
            for one in [self.kept, *known] if self.kept is not None else known:
                self.whole.restore(_ALL, one.export(), self.index)
        self.whole.advance(self.elapsed_s)
        return self.whole


class Live:
    """Of one leader's time. Keys are (job, workflow)."""

    def __init__(self) -> None:
        self._workflows: dict[tuple[str, str], LiveWorkflow] = {}
        self.late = 0  # reports of attempts that are over, or of other workers' parts
        self.damaged = 0  # final numbers that cannot be read

    def __len__(self) -> int:
        return len(self._workflows)

    def workflow(self, job_id: str, name: str) -> LiveWorkflow | None:
        return self._workflows.get((job_id, name))

    def follow(
        self, facts: WorkflowFacts, placement: Placement, *, fresh: bool, parts: int = 1
    ) -> None:
        """A part was placed. `fresh`: nothing of it has been reported to anybody yet. The more
        parts a workflow has, the coarser each one's course."""
        part, fence = placement.part, placement.fence
        live = self._followed(facts, part)
        known = live.parts.get(part.number)
        if known is None or known.fence < fence:
            points = max(POINTS_MIN, min(POINTS_MAX, POINTS_OF_ALL // max(parts, 1)))
            live.parts[part.number] = LivePart(
                part.number,
                fence,
                placement.worker,
                placement.first_core,
                points,
                aggregate_of(facts, points),
                live.outlines,
                complete=fresh,
            )

    def leave(self, part: Part) -> LivePart | None:
        """Nothing more is heard of it; what was is counted until `replace`."""
        live = self._workflows.get((part.job_id, part.workflow))
        return None if live is None else live.parts.pop(part.number, None)

    def keep(self, facts: WorkflowFacts, part: Part, state: bytes) -> None:
        """A part's final numbers are in: they take the place of what it had reported."""
        self.replace(facts, part, state, self.leave(part))

    def replace(
        self, facts: WorkflowFacts, part: Part, state: bytes, reported: LivePart | None
    ) -> None:
        """The same, of a part that has left: this takes some 30 ms after a load of minutes."""
        live = self._followed(facts, part)
        if not state:
            return
        kept = live.kept or aggregate_of(facts)
        requests, failed = kept.requests, kept.failed
        try:
            kept.absorb(state)
        except DamagedState:
            self.damaged += 1
            return
        live.kept = kept
        live.whole = None
        live.requests += kept.requests - requests - (reported.requests if reported else 0)
        live.failed += kept.failed - failed - (reported.failed if reported else 0)
        live.elapsed_s = max(live.elapsed_s, kept.elapsed_s)

    def _followed(self, facts: WorkflowFacts, part: Part) -> LiveWorkflow:
        key = (part.job_id, part.workflow)
        live = self._workflows.get(key)
        if live is None:
            whole = aggregate_of(facts)
            live = LiveWorkflow(facts, Outlines(whole.check), whole=whole)
            self._workflows[key] = live
        return live

    def ended(self, job_id: str) -> None:
        """Its results are in the records, which tell all of it from now on."""
        for key in [key for key in self._workflows if key[0] == job_id]:
            del self._workflows[key]

    def clear(self) -> None:
        self._workflows.clear()

    def heard(self, progress: Progress, worker: str) -> bool:
        """Take in a report of the worker that the part is placed on; False when a snapshot of this
        part is wanted first."""
        part = progress.part
        live = self._workflows.get((part.job_id, part.workflow))
        known = live.parts.get(part.number) if live is not None else None
        if live is None or known is None or known.fence != progress.fence or known.worker != worker:
            self.late += 1
            return True
        known.state = progress.state
        if 0.0 <= progress.elapsed_s <= LOAD_S_MAX:
            known.lasted(progress.elapsed_s)
            live.elapsed_s = max(live.elapsed_s, progress.elapsed_s)
        requests, failed = known.requests, known.failed
        if progress.snapshot and (not known.complete or progress.snapshot_seq > known.seq):
            known.restored(live.facts, progress.snapshot, progress.snapshot_seq)
            live.whole = None
        if progress.settled_seq > known.seq:  # we missed some while another manager led
            known.complete = False
        for delta in progress.deltas:
            # What is not the next one is told again, once the worker hears how far we are.
            if known.complete and delta.seq == known.seq + 1:
                live.outlines.accept(delta)
                known.heard(delta)
                live.heard(delta)
        live.requests += known.requests - requests
        live.failed += known.failed - failed
        return known.complete

    def taken(self, progress: Progress) -> int:
        """Up to which delta of this part nothing has to be told again: we have it, or do not need
        it, or its snapshot will bring it."""
        known = self._part(progress.part)
        if known is not None and known.complete and known.fence == progress.fence:
            return known.seq
        told = [progress.snapshot_seq, *(delta.seq for delta in progress.deltas)]
        return max(progress.settled_seq, *told)

    def running(self) -> list[Part]:
        """Parts of which something may have been heard."""
        return [
            Part(job_id, name, number)
            for (job_id, name), live in self._workflows.items()
            for number in live.parts
        ]

    def seen(self, part: Part) -> tuple[Fence, int] | None:
        """How much was heard of it; None: not all that there is."""
        known = self._part(part)
        return None if known is None or not known.complete else (known.fence, known.seq)

    def backup(self, part: Part) -> Note | None:
        """All that was heard of it, without its course over time."""
        known = self._part(part)
        if known is None or not known.seq:
            return None
        whole = known.summed()
        return Note(
            part=part,
            fence=known.fence,
            at_s=whole.elapsed_s,
            iterations=whole.iterations,
            state=whole.brief(),
        )

    def pace(self, part: Part) -> float:
        """Iterations a second of the fastest part of its workflow."""
        live = self._workflows.get((part.job_id, part.workflow))
        known = [one.summed() for one in live.parts.values()] if live is not None else []
        paces = (one.iterations / one.elapsed_s for one in known if one.elapsed_s)
        return max(paces, default=0.0)

    def close(self, part: Part, fence: Fence) -> tuple[float, int, bytes]:
        """Take out what a lost part had reported: load time, iterations, mergeable state."""
        live = self._workflows.get((part.job_id, part.workflow))
        known = live.parts.get(part.number) if live is not None else None
        if live is None or known is None or known.fence != fence or not known.complete:
            return (live.elapsed_s if live is not None else 0.0), 0, b""
        whole = known.summed()
        whole.gone(known.first_core)
        return whole.elapsed_s, whole.iterations, whole.export()

    def elapsed_s(self, job_id: str, workflow: str) -> float:
        live = self._workflows.get((job_id, workflow))
        return 0.0 if live is None else live.elapsed_s

    def totals(self, job_id: str, name: str) -> tuple[int, int]:
        """Requests of a workflow so far, and how many of them failed."""
        live = self._workflows.get((job_id, name))
        return (0, 0) if live is None else (live.requests, live.failed)

    def requests(self, part: Part) -> tuple[int, float]:
        """Requests of a part so far, and its rate over the last second."""
        known = self._part(part)
        return (0, 0.0) if known is None else (known.requests, known.rate)

    def _part(self, part: Part) -> LivePart | None:
        live = self._workflows.get((part.job_id, part.workflow))
        return live.parts.get(part.number) if live is not None else None

    def turn(self) -> None:
        """Of every workflow, whatever is the matter with another."""
        errors: list[Exception] = []
        for live in self._workflows.values():
            try:
                live.turn()
            except Exception as error:  # noqa: BLE001 - it is raised below
                errors.append(error)
        if errors:
            raise ExceptionGroup("windows", errors)

    def since(
        self, job_id: str, name: str, index: int | None, *, whole: bool = True
    ) -> list[Window] | Snapshot | None:
        """What a watcher that has seen `index` lacks; None: nothing, or not whole yet."""
        live = self._workflows.get((job_id, name))
        if live is None:
            return None
        behind = index is not None and live.windows and live.windows[0].index > index + 1
        if index is None or index > live.index or behind:
            if whole and not live.complete:
                return None
            state = live.merged().export()
            return Snapshot(workflow=name, index=live.index, elapsed_s=live.elapsed_s, state=state)
        return [window for window in live.windows if window.index > index] or None
