"""The small parts of a frame: title, progress bar, figures, footer."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from rich.segment import Segment
from rich.style import Style

from hyperscale.metrics.results import Results, WorkflowResult, failed_share
from hyperscale.metrics.totals import covered
from hyperscale.ui import text
from hyperscale.ui.live import palette
from hyperscale.ui.live.palette import Line
from hyperscale.ui.live.scene import Scene, share_done

STATES: dict[str, tuple[str, Style]] = {
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
        if results.workflows:
            left.append(Segment(f"  {len(results.workflows)} workflows", palette.FAINT))
    else:
        left.append(Segment(workflow.name, palette.STRONG))
        if scene.index is not None and len(results.workflows) > 1:
            left.append(Segment(f" {scene.index + 1}/{len(results.workflows)}", palette.FAINT))
        left.append(Segment(f"  {workflow.load}", palette.FAINT))
    state = results.state if workflow is None else workflow.state
    sign, style = STATES[state]
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
    done = _share_done(scene.workflows)
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


def _share_done(workflows: Sequence[WorkflowResult]) -> float | None:
    shares = [share for workflow in workflows if (share := share_done(workflow)) is not None]
    return fmean(shares) if shares and len(shares) == len(workflows) else None


def figures(scene: Scene, width: int, rows: int) -> list[Line]:
    """Label and value pairs on a grid, so that nothing jumps while numbers grow."""
    if not scene.workflows:
        return [[Segment("waiting for the first numbers", palette.FAINT)]]
    per_row = max(1, width // _CELL)
    cell = width // per_row
    lines: list[Line] = []
    fields = _figures(scene)[: per_row * rows]
    for start in range(0, len(fields), per_row):
        line: Line = []
        for label, value, style in fields[start : start + per_row]:
            value = text.fit(value, max(0, cell - len(label) - 2))
            gap = " " * max(1, cell - len(label) - 1 - len(value))
            line += [Segment(f"{label} ", palette.FAINT), Segment(value, style), Segment(gap)]
        lines.append(palette.clip(line, width))
    return lines


def _figures(scene: Scene) -> list[tuple[str, str, Style]]:
    workflows = scene.workflows
    requests, failed = sum(w.requests for w in workflows), sum(w.failed for w in workflows)
    share = failed_share(failed, requests, sum(w.unsent for w in workflows))
    users, most = sum(w.vus for w in workflows), sum(w.vus_max for w in workflows)
    vus = text.count(users)
    if scene.workflow and most > users:
        vus = f"{vus} of {text.count(most)}"
    figures = [
        ("rate", text.rate(_overall_rate(workflows)), palette.STRONG),
        (f"last {scene.recent_s:.0f}s", text.rate(scene.recent_rate), palette.STRONG),
        ("failed", text.percent(share, 1), palette.BAD if failed else palette.GOOD),
        ("VUs", vus, palette.STRONG),
        ("requests", text.count(requests), palette.PLAIN),
        ("iterations", text.short_count(sum(w.iterations for w in workflows)), palette.PLAIN),
    ]
    if unsent := sum(w.unsent for w in workflows):
        figures.append(("never sent", text.short_count(unsent), palette.BAD))
    dropped = sum(w.dropped_iterations for w in workflows)
    if dropped or any(w.open_model for w in workflows):
        style = palette.BAD if dropped else palette.PLAIN
        figures.append(("dropped", text.short_count(dropped), style))
    if checks := [check for workflow in workflows for check in workflow.checks]:
        passed = sum(check.passed for check in checks)
        total = passed + sum(check.failed for check in checks)
        style = palette.GOOD if passed == total else palette.BAD
        figures.append(("checks", text.percent(passed, total) if total else text.NOTHING, style))
    steps = [step for workflow in workflows for step in workflow.steps]
    figures.append(("received", text.size(sum(step.bytes_in for step in steps)), palette.PLAIN))
    figures.append(("sent", text.size(sum(step.bytes_out for step in steps)), palette.PLAIN))
    return figures


def _overall_rate(workflows: Sequence[WorkflowResult]) -> float:
    """Over the time something ran."""
    span_s = covered((workflow.started_s, workflow.elapsed_s) for workflow in workflows)
    return sum(workflow.requests for workflow in workflows) / span_s if span_s else 0.0


def footer(scene: Scene, width: int) -> Line:
    if not scene.keyboard:
        return [Segment(text.fit("Ctrl-C stops the run", width), palette.FAINT)]
    state = scene.results.state
    keys = [("q", "stop now" if state == "stopping" else "stop")]
    if state != "stopping":
        keys[:0] = [("p", "resume" if state == "paused" else "pause"), ("+/-", _lever(scene))]
        if len(scene.results.workflows) > 1:
            turn = [("tab", "next")] if scene.workflow is None else [("tab", "next"), ("0", "all")]
            keys[2:2] = turn
    line: Line = []
    for key, meaning in keys:
        line += [Segment(key, palette.KEY), Segment(f" {meaning}   ", palette.FAINT)]
    return palette.spread(line, [Segment(scene.message, palette.WARN)], width)


def _lever(scene: Scene) -> str:
    """What + and - change."""
    models = {workflow.open_model for workflow in scene.workflows}
    return "load" if len(models) > 1 else "rate" if True in models else "VUs"
