"""Merging is commutative, associative and idempotent, and loses no increment."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.counters import GCounter, JobCounters, LWWRegister, Slot

SLOTS = st.builds(Slot, st.sampled_from(["eu", "us"]), st.integers(1, 3))
COUNTERS = st.dictionaries(SLOTS, st.integers(0, 100)).map(GCounter)
REGISTERS = st.builds(
    LWWRegister, st.floats(0, 10), st.integers(0, 3), st.sampled_from(["m1", "m2"])
)
JOBS = st.builds(
    JobCounters, COUNTERS, COUNTERS, st.dictionaries(st.sampled_from(["eu", "us"]), REGISTERS)
)


@given(JOBS, JOBS, JOBS)
def test_merge_laws(a: JobCounters, b: JobCounters, c: JobCounters) -> None:
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert a.merge(a) == a
    assert a.merge(b).merge(b) == a.merge(b)


@given(COUNTERS, COUNTERS, SLOTS, st.integers(0, 50))
def test_counts_never_go_back(a: GCounter, b: GCounter, slot: Slot, amount: int) -> None:
    assert a.merge(b).value >= max(a.value, b.value)
    assert a.add(slot, amount).value == a.value + amount
    assert a.add(slot, amount).merge(a) == a.add(slot, amount)


@given(st.lists(st.tuples(SLOTS, st.integers(0, 5), st.booleans()), max_size=40))
def test_one_writer_per_slot_counts_exactly(history: list[tuple[Slot, int, bool]]) -> None:
    """Each slot's writer increments its own replica; gossip comes in any order, doubled."""
    writers: dict[Slot, GCounter] = {}
    gate = GCounter()
    total = 0
    for slot, amount, gossip in history:
        writers[slot] = writers.get(slot, GCounter()).add(slot, amount)
        total += amount
        if gossip:
            gate = gate.merge(writers[slot]).merge(writers[slot])
    for writer in writers.values():
        gate = gate.merge(writer)
    assert gate.value == total


@given(REGISTERS, REGISTERS)
def test_the_later_write_wins(a: LWWRegister[float], b: LWWRegister[float]) -> None:
    merged = a.merge(b)
    assert merged in (a, b)
    assert merged.time == max(a.time, b.time)
