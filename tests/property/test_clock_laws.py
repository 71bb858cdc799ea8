"""Laws of the logical clocks over random schedules of messages, restarts and clock steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.clocks import HybridClock, LamportClock, Stamp, Version, VersionedClock

EVENTS = st.lists(
    st.tuples(
        st.integers(0, 2),  # who
        st.integers(0, 3),  # receives from whom; 3 or self: a local event
        st.integers(-300, 300),  # how wall time of that node moves, ms
        st.booleans(),  # crash before
    ),
    max_size=60,
)


@given(EVENTS)
def test_hybrid_stamps_respect_cause_restart_and_drift(
    events: list[tuple[int, int, int, bool]],
) -> None:
    wall = [100_000, 100_200, 99_800]
    clocks = [HybridClock(f"n{i}") for i in range(3)]
    ceilings = [0, 0, 0]
    issued: list[Stamp] = []
    last_sent: list[Stamp | None] = [None, None, None]
    newest: list[Stamp | None] = [None, None, None]
    for who, source, step, crash in events:
        wall[who] = max(0, wall[who] + step)
        if crash:
            clocks[who] = HybridClock(f"n{who}", durable_ceiling_ms=ceilings[who])
        cause = last_sent[source] if source < 3 and source != who else None
        highest = max(wall[who], clocks[who].last.wall_ms, cause.wall_ms if cause else 0)
        wanted = clocks[who].ceiling_wanted(highest)
        if wanted is not None:
            ceilings[who] = wanted
            clocks[who].raise_ceiling(wanted)
        if cause is not None and cause.wall_ms - wall[who] > HybridClock.AHEAD_MAX_MS:
            continue
        stamp = (
            clocks[who].tick(wall[who]) if cause is None else clocks[who].receive(wall[who], cause)
        )
        before = newest[who]
        assert before is None or stamp > before
        assert cause is None or stamp > cause
        assert stamp.node_id == f"n{who}"
        assert stamp.wall_ms >= wall[who]
        newest[who] = last_sent[who] = stamp
        issued.append(stamp)
    assert len(set(issued)) == len(issued)


@given(st.lists(st.integers(0, 1000)))
def test_lamport_time_exceeds_everything_seen(seen: list[int]) -> None:
    clock = LamportClock()
    for remote in seen:
        assert clock.receive(remote) > remote
    assert clock.time >= len(seen)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5))))
def test_a_versioned_clock_accepts_exactly_the_new_maxima(pairs: list[tuple[int, int]]) -> None:
    clock = VersionedClock()
    highest: tuple[int, int] | None = None
    for pair in pairs:
        accepted = clock.accept(0.0, "w", Version(*pair))
        assert accepted == (highest is None or pair > highest)
        highest = pair if accepted else highest
        assert clock.version("w") == highest
