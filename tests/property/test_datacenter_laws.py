"""Whatever order probes are answered, missed, late or told of in, what a gate believes is sound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.datacenters import (
    Facts,
    Health,
    Probe,
    ProbeSettings,
    Reach,
    Verdict,
    Watch,
)
from hyperscale.cluster.datacenters.silence import one_event

NAMES = ("ap", "eu", "us")
SETTINGS = ProbeSettings(
    interval_s=1.0, timeout_s=2.0, failures=3, suspicion_s=5.0, together_s=3.0, hold_s=20.0
)
WELL = Facts(workers=1, workers_healthy=1, cores=2, cores_free=2)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.floats(0.05, 4.0)),
        st.tuples(st.just("answer"), st.integers(0, 30)),
        st.tuples(st.just("miss"), st.integers(0, 30)),
        st.tuples(st.just("refuse"), st.integers(0, 30)),
        st.tuples(st.just("told"), st.sets(st.sampled_from(NAMES))),
    ),
    max_size=120,
)


@given(STEPS)
def test_beliefs_follow_from_answers(steps: list[tuple[str, object]]) -> None:
    watch = Watch(SETTINGS, {name: [(name, 1), (name, 2)] for name in NAMES})
    now, open_probes = 0.0, list[Probe]()
    heard: dict[str, float] = {}
    for what, value in steps:
        before = {name: one.reach for name, one in watch.datacenters.items()}
        changes = []
        if what == "wait":
            assert isinstance(value, float)
            now += value
            open_probes += watch.due(now)
        elif what == "told":
            assert isinstance(value, set)
            watch.told_by(now, "g2", value)
        elif open_probes:
            assert isinstance(value, int)
            probe = open_probes.pop(value % len(open_probes))
            if what == "answer":
                heard[probe.datacenter] = now
                changes = watch.answered(now, probe, 0.1, leader="m", facts=WELL)
            else:
                changes = watch.missed(now, probe, "silent", refused=what == "refuse")
        changes += watch.tick(now)
        told = dict(before)
        for change in changes:
            assert told[change.datacenter] is change.before
            told[change.datacenter] = change.after
        for name, one in watch.datacenters.items():
            assert told[name] is one.reach, "every change is told"
            assert one.heard_at == heard.get(name)
            if one.reach is Reach.REACHABLE:
                assert name in heard
            if one.heard_at == now and what == "answer":
                assert one.reach is Reach.REACHABLE, "any answer says that it is reached"
            health, why = watch.health(now, name)
            assert bool(why) == (health is not Health.HEALTHY)
            assert len(one.managers) == 2
        for change in changes:
            if change.after is Reach.UNREACHABLE:
                assert not watch.line_in_doubt(now)
                assert now - heard[change.datacenter] >= SETTINGS.suspicion_s
        verdicts = {watch.verdict(now, name, (), ("g2",)) for name in watch.reached()}
        assert verdicts <= {Verdict.WAIT if watch.was_away(now) else Verdict.LOST}


@given(
    st.integers(0, 10),
    st.lists(st.floats(0.0, 100.0), max_size=10),
    st.floats(-50.0, 50.0),
)
def test_one_event_is_most_of_them_at_once(known: int, since: list[float], shift: float) -> None:
    since = since[:known]
    found = one_event(known, since, SETTINGS)
    assert found == one_event(known, since[::-1], SETTINGS)
    if found:
        assert known >= 2
        assert len(since) * 2 > known
        near = max(sum(abs(a - b) <= SETTINGS.together_s for b in since) for a in since)
        assert near * 2 > known
    if known >= 2 and len(since) == known and max(since) - min(since) <= SETTINGS.together_s:
        assert found
