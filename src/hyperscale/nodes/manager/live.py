"""What running parts have reported: numbers for the eye and for the worst case.

Per part an aggregate that is closed when its worker dies, so that real load is never forgotten;
per workflow 100 ms windows over all its parts for whoever watches. The truth at the end does not
come from here but from the parts' own final results. A new leader begins empty and asks the
workers for snapshots.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part, Placement
from hyperscale.engine.assembly import aggregate_of
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.delta import Delta
from hyperscale.metrics.merging import merge_deltas
from hyperscale.metrics.timeline import POINTS_MAX
from hyperscale.nodes.protocol.jobs import Snapshot, Window
from hyperscale.nodes.protocol.parts import Progress
from hyperscale.workload.facts import WorkflowFacts

# A watcher that is further behind gets a snapshot instead: five seconds of windows.
WINDOWS_MAX = 50
# An interval with its histogram weighs some 3 KB: with these a workflow stays below 40 MB.
POINTS_OF_ALL = 10 * POINTS_MAX
POINTS_MIN = 10


@dataclass(slots=True)
class LivePart:
    fence: Fence
    first_core: int
    points_max: int
    aggregate: WorkflowAggregate
    seq: int = 0
    complete: bool = True  # false: it began before we led, and its snapshot has not come
    state: str = "preparing"
    vus: int = 0


@dataclass(slots=True)
class LiveWorkflow:
    facts: WorkflowFacts
    parts: dict[int, LivePart] = field(default_factory=dict)
    kept: list[bytes] = field(default_factory=list)  # of parts that ended or were lost
    pending: list[Delta] = field(default_factory=list)
    index: int = 0
    elapsed_s: float = 0.0
    requests: int = 0
    failed: int = 0
    windows: deque[Window] = field(default_factory=lambda: deque(maxlen=WINDOWS_MAX))

    @property
    def complete(self) -> bool:
        return all(part.complete for part in self.parts.values())

    def merged(self) -> WorkflowAggregate:
        """Everything known of the workflow, as one."""
        whole = aggregate_of(self.facts)
        for state in (*self.kept, *(part.aggregate.export() for part in self.parts.values())):
            whole.absorb(state)
        whole.advance(self.elapsed_s)
        return whole


class Live:
    """Of one leader's time. Keys are (job, workflow)."""

    def __init__(self) -> None:
        self._workflows: dict[tuple[str, str], LiveWorkflow] = {}
        self.late = 0  # reports of attempts that are over

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
        live = self._workflows.setdefault((part.job_id, part.workflow), LiveWorkflow(facts))
        known = live.parts.get(part.number)
        if known is None or known.fence < fence:
            points = max(POINTS_MIN, min(POINTS_MAX, POINTS_OF_ALL // max(parts, 1)))
            live.parts[part.number] = LivePart(
                fence, placement.first_core, points, aggregate_of(facts, points), complete=fresh
            )

    def keep(self, facts: WorkflowFacts, part: Part, state: bytes) -> None:
        """A part's final numbers are in: they take the place of what it had reported."""
        live = self._workflows.setdefault((part.job_id, part.workflow), LiveWorkflow(facts))
        reported = live.parts.pop(part.number, None)
        if not state:
            return
        live.kept.append(state)
        whole = aggregate_of(facts)
        whole.absorb(state)
        live.requests += whole.requests - (reported.aggregate.requests if reported else 0)
        live.failed += whole.failed - (reported.aggregate.failed if reported else 0)
        live.elapsed_s = max(live.elapsed_s, whole.elapsed_s)

    def forget(self, job_id: str) -> None:
        for key in [key for key in self._workflows if key[0] == job_id]:
            del self._workflows[key]

    def clear(self) -> None:
        self._workflows.clear()

    def heard(self, progress: Progress) -> bool:
        """Take in a report; False when a snapshot of this part is wanted first."""
        part = progress.part
        live = self._workflows.get((part.job_id, part.workflow))
        known = live.parts.get(part.number) if live is not None else None
        if live is None or known is None or known.fence != progress.fence:
            self.late += 1
            return True
        known.state = progress.state
        live.elapsed_s = max(live.elapsed_s, progress.elapsed_s)
        before = (known.aggregate.requests, known.aggregate.failed)
        if progress.snapshot:
            known.aggregate = aggregate_of(live.facts, known.points_max)
            known.aggregate.restore(known.first_core, progress.snapshot, progress.snapshot_seq)
            known.seq, known.complete = progress.snapshot_seq, True
        for delta in progress.deltas:
            if delta.seq > known.seq + 1:  # we missed some while another manager led
                known.complete = False
            if known.complete and delta.seq > known.seq:
                known.seq = delta.seq
                known.vus = delta.vus
                known.aggregate.apply(known.first_core, delta, progress.elapsed_s)
                live.pending.append(delta)
        known.aggregate.advance(progress.elapsed_s)
        live.requests += known.aggregate.requests - before[0]
        live.failed += known.aggregate.failed - before[1]
        return known.complete

    def close(self, part: Part, fence: Fence) -> tuple[float, int, bytes]:
        """Take out what a lost part had reported: load time, iterations, mergeable state."""
        live = self._workflows.get((part.job_id, part.workflow))
        known = live.parts.get(part.number) if live is not None else None
        if live is None or known is None or known.fence != fence:
            return (live.elapsed_s if live is not None else 0.0), 0, b""
        whole = known.aggregate
        whole.gone(known.first_core)
        return whole.elapsed_s, whole.iterations, whole.export()

    def elapsed_s(self, job_id: str, workflow: str) -> float:
        live = self._workflows.get((job_id, workflow))
        return 0.0 if live is None else live.elapsed_s

    def totals(self, job_id: str, name: str) -> tuple[int, int]:
        """Requests of a workflow so far, and how many of them failed."""
        live = self._workflows.get((job_id, name))
        if live is None:
            return 0, 0
        return live.requests, live.failed

    def requests(self, part: Part) -> tuple[int, float]:
        """Requests of a part so far, and its rate over the last second."""
        known = self._part(part)
        return (0, 0.0) if known is None else (known.requests, known.recent_rate(1.0))

    def counted(self, part: Part) -> int:
        """Requests of a part so far; asked for with every report, so it must cost nothing."""
        known = self._part(part)
        return 0 if known is None else known.requests

    def _part(self, part: Part) -> WorkflowAggregate | None:
        live = self._workflows.get((part.job_id, part.workflow))
        known = live.parts.get(part.number) if live is not None else None
        return None if known is None else known.aggregate

    def turn(self) -> None:
        """Close the window: what came late is in the next one, and totals never go back."""
        for (_, name), live in self._workflows.items():
            if not live.pending:
                continue
            live.index += 1
            vus = sum(part.vus for part in live.parts.values())
            merged = merge_deltas(live.pending, live.index, vus)
            live.pending.clear()
            live.windows.append(
                Window(
                    workflow=name,
                    index=live.index,
                    elapsed_s=live.elapsed_s,
                    delta=merged,
                    workers=len(live.parts),
                )
            )

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
