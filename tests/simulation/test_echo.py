"""The simulator tried on its own scenario: it passes, and every planted bug is caught."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hyperscale.sim import prove, run
from hyperscale.sim.scenarios.echo import Echo
from hyperscale.sim.summary import Summary

SEEDS = range(1, 21)
# Where a planted bug is known to show; a little room for changes of timing.
BUG_FROM = {"trust-torn-tail": 22, "sync-again": 11, "trust-page-cache": 6}
BUG_SEEDS = 60


def test_no_seed_fails_and_every_fault_is_met() -> None:
    summary = Summary(Echo, nodes=4)
    for seed in SEEDS:
        summary.add(run(Echo(4), seed))
    assert summary.failed == []
    assert summary.never_hit() == []


@pytest.mark.parametrize("planted_bug", Echo.planted_bugs)
def test_every_planted_bug_is_caught(planted_bug: str) -> None:
    first = BUG_FROM.get(planted_bug, 1)
    report = prove(Echo, planted_bug, range(first, first + BUG_SEEDS))
    assert report is not None
    assert run(Echo(), report.seed).ok, "the checker also blames the healthy program"


def test_one_seed_is_one_history_in_any_process() -> None:
    program = (
        "from hyperscale.sim import run\n"
        "from hyperscale.sim.scenarios.echo import Echo\n"
        "import sys\n"
        "lines = []\n"
        "for seed in (3, 11): sys.stdout.write(run(Echo(4), seed, lines.append).trace_hash)\n"
        "sys.stdout.write('\\n'.join(lines))\n"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert len(told) == 1
    assert len(told.pop()) > 10_000


def test_reading_along_changes_nothing() -> None:
    lines: list[str] = []
    assert run(Echo(3), 5).trace_hash == run(Echo(3), 5, lines.append).trace_hash
    assert lines


def test_seeds_differ() -> None:
    assert len({run(Echo(2), seed).trace_hash for seed in range(1, 6)}) == 5
