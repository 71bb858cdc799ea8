"""Cron side by side with croniter and cronsim: reading expressions, and finding the next run.

    python benchmarks/cron.py

Contenders take turns within a round. An expression is read from text each time. The next run is
asked for as a scheduler asks: from the run before, in a zone with changes of the clock, for two
hundred runs of each expression; croniter and cronsim keep their own cursor, ours is handed the
instant. Exits with 1 when a figure misses its target.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim
from harness import Figure, Rounds, interleave, machine, table

from hyperscale.scheduler.schedules.cron import Cron

EXPRESSIONS = (
    "* * * * *",
    "*/15 * * * *",
    "30 2 * * *",
    "0 9 * * 1-5",
    "15,45 8-18 1-10/3 */2 *",
    "0 9 15 * 1",
    "0 0 1 * *",
    "0 0 1 1 *",
)
ZONE = "America/New_York"
START = datetime(2024, 1, 5, 10, 3, tzinfo=ZoneInfo(ZONE))
RUNS = 200
YEARLY_RUNS = 10  # two hundred years of @yearly would measure nothing that happens
PARSES = 200
ROUNDS = 7

PARSE_US_MAX = 1_000.0
NEXT_TIMES_CRONITER = 5.0


def runs_of(text: str) -> int:
    return YEARLY_RUNS if text == EXPRESSIONS[-1] else RUNS


def per_s(work: Callable[[str], int]) -> Callable[[], float]:
    """Operations a second over all expressions, each with the same weight."""

    def measure() -> float:
        costs = []
        for text in EXPRESSIONS:
            began = time.perf_counter()
            done = work(text)
            costs.append((time.perf_counter() - began) / done)
        return 1 / statistics.mean(costs)

    return measure


def parse_ours(text: str) -> int:
    for _ in range(PARSES):
        Cron.parse(text)
    return PARSES


def parse_croniter(text: str) -> int:
    for _ in range(PARSES):
        croniter(text, START)
    return PARSES


def parse_cronsim(text: str) -> int:
    for _ in range(PARSES):
        CronSim(text, START)
    return PARSES


def next_ours(text: str) -> int:
    cron, here = Cron.parse(text), START.astimezone(UTC)
    for _ in range(runs_of(text)):
        due = cron.next(here, ZONE)
        assert due is not None
        here = due
    return runs_of(text)


def next_croniter(text: str) -> int:
    cursor = croniter(text, START, datetime)
    for _ in range(runs_of(text)):
        cursor.get_next(datetime)
    return runs_of(text)


def next_cronsim(text: str) -> int:
    cursor = CronSim(text, START)
    for _ in range(runs_of(text)):
        next(cursor)
    return runs_of(text)


def slowest_parse_us() -> float:
    """The slowest expression, each at its best of the rounds."""
    slowest = 0.0
    for text in EXPRESSIONS:
        best = min(_timed(text) for _ in range(ROUNDS))
        slowest = max(slowest, best / PARSES * 1e6)
    return slowest


def _timed(text: str) -> float:
    began = time.perf_counter()
    parse_ours(text)
    return time.perf_counter() - began


def main() -> int:
    print(f"{machine()}\n")
    parsing: Rounds = interleave(
        [
            ("hyperscale", per_s(parse_ours)),
            ("croniter", per_s(parse_croniter)),
            ("cronsim", per_s(parse_cronsim)),
        ],
        ROUNDS,
    )
    finding: Rounds = interleave(
        [
            ("hyperscale", per_s(next_ours)),
            ("croniter", per_s(next_croniter)),
            ("cronsim", per_s(next_cronsim)),
        ],
        ROUNDS,
    )
    parse_us = slowest_parse_us()
    figures = [
        Figure(
            "parse, the slowest of the expressions",
            f"< {PARSE_US_MAX:,.0f} µs",
            f"{parse_us:,.0f} µs",
            parse_us < PARSE_US_MAX,
        ),
        finding.figure("next run", "hyperscale", "croniter", NEXT_TIMES_CRONITER),
        finding.figure("next run", "hyperscale", "cronsim", 1.0),
    ]
    print("Parsed\n")
    print(parsing.report("expressions/s"))
    print("\nNext run\n")
    print(finding.report("runs/s"))
    print(f"\n{table(figures)}")
    return 0 if all(figure.ok for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
