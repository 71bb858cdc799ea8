"""`python -m tests.chaos --seed 7` runs one round, `--rounds 200 --seed 1` those from 1 on."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tests.chaos.network import reason_to_skip
from tests.chaos.runner import run_rounds
from tests.chaos.schedule import draw


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first (1)")
    parser.add_argument("--rounds", type=int, default=1, help="how many seeds (1)")
    parser.add_argument("--at-once", type=int, default=1, help="rounds side by side (1)")
    parser.add_argument("--kept", type=Path, default=Path("out/chaos"), help="logs of failures")
    parser.add_argument("--show", action="store_true", help="only tell what the seeds decide")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.rounds)
    if given.show:
        for seed in seeds:
            _say("\n  ".join([f"seed {seed}", *draw(seed).sentences()]))
        return 0
    if reason := reason_to_skip():
        _say(f"skipped: {reason}")
        return 0
    rules: Counter[str] = Counter()
    failed = []
    for outcome in run_rounds(seeds, given.kept.absolute(), at_once=given.at_once):
        if outcome.findings:
            failed.append(outcome.seed)
            rules.update({one.rule for one in outcome.findings})
            _say(outcome.text or f"seed {outcome.seed}: {outcome.findings[0].text}")
            _say(f"logs: {outcome.folder}")
            _say(f"again: python -m tests.chaos --seed {outcome.seed}\n")
        else:
            _say(f"seed {outcome.seed}: well")
    _say(f"{len(seeds) - len(failed)} of {len(seeds)} rounds well" + _which(failed, rules))
    return 1 if failed else 0


def _which(failed: list[int], rules: Counter[str]) -> str:
    if not failed:
        return ""
    found = ", ".join(f"{rule} {count}" for rule, count in rules.most_common())
    return f"; failed: {', '.join(map(str, failed))} ({found})"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
