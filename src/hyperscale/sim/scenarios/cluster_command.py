"""That all load is under command, judged from outside: what nobody can end ends by itself, and what
nobody runs is given to somebody who can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import (
    Dispatched,
    Finished,
    GivenUp,
    JobRecord,
    Part,
    PartEnded,
    PartLost,
    Returned,
)
from hyperscale.sim.scenarios.cluster_checkers import ClusterChecker
from hyperscale.sim.scenarios.cluster_truth import Truth

LOOK_EVERY_S: Final = 0.5
# A worker without a leader ends its load after 6 s and kills it a second later; one that has a
# leader hears within a second that nobody waits for it, and has 3 s before it is killed.
OUTLIVES_S: Final = 9.0
# A worker that cannot be commanded is given up after 8 s, or what it has ended is, and its loss
# takes a record.
UNTENDED_S: Final = 14.0
# A dispatch is tried three times, for 5 s each.
UNDELIVERED_S: Final = 20.0


class UnderCommand(ClusterChecker):
    """While one manager leads, load of a job that is over does not go on, and, where workers are
    cut off and nothing else is wrong, no part stays placed where nobody tends it."""

    def __init__(
        self, truth: Truth, leading: Callable[[], str], only_cuts: Callable[[], bool]
    ) -> None:
        super().__init__(truth)
        self._leading = leading
        self._only_cuts = only_cuts
        self._leader, self._led_since = "", 0.0
        self._placed: dict[Part, Fence] = {}
        self._untended: dict[tuple[Part, Fence], float] = {}

    def on_phase(self, _at: float, name: str) -> None:
        if name == "safety":
            self._look()

    def on_committed(self, _at: float, node: str, index: int, what: str, job: str) -> None:
        self._note(self.truth.log[index])

    def _note(self, record: JobRecord) -> None:
        match record:
            case Dispatched():
                self._placed |= {one.part: one.fence for one in record.placements}
            case PartEnded() | PartLost():
                if self._placed.get(record.part) == record.fence:
                    del self._placed[record.part]
            case GivenUp():
                self._placed.pop(record.part, None)
            case Returned(workflow=workflow, parts=numbers):
                for part in list(self._placed):
                    of_it = (part.job_id, part.workflow) == (record.job_id, workflow)
                    if of_it and (not numbers or part.number in numbers):
                        del self._placed[part]
            case Finished():
                for part in [p for p in self._placed if p.job_id == record.job_id]:
                    del self._placed[part]
            case _:
                pass

    def _look(self) -> None:
        now, leader = self.world.now, self._leading()
        if leader != self._leader:
            self._leader, self._led_since = leader, now
        if leader:
            self._look_at_load(now)
            if self._only_cuts():
                self._look_at_parts(now)
        self.world.loop.after(LOOK_EVERY_S, self._look)

    def _look_at_load(self, now: float) -> None:
        for one in self.truth.loading():
            job = one.order.part.job_id
            ended_at = self.truth.finished_at.get(job)
            if ended_at is not None and now - max(ended_at, self._led_since) > OUTLIVES_S:
                after_s = now - ended_at
                self.fail(f"{one.where} loads {one.order.part} {after_s:.1f} s after its end")

    def _look_at_parts(self, now: float) -> None:
        untended = {key for key in self._placed.items() if not self.truth.is_tended(*key)}
        self._untended = {key: self._untended.get(key, now) for key in untended}
        for (part, fence), since in self._untended.items():
            arrived = any(one.order.fence == fence for one in self.truth.observed[part])
            limit_s = UNTENDED_S if arrived else UNDELIVERED_S
            if now - max(since, self._led_since) > limit_s:
                where = self.truth.placed[part, fence]
                self.fail(f"{part} is placed on {where}, where nobody has tended it since {since}")
