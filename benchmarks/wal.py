"""Figures of the write-ahead log, against SQLite and the bare disk, on one disk in one run.

    python benchmarks/wal.py [--rounds 5] [--directory DIR]

Every round takes turns: a bare write and sync, SQLite (WAL mode, synchronous=FULL, one commit for
each row), our log with 256 concurrent writers, our log with one. A figure is the median over the
rounds of the ratio within a round. Progress goes to stderr, Markdown to stdout. Exit code 1 when a
required figure is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import Figure, machine, note, table

from hyperscale.ledger.wal import Record, WriteAheadLog
from hyperscale.runtime.disk import sync_to_platter, write_all
from hyperscale.runtime.real import RealHost, run

PAYLOAD = bytes(range(256))
WRITERS = 256
PER_WRITER = 120
LONE_APPENDS = 300
SQLITE_ROWS = 300
RAW_SYNCS = 300
RECOVERED_RECORDS = 400_000

SQLITE_RATIO_MIN = 25.0
BATCH_MEAN_MIN = 20.0
LONE_EXTRA_MS_MAX = 0.7
WRITE_LAG_MS_MAX = 5.0
RECOVERY_RATE_MIN = 300_000.0
RECOVERY_LAG_MS_MAX = 20.0
TICK_S = 0.001


@dataclass
class Round:
    raw_p50_ms: float
    sqlite_rate: float
    rate: float
    batch_mean: float
    lag_p99_ms: float
    lone_p50_ms: float

    @property
    def ratio(self) -> float:
        return self.rate / self.sqlite_rate

    @property
    def lone_extra_ms(self) -> float:
        return self.lone_p50_ms - self.raw_p50_ms


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def raw_sync_p50_ms(folder: Path) -> float:
    """A record's bytes appended and synced, nothing else."""
    descriptor = os.open(folder / "raw", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    taken = []
    try:
        for _ in range(RAW_SYNCS):
            began = time.perf_counter()
            write_all(descriptor, PAYLOAD)
            sync_to_platter(descriptor)
            taken.append(time.perf_counter() - began)
    finally:
        os.close(descriptor)
    return percentile(taken, 0.5) * 1e3


def sqlite_rate(folder: Path) -> float:
    base = sqlite3.connect(folder / "rows.sqlite", isolation_level=None)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=FULL")
    base.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, payload BLOB)")
    began = time.perf_counter()
    for _ in range(SQLITE_ROWS):
        base.execute("INSERT INTO rows (payload) VALUES (?)", (PAYLOAD,))
    taken = time.perf_counter() - began
    base.close()
    return SQLITE_ROWS / taken


async def with_lag(work: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """Seconds that the work took, and how late the event loop was meanwhile, p99 in ms."""
    late: list[float] = []

    async def tick() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(TICK_S)
            late.append(time.perf_counter() - began - TICK_S)

    ticking = asyncio.create_task(tick())
    began = time.perf_counter()
    await work()
    taken = time.perf_counter() - began
    ticking.cancel()
    return taken, percentile(late, 0.99) * 1e3


async def many_writers(folder: Path) -> tuple[float, float, float]:
    async with RealHost("bench", folder) as host:
        log = await WriteAheadLog.open(host, "many")

        async def writer() -> None:
            for _ in range(PER_WRITER):
                await log.append(PAYLOAD)

        async def all_of_them() -> None:
            await asyncio.gather(*(writer() for _ in range(WRITERS)))

        taken, lag_ms = await with_lag(all_of_them)
        batch_mean = log.stats.batch_records_mean
        await log.close()
    return WRITERS * PER_WRITER / taken, batch_mean, lag_ms


async def lone_writer(folder: Path) -> float:
    taken = []
    async with RealHost("bench", folder) as host:
        log = await WriteAheadLog.open(host, "lone")
        for _ in range(LONE_APPENDS):
            began = time.perf_counter()
            await log.append(PAYLOAD)
            taken.append(time.perf_counter() - began)
        await log.close()
    return percentile(taken, 0.5) * 1e3


async def recovery(folder: Path) -> tuple[float, float]:
    """Records a second from a log that was not closed, and the lag of the loop."""
    async with RealHost("bench", folder) as host:
        log = await WriteAheadLog.open(host, "recovery")
        for _ in range(RECOVERED_RECORDS // 1_000):
            await log.append_many([PAYLOAD] * 1_000)
    count = 0

    def deliver(records: Sequence[Record]) -> None:
        nonlocal count
        count += len(records)

    async with RealHost("bench", folder) as host:

        async def reopen() -> None:
            await WriteAheadLog.open(host, "recovery", deliver=deliver)

        taken, lag_ms = await with_lag(reopen)
    assert count == RECOVERED_RECORDS
    return count / taken, lag_ms


def one_round(folder: Path) -> Round:
    raw = raw_sync_p50_ms(folder)
    note(f"  bare write and sync: p50 {raw:.3f} ms")
    rows = sqlite_rate(folder)
    note(f"  SQLite: {rows:,.0f} commits/s")
    rate, batch_mean, lag_ms = run(many_writers(folder))
    note(f"  {WRITERS} writers: {rate:,.0f}/s, batch {batch_mean:.0f}, lag p99 {lag_ms:.2f} ms")
    lone = run(lone_writer(folder))
    note(f"  one writer: p50 {lone:.3f} ms")
    return Round(raw, rows, rate, batch_mean, lag_ms, lone)


def spread(values: Sequence[float], unit: str, digits: int = 2) -> str:
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:,.{digits}f}{unit} ({low:,.{digits}f}–{high:,.{digits}f})"


def at_least(what: str, limit: float, values: Sequence[float], unit: str, digits: int) -> Figure:
    measured = spread(values, unit, digits)
    return Figure(what, f"≥ {limit:,.0f}{unit}", measured, statistics.median(values) >= limit)


def at_most(what: str, limit: float, values: Sequence[float], required: str) -> Figure:
    return Figure(what, required, spread(values, " ms"), statistics.median(values) <= limit)


def figures(rounds: Sequence[Round], recovered: Sequence[tuple[float, float]]) -> list[Figure]:
    return [
        at_least(
            f"durable appends/s, 256 B, {WRITERS} writers, against SQLite",
            SQLITE_RATIO_MIN,
            [taken.ratio for taken in rounds],
            " ×",
            1,
        ),
        at_least("records in a batch, mean", BATCH_MEAN_MIN, [r.batch_mean for r in rounds], "", 0),
        at_most(
            "one lone writer, p50 beyond a bare write and sync",
            LONE_EXTRA_MS_MAX,
            [taken.lone_extra_ms for taken in rounds],
            f"≤ {LONE_EXTRA_MS_MAX} ms",
        ),
        at_most(
            "event loop lag while writing flat out, p99",
            WRITE_LAG_MS_MAX,
            [taken.lag_p99_ms for taken in rounds],
            f"< {WRITE_LAG_MS_MAX:g} ms",
        ),
        at_least(
            f"recovery of {RECOVERED_RECORDS:,} records, records/s",
            RECOVERY_RATE_MIN,
            [rate for rate, _ in recovered],
            "",
            0,
        ),
        at_most(
            "event loop lag while recovering, p99",
            RECOVERY_LAG_MS_MAX,
            [lag_ms for _, lag_ms in recovered],
            f"< {RECOVERY_LAG_MS_MAX:g} ms",
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", help="on the disk to measure; the system's temporary one")
    options = parser.parse_args()
    print(f"{machine()}\n")
    rounds, recovered = [], []
    for number in range(1, options.rounds + 1):
        note(f" round {number} of {options.rounds}")
        with TemporaryDirectory(dir=options.directory) as folder:
            rounds.append(one_round(Path(folder)))
        with TemporaryDirectory(dir=options.directory) as folder:
            recovered.append(run(recovery(Path(folder))))
        note(f"  recovery: {recovered[-1][0]:,.0f}/s, lag p99 {recovered[-1][1]:.2f} ms")
    taken = figures(rounds, recovered)
    print(table(taken))
    print(
        f"\nMedians: bare write and sync {statistics.median(r.raw_p50_ms for r in rounds):.2f} ms,"
        f" SQLite {statistics.median(r.sqlite_rate for r in rounds):,.0f} commits/s,"
        f" {WRITERS} writers {statistics.median(r.rate for r in rounds):,.0f} appends/s,"
        f" one writer {statistics.median(r.lone_p50_ms for r in rounds):.2f} ms."
    )
    return 0 if all(figure.ok is not False for figure in taken) else 1


if __name__ == "__main__":
    sys.exit(main())
