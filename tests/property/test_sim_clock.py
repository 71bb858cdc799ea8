"""A host's clock never shows less than a timer was set for, whatever its origin and rate."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.sim.loop import SimLoop
from hyperscale.sim.process import Process

SECONDS = st.floats(0.0, 1e6)


@settings(deadline=None)
@given(SECONDS, SECONDS, st.floats(0.5, 2.0), st.floats(0.0, 1e4))
def test_timers_are_never_early(now: float, origin: float, rate: float, delay: float) -> None:
    loop = SimLoop()
    loop.now = now
    process = Process(loop, "p", origin, rate)
    due = process.local_time(now) + delay
    fires = process.true_time(due)
    assert process.local_time(fires) >= due
    assert fires - now <= delay / rate + 1e-6
    loop.close()


@settings(deadline=None)
@given(SECONDS, st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(0.5, 2.0)), max_size=10))
def test_a_clock_never_goes_back_when_its_rate_changes(
    origin: float, changes: list[tuple[float, float]]
) -> None:
    loop = SimLoop()
    process = Process(loop, "p", origin)
    last = process.local_time(loop.now)
    for seconds, rate in changes:
        loop.now += seconds
        assert process.local_time(loop.now) >= last
        last = process.local_time(loop.now)
        process.set_rate(rate)
        assert process.local_time(loop.now) == last
    loop.close()
