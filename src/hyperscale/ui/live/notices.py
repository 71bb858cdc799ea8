"""The sentences of a frame: what changes how the numbers are read, thresholds, errors."""

from __future__ import annotations

import textwrap

from rich.segment import Segment
from rich.style import Style

from hyperscale.metrics.results import ThresholdResult
from hyperscale.ui import text
from hyperscale.ui.datacenters import datacenter_line
from hyperscale.ui.failures import ranked
from hyperscale.ui.live import palette
from hyperscale.ui.live.palette import Line
from hyperscale.ui.live.scene import Scene


def notices(scene: Scene, width: int, rows: int, *, crossed: bool) -> list[Line]:
    """Sentences that change how the numbers are read, the gravest first, in at most `rows`;
    `crossed` thresholds are among them where the list of thresholds has no room."""
    found = _notices(scene, crossed)
    lines: list[Line] = []
    if rows < 1:
        return lines
    for lines_each in (2, 1):
        lines = [line for notice in found for line in _sentence(*notice, width, lines_each)]
        if len(lines) <= rows:
            break
    return lines[:rows]


def _notices(scene: Scene, crossed: bool) -> list[tuple[str, str, Style]]:
    results = scene.results
    several = scene.workflow is None
    found: list[tuple[str, str, Style]] = []
    if results.datacenters:
        found.append(("▪", datacenter_line(results), palette.FAINT))
    for workflow in scene.workflows:
        if workflow.error:
            name = f"{workflow.name}: " if several else ""
            found.append(("✗", f"{name}{workflow.error}", palette.BAD))
    if results.lost:
        found.append(("✗", results.lost[-1], palette.BAD))
    if results.saturation:
        found.append(("⚠", results.saturation, palette.WARN))
    if crossed:
        found += [("✗", _judged(t), palette.BAD) for t in _thresholds(scene) if _crossed(t)]
    if results.warnings:
        found.append(("⚠", results.warnings[-1], palette.WARN))
    if scene.page:
        found.append(("▪", f"live page: {scene.page}", palette.FAINT))
    marks = [(mark, workflow) for workflow in scene.workflows for mark in workflow.marks[-1:]]
    if marks:
        mark, workflow = max(marks, key=lambda pair: pair[0].at_s)
        name = f"{workflow.name} " if several else ""
        found.append(("▲", f"{name}at {text.seconds(mark.at_s)}: {mark.text}", palette.FAINT))
    return found


def _sentence(sign: str, sentence: str, style: Style, width: int, lines: int) -> list[Line]:
    wrapped = textwrap.wrap(
        text.one_line(sentence), max(10, width - 2), max_lines=lines, placeholder=" …"
    )
    return [
        palette.clip([Segment(f"{' ' if i else sign} {part}", style)], width)
        for i, part in enumerate(wrapped)
    ]


def thresholds(scene: Scene, width: int, rows: int) -> list[Line]:
    """How each threshold stands, the crossed ones first; nothing when there is no room for it."""
    found = sorted(_thresholds(scene), key=lambda threshold: not _crossed(threshold))
    if not found or rows < min(len(found), 2):
        return []
    shown = found if len(found) <= rows else found[: rows - 1]
    lines: list[Line] = []
    for threshold in shown:
        sign, style = ("✗", palette.BAD) if _crossed(threshold) else ("✓", palette.GOOD)
        if threshold.actual is None:
            sign, style = "·", palette.FAINT
        rest = palette.BAD if _crossed(threshold) else palette.PLAIN
        judged = text.fit(_judged(threshold), max(0, width - 2))
        lines.append(palette.clip([Segment(f"{sign} ", style), Segment(judged, rest)], width))
    if left := found[len(shown) :]:
        bad = sum(map(_crossed, left))
        words = f"… {len(left)} more thresholds{f', {bad} of them crossed' if bad else ''}"
        lines.append([Segment(text.fit(words, width), palette.BAD if bad else palette.FAINT)])
    return lines


def _thresholds(scene: Scene) -> list[ThresholdResult]:
    """Of the workflow shown, or of all: a scope begins with its workflow where there is one."""
    others = {w.name for w in scene.results.workflows} - {w.name for w in scene.workflows}
    return [t for t in scene.results.thresholds if t.scope.partition(":")[0] not in others]


def _crossed(threshold: ThresholdResult) -> bool:
    return not threshold.passed and threshold.actual is not None


def _judged(threshold: ThresholdResult) -> str:
    actual = "nothing to judge yet" if threshold.actual is None else threshold.actual_text
    return text.one_line(f"{threshold.scope} {threshold.expression} · {actual}")


def errors(scene: Scene, width: int, rows: int) -> list[Line]:
    """A heading and the most frequent failures, or nothing when there are none or no room."""
    found = ranked(scene.workflows)[: max(0, rows - 1)]
    if not found:
        return []
    lines: list[Line] = [[Segment("errors", palette.HEADING)]]
    several = scene.workflow is None
    names = [f"{each.workflow}.{each.step}" if several else each.step for each in found]
    name_width = min(max(map(len, names)), max(8, width // 4))
    for failure, name in zip(found, names, strict=True):
        left = f"{text.short_count(failure.count):>7} × "
        what = "  ".join(filter(None, [failure.message, failure.first.where]))
        room = width - len(left) - name_width - 2
        lines.append(
            palette.clip(
                [
                    Segment(left, palette.BAD),
                    Segment(f"{palette.cell(name, name_width)}  "),
                    Segment(text.fit(what, max(0, room)), palette.FAINT),
                ],
                width,
            )
        )
    return lines
