"""How many iterations of a workflow are those of some of its cores.

Users are dealt to cores in equal shares, the last one takes the rest, and iterations go with users:
as generators do it (`workload.load.split`, which knows nothing of parts).
"""

from __future__ import annotations

from hyperscale.cluster.jobs.records import Needs
from hyperscale.cluster.jobs.state import PartState, WorkflowState


def planned_iterations(needs: Needs, total_cores: int, first: int, cores: int) -> int | None:
    """None: nobody knows, the workflow goes by time."""
    if needs.iterations is None:
        return None
    users = min(needs.peak_vus, needs.iterations)
    shares = min(total_cores, users)

    def before(core: int) -> int:
        dealt = users if core >= shares else users // shares * core
        return needs.iterations * dealt // users if needs.iterations else 0

    return before(first + cores) - before(first)


class Rest:
    """What is left of a part, cut into pieces: each takes of its iterations what is planned for its
    cores, so that what was made is nobody's twice, though cores have unequal shares."""

    def __init__(self, workflow: WorkflowState, part: PartState) -> None:
        self._workflow = workflow
        self._cores = part.cores
        self._done = part.iterations_done
        self._left_out = part.left_out
        self._planned = self._planned_of(part.first_core, part.cores)
        self._left = max(0, (self._planned or 0) - self._done + self._left_out)

    def _planned_of(self, first: int, cores: int) -> int | None:
        return planned_iterations(self._workflow.needs, self._workflow.total_cores, first, cores)

    def cut(self, first: int, cores: int) -> tuple[int, int]:
        """`iterations_done` and `left_out` of the next piece."""
        done = self._done * cores // self._cores
        planned = self._planned_of(first, cores)
        if planned is None or self._planned is None:
            left_out = self._left_out * cores // self._cores
        else:
            left = self._left * planned // self._planned if self._planned else 0
            left_out = left - planned + done
            self._left -= left
            self._planned -= planned
        self._cores -= cores
        self._done -= done
        self._left_out -= left_out
        return done, left_out

    @property
    def is_cut(self) -> bool:
        return not (self._done or (self._left_out if self._planned is None else self._left))
