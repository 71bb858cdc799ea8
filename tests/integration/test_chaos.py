"""A few rounds of faults on real nodes in network namespaces; `make chaos` runs many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.network import reason_to_skip
from tests.chaos.runner import run_round

REASON = reason_to_skip()


@pytest.mark.skipif(bool(REASON), reason=REASON)
@pytest.mark.parametrize("name", ["tcp-cut-and-cancel", "2"])
def test_a_round(name: str, tmp_path: Path) -> None:
    outcome = run_round(name, tmp_path)
    if not outcome.is_evidence:
        pytest.skip(f"this machine stood still: {outcome.stood_still_s:.1f} s")
    assert not outcome.findings, outcome.text
