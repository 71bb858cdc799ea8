"""What one frame shows: a snapshot, the workflow in turn, and what the view itself knows."""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.metrics.results import Results, WorkflowResult
from hyperscale.ui.plot import BRAILLE, Pen


@dataclass(frozen=True, slots=True)
class Scene:
    results: Results
    index: int = 0  # of the workflow in turn
    recent_rate: float = 0.0  # requests a second over the last `recent_s`
    recent_s: float = 3.0
    keyboard: bool = True
    message: str = ""  # the answer to the last key press
    spin: int = 0  # counts frames
    pen: Pen = BRAILLE

    @property
    def workflow(self) -> WorkflowResult | None:
        workflows = self.results.workflows
        return workflows[self.index % len(workflows)] if workflows else None


def share_done(workflow: WorkflowResult) -> float | None:
    """0..1, or None when the plan has no end that can be foreseen."""
    if workflow.state == "finished":
        return 1.0
    if workflow.planned_s:
        return min(1.0, workflow.elapsed_s / workflow.planned_s)
    if workflow.planned_iterations:
        return min(1.0, workflow.iterations / workflow.planned_iterations)
    return None
