"""A comparison of two runs as text: what changed, by how much, how sure, the verdict.

Workflows and everything that changed are shown number by number; steps that did not change are
named in one line unless all rows are asked for. In a terminal the verdict stands last, where the
eye is when the command ends; in Markdown, for the page of a CI run, it stands first.
"""

from __future__ import annotations

from collections.abc import Iterator

from hyperscale.metrics.compare import Change, Compared, Comparison
from hyperscale.ui import markdown, text
from hyperscale.ui.output import Paint

_NAMES = {"error_share": "errors"}
_HEADINGS = ("", "before", "after", "change", "95% interval", "")
# Above ten times as much, a percentage is harder to read than a factor.
_FACTOR_FROM = 9.0
# The interval of a number that was close to zero has no end worth printing.
_ENDLESS = 1e6

Row = tuple[str, str, str, str, str, str]


def render_comparison(
    comparison: Comparison,
    *,
    before: str,
    after: str,
    paint: Paint | None = None,
    all_rows: bool = False,
) -> str:
    """`before` and `after` name the two runs, usually by file."""
    paint = paint or Paint(on=False)
    lines = [f"before  {text.one_line(before)}", f"after   {text.one_line(after)}", ""]
    shown = _shown(comparison, all_rows)
    if shown:
        lines += _table(shown, paint)
    for remark in _without_rows(comparison, shown, before, after):
        lines += [remark, ""]
    if comparison.notes:
        lines += [paint.warn(f"! {text.one_line(note)}") for note in comparison.notes] + [""]
    lines.append(_verdict(comparison, paint))
    return "\n".join(lines) + "\n"


def markdown_comparison(
    comparison: Comparison, *, before: str, after: str, all_rows: bool = False
) -> str:
    shown = _shown(comparison, all_rows)
    table = [markdown.row(_HEADINGS), "|---|--:|--:|--:|--:|---|"] if shown else []
    for scope in shown:
        table.append(markdown.row((f"**{text.one_line(scope.name)}**", "", "", "", "", "")))
        for change in scope.changes:
            *cells, verdict = _row(change)
            table.append(markdown.row((*cells, f"**{verdict}**" if verdict else "")))
    remarks = [*_without_rows(comparison, shown, before, after), *comparison.notes]
    paragraphs = [f"**{_verdict(comparison, Paint(on=False))}**", "\n".join(table)]
    paragraphs += [text.one_line(remark) for remark in remarks]
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def _shown(comparison: Comparison, all_rows: bool) -> list[Compared]:
    return [
        scope
        for scope in comparison.compared
        if all_rows or not scope.step or scope.verdict != "same"
    ]


def _without_rows(
    comparison: Comparison, shown: list[Compared], before: str, after: str
) -> Iterator[str]:
    unchanged = [scope.name for scope in comparison.compared if scope not in shown]
    if unchanged:
        yield f"No change: {_list(unchanged)}"
    if comparison.only_before:
        yield f"Only in {text.one_line(before)}: {_list(comparison.only_before)}"
    if comparison.only_after:
        yield f"Only in {text.one_line(after)}: {_list(comparison.only_after)}"


def _table(scopes: list[Compared], paint: Paint) -> Iterator[str]:
    blocks = [(scope, [_row(change) for change in scope.changes]) for scope in scopes]
    rows = [row for _, found in blocks for row in found]
    widths = [
        max(len(heading), *(len(row[column]) for row in rows)) if rows else len(heading)
        for column, heading in enumerate(_HEADINGS)
    ]
    yield paint.faint(_line(_HEADINGS, widths))
    for scope, found in blocks:
        yield paint.strong(text.one_line(scope.name))
        for change, row in zip(scope.changes, found, strict=True):
            line = _line(row, widths)
            if change.verdict == "worse":
                line = paint.bad(line)
            elif change.verdict == "better":
                line = paint.good(line)
            yield line
        yield ""


def _line(row: Row, widths: list[int]) -> str:
    name, *middle, verdict = row
    cells = [name.ljust(widths[0])]
    cells += [cell.rjust(width) for cell, width in zip(middle, widths[1:-1], strict=True)]
    return f"  {'   '.join([*cells, verdict])}".rstrip()


def _row(change: Change) -> Row:
    points = change.unit == "share"
    return (
        _NAMES.get(change.metric, change.metric),
        value_text(change.before, change.unit),
        value_text(change.after, change.unit),
        difference_text(change.change, points=points),
        " to ".join(difference_text(end, points=points) for end in (change.low, change.high)),
        "" if change.verdict == "same" else change.verdict,
    )


def value_text(value: float, unit: str) -> str:
    if unit == "ms":
        return text.short_duration(value)
    return text.rate(value) if unit == "/s" else text.percent(value, 1.0)


def difference_text(value: float, *, points: bool) -> str:
    if points:
        return f"{_signed(value * 100, 2)} pp"
    if value >= _ENDLESS:
        return "no limit"
    if value >= _FACTOR_FROM:
        return f"×{text.number(float(f'{1 + value:.3g}'))}"
    return f"{_signed(value * 100, 1)}%"


def _signed(value: float, digits: int) -> str:
    rounded = round(value, digits)
    return f"{rounded:+.{digits}f}" if rounded else f"{0:.{digits}f}"


def _verdict(comparison: Comparison, paint: Paint) -> str:
    sentence = text.one_line(comparison.reason)
    if comparison.verdict == "worse":
        return paint.bad(f"✗ {sentence}")
    if comparison.verdict == "not comparable":
        return paint.warn(f"! {sentence}")
    return paint.good(f"✓ {sentence}")


def _list(names: list[str]) -> str:
    return ", ".join(text.one_line(name) for name in names)
