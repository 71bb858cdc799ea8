"""What one frame shows: a snapshot, the page that was chosen, and what the view itself knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hyperscale.metrics.results import Results, WorkflowResult
from hyperscale.ui.plot import BRAILLE, Pen


@dataclass(frozen=True, slots=True)
class Scene:
    results: Results
    index: int | None = None  # of the workflow shown; None: all of them
    recent_rates: Mapping[str, float] = field(default_factory=dict)  # by workflow, requests/s
    recent_s: float = 3.0  # what "recent" means
    keyboard: bool = True
    message: str = ""  # the answer to the last key press
    spin: int = 0  # counts frames
    pen: Pen = BRAILLE
    page: str = ""  # where the run is shown in a browser

    @property
    def workflows(self) -> list[WorkflowResult]:
        """Those this frame is about."""
        return self.results.workflows if self.workflow is None else [self.workflow]

    @property
    def workflow(self) -> WorkflowResult | None:
        """The only one this frame is about, if so."""
        workflows = self.results.workflows
        if len(workflows) == 1:
            return workflows[0]
        return None if self.index is None or not workflows else workflows[self.index]

    @property
    def recent_rate(self) -> float:
        return sum(self.recent_rates.get(workflow.name, 0.0) for workflow in self.workflows)


def share_done(workflow: WorkflowResult) -> float | None:
    """0..1, or None when the plan has no end that can be foreseen."""
    if workflow.state == "finished":
        return 1.0
    if workflow.planned_s:
        return min(1.0, workflow.elapsed_s / workflow.planned_s)
    if workflow.planned_iterations:
        return min(1.0, workflow.iterations / workflow.planned_iterations)
    return None
