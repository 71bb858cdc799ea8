"""CHECKS and ERRORS of the summary: what failed, where in the test, and the first time it did."""

from __future__ import annotations

from hyperscale.metrics.results import FirstFailure, Results
from hyperscale.ui import text
from hyperscale.ui.failures import first_lines, ranked
from hyperscale.ui.lines import INDENT, Lines

_ERRORS_MAX = 10


def checks(lines: Lines, results: Results, *, tracebacks: bool) -> None:
    found = [check for workflow in results.workflows for check in workflow.checks]
    if not found:
        return
    lines.section("CHECKS")
    passed, failed = sum(check.passed for check in found), sum(check.failed for check in found)
    lines.field("checks", text.out_of(passed, passed + failed) if passed + failed else "none ran")
    several = len(results.workflows) > 1
    for check in found:
        name = text.one_line(f"{check.workflow}: {check.name}" if several else check.name)
        total = text.count(check.passed + check.failed)
        if not check.passed + check.failed:
            lines.add(f"{INDENT}- {name}  never ran")
        elif not check.failed:
            lines.add(f"{INDENT}{lines.paint.good('✓')} {name}")
        else:
            failures = f"{text.count(check.failed)} of {total} failed"
            lines.add(f"{INDENT}{lines.paint.bad('✗')} {name}  {failures}")
            first = check.first or FirstFailure()
            if said := " · ".join(filter(None, [*check.samples[:1], first.where])):
                lines.told(f"↳ {said}", INDENT * 2)
            _first(lines, first, INDENT * 3, tracebacks)


def errors(lines: Lines, results: Results, *, tracebacks: bool) -> None:
    found = ranked(results.workflows)
    if not found:
        return
    lines.section("ERRORS")
    several = len(results.workflows) > 1
    shown = found[:_ERRORS_MAX]
    counts = [text.count(failure.count) for failure in shown]
    names = [f"{f.workflow}.{f.step}" if several else f.step for f in shown]
    digits, letters = max(map(len, counts)), max(map(len, names))
    below = " " * (len(INDENT) + digits + 3 + letters + 2)
    if lines.width is not None and len(below) > lines.width // 2:
        below = INDENT * 3
    for failure, count, name in zip(shown, counts, names, strict=True):
        begin = f"{INDENT}{count:>{digits}} × "
        what = (
            f"{name:<{letters}}  {'  '.join(filter(None, [failure.message, failure.first.where]))}"
        )
        first, *rest = text.wrapped(begin + what, lines.width, hanging=below)
        lines.add(lines.paint.bad(first[: len(begin)]) + first[len(begin) :])
        lines.extend(rest)
        _first(lines, failure.first, below, tracebacks)
    if len(found) > len(shown):
        lines.add(f"{INDENT}… {len(found) - len(shown)} more kinds, all of them in the JSON output")


def _first(lines: Lines, first: FirstFailure, indent: str, tracebacks: bool) -> None:
    for line in first_lines(first):
        lines.told(line, indent)
    if tracebacks and first.traceback:
        lines.extend(f"{indent}{line}" for line in text.printable_lines(first.traceback))
