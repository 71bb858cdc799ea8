"""The small parts of a frame: title, progress bar, figures, notices, errors, footer."""

from __future__ import annotations

import textwrap

from rich.segment import Segment
from rich.style import Style

from hyperscale.metrics.results import Results, WorkflowResult
from hyperscale.ui import text
from hyperscale.ui.failures import ranked
from hyperscale.ui.live import palette
from hyperscale.ui.live.palette import Line
from hyperscale.ui.live.scene import Scene, share_done

_STATES: dict[str, tuple[str, Style]] = {
    "preparing": ("·", palette.WARN),
    "running": ("●", palette.GOOD),
    "paused": ("‖", palette.WARN),
    "stopping": ("■", palette.WARN),
    "finished": ("✓", palette.GOOD),
}
_SPINNER = "|/-\\"
_ROOMY = 60  # columns; below, the title is only what changes
_CELL = 20  # a figure and its label, wide enough for "requests 999,999,999"


def title(scene: Scene, width: int) -> Line:
    results, workflow = scene.results, scene.workflow
    roomy = width >= _ROOMY
    left = [*palette.gradient("hyperscale"), Segment("  ")] if roomy else []
    if workflow is None:
        left.append(Segment(results.name, palette.STRONG))
    else:
        left.append(Segment(workflow.name, palette.STRONG))
        if len(results.workflows) > 1:
            left.append(Segment(f" {scene.index + 1}/{len(results.workflows)}", palette.FAINT))
        left.append(Segment(f"  {workflow.load}", palette.FAINT))
    state = results.state if workflow is None else workflow.state
    sign, style = _STATES[state]
    right = [
        Segment(f"{sign} {state}  " if roomy else f"{sign} ", style),
        Segment(_times(results, workflow), palette.STRONG),
    ]
    return palette.spread(left, right, width)


def _times(results: Results, workflow: WorkflowResult | None) -> str:
    if workflow is None:
        return text.clock(results.elapsed_s)
    elapsed = text.clock(workflow.elapsed_s)
    return f"{elapsed} / {text.clock(workflow.planned_s)}" if workflow.planned_s else elapsed


def progress(scene: Scene, width: int) -> Line:
    workflow = scene.workflow
    done = share_done(workflow) if workflow else None
    if done is None:
        spinner = _SPINNER[scene.spin % len(_SPINNER)]
        return [Segment(f"{spinner} ", palette.BAR), Segment("─" * (width - 2), palette.FAINT)]
    label = f" {int(done * 100):3}%"
    if workflow and workflow.planned_iterations and not workflow.planned_s:
        label = (
            f" {text.short_count(workflow.iterations)}"
            f" of {text.short_count(workflow.planned_iterations)}{label}"
        )
    room = max(1, width - len(label))
    filled = int(done * room)
    return [
        Segment("━" * filled, palette.BAR),
        Segment("─" * (room - filled), palette.FAINT),
        Segment(label),
    ]


def figures(scene: Scene, width: int, rows: int) -> list[Line]:
    """Label and value pairs on a grid, so that nothing jumps while numbers grow."""
    workflow = scene.workflow
    if workflow is None:
        return [[Segment("waiting for the first numbers", palette.FAINT)]]
    per_row = max(1, width // _CELL)
    cell = width // per_row
    lines: list[Line] = []
    fields = _figures(workflow, scene)[: per_row * rows]
    for start in range(0, len(fields), per_row):
        line: Line = []
        for label, value, style in fields[start : start + per_row]:
            value = text.fit(value, max(0, cell - len(label) - 2))
            gap = " " * max(1, cell - len(label) - 1 - len(value))
            line += [Segment(f"{label} ", palette.FAINT), Segment(value, style), Segment(gap)]
        lines.append(palette.clip(line, width))
    return lines


def _figures(workflow: WorkflowResult, scene: Scene) -> list[tuple[str, str, Style]]:
    requests, failed = workflow.requests, workflow.failed
    overall = requests / workflow.elapsed_s if workflow.elapsed_s > 0 else 0.0
    vus = text.count(workflow.vus)
    if workflow.vus_max > workflow.vus:
        vus = f"{vus} of {text.count(workflow.vus_max)}"
    figures = [
        ("rate", text.rate(overall), palette.STRONG),
        (f"last {scene.recent_s:.0f}s", text.rate(scene.recent_rate), palette.STRONG),
        ("failed", text.percent(failed, requests), palette.BAD if failed else palette.GOOD),
        ("VUs", vus, palette.STRONG),
        ("requests", text.count(requests), palette.PLAIN),
        ("iterations", text.short_count(workflow.iterations), palette.PLAIN),
    ]
    if workflow.open_model or workflow.dropped_iterations:
        dropped = workflow.dropped_iterations
        style = palette.BAD if dropped else palette.PLAIN
        figures.append(("dropped", text.short_count(dropped), style))
    if workflow.checks:
        passed = sum(check.passed for check in workflow.checks)
        total = passed + sum(check.failed for check in workflow.checks)
        style = palette.GOOD if passed == total else palette.BAD
        figures.append(("checks", text.percent(passed, total) if total else text.NOTHING, style))
    received = sum(step.bytes_in for step in workflow.steps)
    sent = sum(step.bytes_out for step in workflow.steps)
    figures.append(("received", text.size(received), palette.PLAIN))
    figures.append(("sent", text.size(sent), palette.PLAIN))
    return figures


def notices(scene: Scene, width: int, rows: int) -> list[Line]:
    """Sentences that change how the numbers are read, the gravest first, in at most `rows`."""
    found = _notices(scene)
    lines: list[Line] = []
    if rows < 1:
        return lines
    for lines_each in (2, 1):
        lines = [line for notice in found for line in _sentence(*notice, width, lines_each)]
        if len(lines) <= rows:
            break
    return lines[:rows]


def _notices(scene: Scene) -> list[tuple[str, str, Style]]:
    results, workflow = scene.results, scene.workflow
    found: list[tuple[str, str, Style]] = []
    if workflow and workflow.error:
        found.append(("✗", workflow.error, palette.BAD))
    if results.saturation:
        found.append(("⚠", results.saturation, palette.WARN))
    for threshold in results.thresholds:
        if not threshold.passed and threshold.actual is not None:
            sentence = f"{threshold.scope} {threshold.expression}  now {threshold.actual_text}"
            found.append(("✗", sentence, palette.BAD))
    if results.warnings:
        found.append(("⚠", results.warnings[-1], palette.WARN))
    if workflow and workflow.marks:
        mark = workflow.marks[-1]
        found.append(("▲", f"at {text.seconds(mark.at_s)}: {mark.text}", palette.FAINT))
    return found


def _sentence(sign: str, sentence: str, style: Style, width: int, lines: int) -> list[Line]:
    wrapped = textwrap.wrap(
        text.one_line(sentence), max(10, width - 2), max_lines=lines, placeholder=" …"
    )
    return [
        palette.clip([Segment(f"{' ' if i else sign} {part}", style)], width)
        for i, part in enumerate(wrapped)
    ]


def errors(workflow: WorkflowResult, width: int, rows: int) -> list[Line]:
    """A heading and the most frequent failures, or nothing when there are none or no room."""
    if rows < 2:
        return []
    found = ranked([workflow])
    if not found:
        return []
    lines: list[Line] = [[Segment("errors", palette.HEADING)]]
    found = found[: rows - 1]
    columns = [max(len(error.kind) for error in found), max(len(error.step) for error in found)]
    for error in found:
        left = f"{text.short_count(error.count):>7}  "
        what = f"{error.kind:<{columns[0]}}  {error.step:<{columns[1]}}  "
        lines.append(
            palette.clip(
                [
                    Segment(left, palette.BAD),
                    Segment(what),
                    Segment(
                        text.fit(error.message, width - len(left) - len(what)),
                        palette.FAINT,
                    ),
                ],
                width,
            )
        )
    return lines


def footer(scene: Scene, width: int) -> Line:
    if not scene.keyboard:
        return [Segment(text.fit("Ctrl-C stops the run", width), palette.FAINT)]
    state = scene.results.state
    keys = [("q", "stop now" if state == "stopping" else "stop")]
    if state != "stopping":
        keys[:0] = [("p", "resume" if state == "paused" else "pause"), ("+/-", "VUs")]
        if len(scene.results.workflows) > 1:
            keys.insert(2, ("tab", "next"))
    line: Line = []
    for key, meaning in keys:
        line += [Segment(key, palette.KEY), Segment(f" {meaning}   ", palette.FAINT)]
    return palette.spread(line, [Segment(scene.message, palette.WARN)], width)
