"""A run as Markdown, for a pull request and for the page of a CI run: the verdict first, then what
was judged, the steps, and what failed.

What a target or a test said stands in code spans, where it can neither be markup nor call a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hyperscale.metrics.results import Results, WorkflowResult
from hyperscale.ui import text
from hyperscale.ui.failures import first_lines, ranked
from hyperscale.ui.output import Paint
from hyperscale.ui.steptable import HEADINGS, step_rows
from hyperscale.ui.totals import judged, notes
from hyperscale.ui.verdict import verdict

# A comment on GitHub holds 65,536 characters; what is left out is in the other files of the run.
_STEPS_MAX = 100
_FAILURES_MAX = 10
_MESSAGE_MAX = 200


def render_markdown(results: Results) -> str:
    names = ", ".join(code(workflow.name) for workflow in results.workflows)
    paragraphs = [
        f"### Load test {names}".rstrip(),
        f"**{_plain(verdict(results, Paint(on=False)))}**",
        *(f"> {_plain(label)}: {_plain(sentence)}" for label, sentence in notes(results)),
        _thresholds(results),
        _checks(results),
        *(_steps(workflow, results) for workflow in results.workflows if workflow.steps),
        _failures(results),
    ]
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def code(words: str) -> str:
    plain = text.fit(text.one_line(words), _MESSAGE_MAX).replace("`", "'").strip()
    return f"`{plain}`" if plain else ""


def _plain(sentence: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#~@])", r"\\\1", text.one_line(sentence))


def _thresholds(results: Results) -> str:
    if not results.thresholds:
        return ""
    lines = [row(("", "threshold", "actual")), "|---|---|---|"]
    for one in results.thresholds:
        what = code(f"{one.scope} {one.expression}")
        lines.append(row(("✓" if one.passed else "✗", what, _plain(judged(one)))))
    return "\n".join(lines)


def _checks(results: Results) -> str:
    found = [check for workflow in results.workflows for check in workflow.checks if check.failed]
    if not found:
        return ""
    lines = [row(("failed", "of", "check", "")), "|--:|--:|---|---|"]
    for check in sorted(found, key=lambda check: -check.failed)[:_FAILURES_MAX]:
        counts = (text.count(check.failed), text.count(check.passed + check.failed))
        said = next(iter(check.samples), "")
        lines.append(row((*counts, code(check.name), code(said))))
    return "\n".join(lines) + _more(len(found) - _FAILURES_MAX, "checks that failed")


def _steps(workflow: WorkflowResult, results: Results) -> str:
    heading = f"**{_plain(workflow.name)}**\n\n" if len(results.workflows) > 1 else ""
    lines = [row(HEADINGS), "|---" + "|--:" * (len(HEADINGS) - 1) + "|"]
    for step in workflow.steps[:_STEPS_MAX]:
        # A row of one cell is a remark, which the terminal prints below the step.
        for name, *numbers in step_rows(workflow, step):
            if numbers:
                indent = "&nbsp;&nbsp;" if name.startswith(" ") else ""
                lines.append(row((indent + code(name), *numbers)))
    return heading + "\n".join(lines) + _more(len(workflow.steps) - _STEPS_MAX, "steps")


def _failures(results: Results) -> str:
    found = ranked(results.workflows)
    if not found:
        return ""
    lines = [row(("count", "step", "failure", "first")), "|--:|---|---|---|"]
    for one in found[:_FAILURES_MAX]:
        first = "<br>".join(map(code, first_lines(one.first)))
        lines.append(row((text.count(one.count), code(one.step), code(one.message), first)))
    return "\n".join(lines) + _more(len(found) - _FAILURES_MAX, "kinds of failures")


def _more(count: int, what: str) -> str:
    return f"\n\n… and {text.count(count)} more {what}" if count > 0 else ""
