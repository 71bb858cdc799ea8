"""A run as Markdown: what a reviewer sees, whatever a target answered."""

from __future__ import annotations

import copy

from hyperscale.ui.markdown import render_markdown
from tests.unit.ui.golden import assert_golden
from tests.unit.ui.sample import empty_results, sample_results


def test_markdown_of_a_whole_run() -> None:
    assert_golden("summary.md", render_markdown(sample_results()))


def test_a_run_that_measured_nothing_has_a_verdict() -> None:
    assert "nothing ran" in render_markdown(empty_results())


def test_what_others_said_stays_text() -> None:
    results = sample_results()
    step = next(step for step in results.workflows[0].steps if step.errors)
    step.name = "a|b`<img src=x>"
    step.errors[0].samples = ["`@team\n| x | <script>"]
    results.warnings = ["<b>@team*"]
    text = render_markdown(results)
    assert r"`a\|b'<img src=x>`" in text
    assert r"'@team \| x \| <script>`" in text
    assert r"> warning: \<b\>\@team\*" in text


def test_it_fits_a_comment_with_a_thousand_steps() -> None:
    results = sample_results()
    workflow = results.workflows[0]
    workflow.steps = [copy.copy(workflow.steps[0]) for _ in range(1000)]
    text = render_markdown(results)
    assert "… and 900 more steps" in text
    assert len(text) < 65_536
