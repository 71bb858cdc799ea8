"""A frame for a screen of any size: what is always there, and who gets the lines that are left.

In order of claim: title, bar, figures, footer and one row of the table; then the gravest notice,
the other rows, response times, the other notices, the thresholds, the errors, and last the plot
and the requests by name.
"""

from __future__ import annotations

from collections.abc import Callable

from hyperscale.metrics.results import WorkflowResult
from hyperscale.ui.live import charts, notices, palette, parts, table
from hyperscale.ui.live.overview import workflow_table
from hyperscale.ui.live.palette import Line
from hyperscale.ui.live.scene import Scene
from hyperscale.ui.totals import views_differ

_ERRORS_MAX = 5
_PLOT_MAX = 18
_NOTICES_MAX = 4
_THRESHOLDS_MAX = 6
_TALL = 16  # rows from which the figures may use a third line


def compose(scene: Scene, drawer: charts.Charts, width: int, height: int) -> list[Line]:
    """Exactly `height` lines, none wider than `width`."""
    head = [parts.title(scene, width), parts.progress(scene, width)]
    narrow_and_tall = width < 60 and height >= _TALL
    head += parts.figures(scene, width, rows=3 if narrow_and_tall else 2)
    room = max(0, height - len(head) - 1)
    body = _body(scene, drawer, width, room) if scene.workflows else []
    body += [[] for _ in range(room - len(body))]
    lines = [*head, *body, parts.footer(scene, width)]
    return [palette.clip(line, width) for line in lines[:height]]


def _body(scene: Scene, drawer: charts.Charts, width: int, room: int) -> list[Line]:
    workflow = scene.workflow
    rows = len(scene.workflows) if workflow is None else len(workflow.steps)
    grave = len(notices.notices(scene, width, min(1, room - 2), crossed=True))
    table_rows = min(1 + rows, room - grave)
    room -= table_rows
    both = workflow is not None and _wants_both(workflow) and room - grave >= rows
    if both:
        room -= rows
        table_rows += rows
    judged = notices.thresholds(scene, width, min(room - grave, _THRESHOLDS_MAX))
    room -= len(judged)
    said = notices.notices(scene, width, min(room, _NOTICES_MAX), crossed=not judged)
    room -= len(said)
    # Two errors are worth more than a plot, a plot more than a third.
    most = min(1 + _ERRORS_MAX, max(1 + 2, room - charts.MIN_ROWS))
    errors = notices.errors(scene, width, min(room, most))
    room -= len(errors)
    names = False
    if workflow is not None:
        named = table.rows_of(workflow.steps, both=both, names=True) + 1 - table_rows
        names = 0 < named <= room - charts.MIN_ROWS - 2
        room, table_rows = (room - named, table_rows + named) if names else (room, table_rows)
    gaps = 1 + bool(errors)  # one before the table, one before the errors
    draw = _drawing(scene, drawer, width)
    plot = draw(min(_PLOT_MAX, room - gaps - 1)) or draw(min(_PLOT_MAX, room))
    room -= len(plot)
    before_table, before_plot, before_errors = _spaces(room, bool(plot), bool(errors))
    if workflow is None:
        rows_shown = workflow_table(scene, width, table_rows)
    else:
        rows_shown = table.step_table(workflow, width, table_rows, both=both, names=names)
    return [
        *said,
        *judged,
        *before_table,
        *rows_shown,
        *before_plot,
        *plot,
        *before_errors,
        *errors,
    ]


def _drawing(scene: Scene, drawer: charts.Charts, width: int) -> Callable[[int], list[Line]]:
    workflow = scene.workflow
    if workflow is None:
        return lambda rows: drawer.draw_all(scene.workflows, width, rows, scene.pen)
    return lambda rows: drawer.draw(workflow, width, rows, scene.pen)


def _wants_both(workflow: WorkflowResult) -> bool:
    return any(views_differ(workflow, step) for step in workflow.steps)


def _spaces(room: int, plot: bool, errors: bool) -> list[list[Line]]:
    spaces: list[list[Line]] = []
    for wanted in (True, plot, errors):
        blank: Line = []
        spaces.append([blank] if wanted and room > 0 else [])
        room -= len(spaces[-1])
    return spaces
