"""Worked examples of the clocks and counters; their laws are property tests."""

from __future__ import annotations

import pytest

from hyperscale.cluster.clocks import (
    CeilingReached,
    HybridClock,
    LamportClock,
    Stamp,
    StampTooFarAhead,
    Version,
    VersionedClock,
)
from hyperscale.cluster.counters import GCounter, JobCounters, LWWRegister, Slot


def test_lamport() -> None:
    clock = LamportClock()
    assert [clock.tick(), clock.receive(10), clock.receive(3), clock.tick()] == [1, 11, 12, 13]


def test_a_replayed_heartbeat_is_stale_and_a_restarted_worker_is_not() -> None:
    clock = VersionedClock(idle_max_s=60.0)
    assert clock.accept(0.0, "w", Version(1, 5))
    assert not clock.accept(1.0, "w", Version(1, 5))
    assert not clock.accept(1.0, "w", Version(1, 4))
    assert clock.version("w") == Version(1, 5)
    assert clock.accept(2.0, "w", Version(2, 0))
    assert not clock.accept(3.0, "w", Version(1, 99))


def test_idle_entities_are_purged() -> None:
    clock = VersionedClock(idle_max_s=60.0)
    clock.accept(0.0, "old", Version(1, 1))
    clock.accept(50.0, "new", Version(1, 1))
    assert clock.purge(61.0) == 1
    assert clock.version("old") is None
    assert len(clock) == 1


def hybrid(node: str, ceiling_ms: int = 10**9) -> HybridClock:
    clock = HybridClock(node)
    clock.raise_ceiling(ceiling_ms)
    return clock


def test_the_specified_exchange_of_stamps() -> None:
    a, b = hybrid("A"), hybrid("B")
    sent = a.tick(100)
    assert sent == Stamp(100, 0, "A")
    answered = b.receive(95, sent)
    assert answered == Stamp(100, 1, "B")
    assert a.receive(100, answered) == Stamp(100, 2, "A")
    assert a.tick(101) == Stamp(101, 0, "A")


def test_a_thousand_events_in_one_millisecond_increase_strictly() -> None:
    clock = hybrid("A")
    stamps = [clock.tick(7) for _ in range(1000)]
    assert stamps == sorted(set(stamps))


def test_a_clock_a_day_ahead_drags_nobody_along() -> None:
    clock = hybrid("A")
    before = clock.tick(1000)
    with pytest.raises(StampTooFarAhead, match="86400000 ms ahead"):
        clock.receive(1000, Stamp(1000 + 86_400_000, 0, "B"))
    assert clock.last == before
    assert clock.receive(1000, Stamp(1000 + 600, 0, "B")) == Stamp(1600, 1, "A")
    assert clock.far_ahead == 1


def test_no_stamp_above_the_durable_ceiling() -> None:
    clock = HybridClock("A")
    with pytest.raises(CeilingReached):
        clock.tick(500)
    wanted = clock.ceiling_wanted(500)
    assert wanted == 2500
    clock.raise_ceiling(wanted)
    assert clock.ceiling_wanted(500) is None
    assert clock.tick(500) == Stamp(500, 0, "A")
    assert clock.ceiling_wanted(1500) == 3500


def test_a_clock_has_an_owner() -> None:
    with pytest.raises(ValueError, match="id of its node"):
        HybridClock("")


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
