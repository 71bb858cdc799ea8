"""What is left of a run in the end."""

from __future__ import annotations

import pytest

from hyperscale.cli.local import Show
from hyperscale.config.run import Settings
from tests.unit.ui.sample import sample_results


@pytest.mark.parametrize(
    ("settings", "shown"),
    [(Settings(), False), (Settings(debug=True), True), (Settings(once=True), True)],
)
def test_tracebacks_are_for_those_who_debug(
    settings: Settings, shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Show(settings, "none", []).conclude(sample_results(), None) == 99
    assert ('return item["price"]' in capsys.readouterr().out) is shown
