"""A frame for a screen of any size: what is always there, and who gets the lines that are left.

In order of claim: title, bar, figures, footer and one step; then the gravest notice, the other
steps, their response-time rows, the other notices, the errors, and last the plot.
"""

from __future__ import annotations

from hyperscale.metrics.results import WorkflowResult
from hyperscale.ui.live import charts, palette, parts, table
from hyperscale.ui.live.palette import Line
from hyperscale.ui.live.scene import Scene
from hyperscale.ui.totals import views_differ

_ERRORS_MAX = 5
_PLOT_MAX = 18
_NOTICES_MAX = 4
_TALL = 16  # rows from which the figures may use a third line


def compose(scene: Scene, drawer: charts.Charts, width: int, height: int) -> list[Line]:
    """Exactly `height` lines, none wider than `width`."""
    head = [parts.title(scene, width), parts.progress(scene, width)]
    narrow_and_tall = width < 60 and height >= _TALL
    head += parts.figures(scene, width, rows=3 if narrow_and_tall else 2)
    room = max(0, height - len(head) - 1)
    body = _body(scene, drawer, width, room) if scene.workflow else []
    body += [[] for _ in range(room - len(body))]
    lines = [*head, *body, parts.footer(scene, width)]
    return [palette.clip(line, width) for line in lines[:height]]


def _body(scene: Scene, drawer: charts.Charts, width: int, room: int) -> list[Line]:
    workflow = scene.workflow
    assert workflow is not None
    grave = len(parts.notices(scene, width, min(1, room - 2)))
    table_rows = min(1 + len(workflow.steps), room - grave)
    room -= table_rows
    both = _wants_both(workflow) and room - grave >= len(workflow.steps)
    if both:
        room -= len(workflow.steps)
        table_rows += len(workflow.steps)
    notices = parts.notices(scene, width, min(room, _NOTICES_MAX))
    room -= len(notices)
    errors = parts.errors(workflow, width, min(room, 1 + _ERRORS_MAX))
    room -= len(errors)
    gaps = 1 + bool(errors)  # one before the table, one before the errors
    plot_rows = min(_PLOT_MAX, room - gaps - 1)
    plot = drawer.draw(workflow, width, plot_rows, scene.pen)
    if not plot:
        plot = drawer.draw(workflow, width, min(_PLOT_MAX, room), scene.pen)
    room -= len(plot)
    before_table, before_plot, before_errors = _spaces(room, bool(plot), bool(errors))
    return [
        *notices,
        *before_table,
        *table.step_table(workflow, width, table_rows, both=both),
        *before_plot,
        *plot,
        *before_errors,
        *errors,
    ]


def _wants_both(workflow: WorkflowResult) -> bool:
    return any(views_differ(workflow, step) for step in workflow.steps)


def _spaces(room: int, plot: bool, errors: bool) -> list[list[Line]]:
    spaces: list[list[Line]] = []
    for wanted in (True, plot, errors):
        blank: Line = []
        spaces.append([blank] if wanted and room > 0 else [])
        room -= len(spaces[-1])
    return spaces
