"""The detector under any readings: no crash, order, patience on the way down."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.cluster.overload import LoadLevel, OverloadDetector, OverloadSettings, Resources

shares = st.none() | st.floats(0.0, 2.0)
steps = st.lists(
    st.tuples(
        st.floats(0.01, 3.0),
        st.lists(st.floats(0.0, 5.0), max_size=12),
        st.builds(Resources, cpu=shares, memory=shares, queue=shares),
    ),
    max_size=60,
)


@settings(max_examples=150)
@given(steps)
def test_worse_at_once_better_slowly(
    history: list[tuple[float, list[float], Resources]],
) -> None:
    config = OverloadSettings()
    detector = OverloadDetector(config)
    now, changed_at = 0.0, 0.0
    for pause, latencies, resources in history:
        now += pause
        for latency_s in latencies:
            detector.record(now, latency_s)
        before = detector.load
        seen = detector.assess(now, resources)
        assert seen.load is detector.load
        worst = max(seen.excess, seen.latency, seen.resources)
        assert detector.load >= worst
        if detector.load > before:
            assert detector.load is worst
        if detector.load < before:
            assert detector.load == before - 1
            assert now - changed_at >= config.recovery_s
        if detector.load is not before or worst >= before:
            changed_at = now


@given(st.floats(0.006, 0.05), st.floats(1.3, 50.0), st.integers(1, 400))
def test_any_step_above_the_limit_is_never_absorbed(
    usual_s: float, factor: float, seconds: int
) -> None:
    detector = OverloadDetector()
    now = 0.0
    for _ in range(200):
        now += 0.1
        detector.record(now, usual_s)
        detector.assess(now)
    for _ in range(seconds * 2):
        now += 0.5
        for _ in range(5):
            detector.record(now, usual_s * factor)
        detector.assess(now)
    assert detector.load >= LoadLevel.BUSY
