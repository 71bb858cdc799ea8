"""Rounds of faults on real nodes. `--seed 7` runs one, `--seed 1 --rounds 200` those from 1 on."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tests.chaos.network import reason_to_skip
from tests.chaos.runner import Outcome, run_rounds
from tests.chaos.scenarios import SCENARIOS, round_named


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first (1)")
    parser.add_argument("--rounds", type=int, default=1, help="how many seeds (1)")
    parser.add_argument("--scenario", choices=SCENARIOS, action="append", help="instead of seeds")
    parser.add_argument("--at-once", type=int, default=1, help="rounds side by side (1)")
    parser.add_argument("--kept", type=Path, default=Path("out/chaos"), help="where logs go")
    parser.add_argument("--keep", action="store_true", help="the logs of every round")
    parser.add_argument("--show", action="store_true", help="only tell what is planned")
    given = parser.parse_args()
    names = given.scenario or [str(given.seed + number) for number in range(given.rounds)]
    if given.show:
        for name in names:
            _say("\n  ".join([name, *round_named(name).sentences()]))
        return 0
    if reason := reason_to_skip():
        _say(f"skipped: {reason}")
        return 0
    outcomes = []
    rounds = run_rounds(names, given.kept.absolute(), at_once=given.at_once, keep=given.keep)
    for outcome in rounds:
        _tell(outcome)
        outcomes.append(outcome)
    judged = [outcome for outcome in outcomes if outcome.is_evidence]
    failed = [outcome for outcome in judged if outcome.findings]
    _say(f"{len(judged) - len(failed)} of {len(judged)} rounds well" + _which(failed))
    return 1 if failed else 0


def _tell(outcome: Outcome) -> None:
    if not outcome.is_evidence:
        _say(f"{outcome.name}: not judged, this machine stood still: {outcome.stood_still_s:.1f} s")
        return
    if not outcome.findings:
        _say(f"{outcome.name}: well ({outcome.summary})")
        return
    option = "--seed" if outcome.name.isdecimal() else "--scenario"
    _say(f"\n{outcome.text}\n")
    _say(f"logs: {outcome.folder}\nagain: python -m tests.chaos {option} {outcome.name}\n")


def _which(failed: list[Outcome]) -> str:
    if not failed:
        return ""
    rules = Counter(rule for one in failed for rule in {found.rule for found in one.findings})
    found = ", ".join(f"{rule} {count}" for rule, count in rules.most_common())
    return f"; failed: {', '.join(one.name for one in failed)} ({found})"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
