"""Worked examples of the counters; their laws are property tests."""

from __future__ import annotations

import pytest

from hyperscale.cluster.counters import GCounter, JobCounters, LWWRegister, Slot


def test_a_slot_of_a_new_manager_adds_to_the_old_ones() -> None:
    old = GCounter().add(Slot("eu", 1), 10)
    new = GCounter().add(Slot("eu", 2), 3)
    merged = old.merge(new).merge(old)
    assert merged.value == 13
    assert merged.in_datacenter("eu") == 13
    assert merged.in_datacenter("us") == 0


def test_counters_only_grow() -> None:
    with pytest.raises(ValueError, match="cannot change by -1"):
        GCounter().add(Slot("eu", 1), -1)


def test_two_gates_converge_after_a_partition() -> None:
    shared = JobCounters(completed=GCounter().add(Slot("eu", 1), 5))
    east = JobCounters(
        shared.completed.add(Slot("eu", 1), 2), rates={"eu": LWWRegister(10.0, 1, "m1")}
    )
    west = JobCounters(
        shared.completed.add(Slot("us", 1), 4),
        GCounter().add(Slot("us", 1), 1),
        {"us": LWWRegister(7.0, 3, "m2"), "eu": LWWRegister(9.0, 0, "m1")},
    )
    assert east.merge(west) == west.merge(east)
    assert east.merge(west).completed.value == 11
    assert east.merge(west).failed.value == 1
    assert east.merge(west).rate == 17.0
