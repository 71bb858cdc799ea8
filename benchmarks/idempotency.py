"""What remembering a key costs: lookups a second, bytes a key, and what sweeping does to the loop.

    python benchmarks/idempotency.py

100,000 answered keys with answers of 64 bytes (a short acknowledgement) are live. A lookup is the
whole check of a submission as text: parse the key, take its fingerprint, find the row, compare the
content, read the answer. Memory is counted twice: by the allocator's own books (tracemalloc) and as
growth of the process. Exits with 1 when a figure misses its target.
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable

import psutil
from harness import Figure, machine, table

from hyperscale.ledger.idempotency import (
    IdempotencyKey,
    IdempotencyLedger,
    IdempotencySettings,
    IdempotencyTable,
    KeyGenerator,
    State,
    Verdict,
    content_digest,
    fingerprint,
)
from hyperscale.ledger.journal import Record
from hyperscale.runtime.real import RealClock
from hyperscale.runtime.tasks import RealTasks

KEYS = 100_000
LOOKUPS = 300_000
ROUNDS = 5
ANSWER = b"\x9a" + b"a" * 63
CONTENT = content_digest(b"a workflow")
CLIENT = "5f0c6a9e-8f0b-4a54-a8f7-0a9f5ad4c1de"

LOOKUPS_PER_S_MIN = 200_000
BYTES_PER_KEY_MAX = 400
LAG_MS_MAX = 5.0


class NoJournal:
    """What is measured here writes nothing."""

    async def append(self, payload: bytes) -> int:
        raise AssertionError("a duplicate was written")

    async def read(self, from_lsn: int = 0) -> AsyncIterator[Record]:
        return
        yield


class LaterClock(RealClock):
    """The real clock, some hours ahead once told so."""

    ahead_s = 0.0

    def now(self) -> float:
        return super().now() + self.ahead_s


def job_id(number: int) -> str:
    return f"use1-1704931200000-gate42-{number:06}"


def key_texts() -> list[str]:
    keys = KeyGenerator(CLIENT)
    return [str(keys.next()) for _ in range(KEYS)]


def fill(keys: IdempotencyTable, texts: list[str], answered: bool = True) -> None:
    for number, text in enumerate(texts):
        keys.reserve(0.0, fingerprint(text), text, job_id(number), CONTENT, number)
        if answered:
            keys.commit(0.0, fingerprint(text), ANSWER, KEYS + number)
    # The times of the reservations pass; the answers stay.
    keys.sweep(100.0, 2 * KEYS)


def check_submission(keys: IdempotencyTable, text: str) -> bytes:
    key = IdempotencyKey.parse(text)
    ruling = keys.check(100.0, fingerprint(key), CONTENT)
    assert ruling is not None
    assert ruling.verdict is Verdict.ANSWERED
    assert ruling.entry is not None
    return ruling.entry.answer


def lookups_per_s(keys: IdempotencyTable, texts: list[str], check: Callable[..., object]) -> float:
    asked = random.Random(1).choices(texts, k=LOOKUPS)
    best = 0.0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for text in asked:
            check(keys, text)
        best = max(best, LOOKUPS / (time.perf_counter() - began))
    return best


def look(keys: IdempotencyTable, text: str) -> object:
    return keys.look(100.0, fingerprint(text))


def bytes_per_key(texts: list[str], answered: bool) -> float:
    gc.collect()
    tracemalloc.start()
    keys = IdempotencyTable(IdempotencySettings())
    fill(keys, texts, answered)
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(keys) == KEYS
    return used / KEYS


def resident_per_key(texts: list[str]) -> float:
    gc.collect()
    process = psutil.Process()
    before = process.memory_info().rss
    keys = IdempotencyTable(IdempotencySettings())
    fill(keys, texts)
    grown = process.memory_info().rss - before
    assert len(keys) == KEYS
    return grown / KEYS


async def lag_while_sweeping(texts: list[str]) -> tuple[float, float, int]:
    """The longest and the 99th longest of 100 waits of the loop while every key is forgotten."""
    clock, tasks = LaterClock(), RealTasks()
    ledger = IdempotencyLedger(NoJournal(), clock, tasks)
    fill(ledger._table, texts)
    clock.ahead_s = 10_000.0

    async def nobody(_: str) -> bytes | None:
        return None

    lags: list[float] = []
    sweeping = asyncio.ensure_future(ledger.sweep(nobody))
    while not sweeping.done():
        began = time.perf_counter()
        await asyncio.sleep(0)
        lags.append((time.perf_counter() - began) * 1000)
    assert ledger.stats().entries == 0
    await tasks.stop()
    lags.sort()
    return lags[-1], lags[int(len(lags) * 0.99) - 1], len(lags)


async def duplicates_per_s(texts: list[str]) -> float:
    """Duplicates through the ledger itself, with its clock and its counters."""
    tasks = RealTasks()
    ledger = IdempotencyLedger(NoJournal(), RealClock(), tasks)
    now = ledger._now()
    for number, text in enumerate(texts):
        mark = fingerprint(text)
        ledger._table.restore_answer(
            now, mark, State.COMMITTED, job_id(number), CONTENT, ANSWER, number
        )
    keys = [IdempotencyKey.parse(text) for text in texts]
    began = time.perf_counter()
    for key in keys:
        await ledger.reserve(key, "job", CONTENT)
    rate = len(keys) / (time.perf_counter() - began)
    await tasks.stop()
    return rate


def main() -> int:
    texts = key_texts()
    resident = resident_per_key(texts)
    answered, pending = bytes_per_key(texts, True), bytes_per_key(texts, False)
    filled = IdempotencyTable(IdempotencySettings())
    fill(filled, texts)
    gc.collect()
    gc.freeze()
    looks = lookups_per_s(filled, texts, look)
    checks = lookups_per_s(filled, texts, check_submission)
    duplicates = asyncio.run(duplicates_per_s(texts))
    lag_max, lag_p99, turns = asyncio.run(lag_while_sweeping(texts))
    rate, size = f">= {LOOKUPS_PER_S_MIN:,}", f"<= {BYTES_PER_KEY_MAX}"
    figures = [
        Figure("lookups/s, key as text", rate, f"{looks:,.0f}", looks >= LOOKUPS_PER_S_MIN),
        Figure("submissions checked/s, key parsed, content compared", "", f"{checks:,.0f}", None),
        Figure("duplicates answered/s by the ledger", "", f"{duplicates:,.0f}", None),
        Figure(
            "bytes a key, answered (tracemalloc)",
            size,
            f"{answered:.0f}",
            answered <= BYTES_PER_KEY_MAX,
        ),
        Figure(
            "bytes a key, pending (tracemalloc)",
            size,
            f"{pending:.0f}",
            pending <= BYTES_PER_KEY_MAX,
        ),
        Figure(
            "bytes a key, growth of the process",
            size,
            f"{resident:.0f}",
            resident <= BYTES_PER_KEY_MAX,
        ),
        Figure(
            f"loop held while all are forgotten, p99 of {turns} turns",
            f"< {LAG_MS_MAX:g} ms",
            f"{lag_p99:.2f} ms (max {lag_max:.2f})",
            lag_p99 < LAG_MS_MAX,
        ),
    ]
    print(machine())
    print(f"\n{KEYS:,} live keys of {len(texts[-1])} characters, answers of {len(ANSWER)} bytes\n")
    print(table(figures))
    return 1 if any(figure.ok is False for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
