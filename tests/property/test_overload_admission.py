"""Admission under any order of arrivals and departures."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.overload import (
    Admission,
    AdmissionResult,
    AdmissionSettings,
    LoadLevel,
    Priority,
)

CRITICAL, HIGH, NORMAL, LOW = Priority
SOURCES = ("a", "b", "c")

settings_of_any_size = st.builds(
    AdmissionSettings,
    total=st.integers(0, 12),
    high=st.integers(0, 6),
    normal=st.integers(0, 4),
    low=st.integers(0, 4),
    high_when_overloaded=st.integers(1, 3),
    critical_per_source=st.integers(1, 3),
)
arrivals = st.tuples(
    st.just("arrive"),
    st.sampled_from(Priority),
    st.sampled_from(SOURCES),
    st.sampled_from(LoadLevel),
)
departures = st.tuples(st.just("depart"), st.integers(0, 100))


@given(settings_of_any_size, st.lists(arrivals | departures, max_size=120))
def test_slots_whatever_the_order(settings: AdmissionSettings, events: list[tuple]) -> None:
    admission = Admission(settings)
    inside: list[tuple[Priority, str]] = []
    asked: Counter[Priority] = Counter()
    for event in events:
        if event[0] == "depart":
            if inside:
                admission.release(*inside.pop(event[1] % len(inside)))
        else:
            _, priority, source, load = event
            asked[priority] += 1
            held = inside.count((CRITICAL, source))
            verdict = admission.try_acquire(priority, source, load)
            if verdict.admitted:
                inside.append((priority, source))
            if priority is CRITICAL:
                expected = held < settings.critical_per_source
                assert verdict is (AdmissionResult.ADMITTED if expected else AdmissionResult.ABUSE)
        check(admission, settings, inside)
    counts = admission.counts()
    assert counts[CRITICAL].shed == 0
    for priority in Priority:
        each = counts[priority]
        assert each.acquired + each.shed + each.abused == asked[priority]
    while inside:
        admission.release(*inside.pop())
    assert admission.in_flight == 0


def check(
    admission: Admission, settings: AdmissionSettings, inside: list[tuple[Priority, str]]
) -> None:
    counts = admission.counts()
    for priority in Priority:
        assert counts[priority].in_flight == sum(each is priority for each, _ in inside) >= 0
    taken = 0
    for priority in (LOW, NORMAL, HIGH):
        taken += counts[priority].in_flight
        assert taken <= settings.ceiling(priority)


@given(settings_of_any_size, st.lists(arrivals | departures, max_size=80))
def test_low_is_refused_before_normal_before_high(
    settings: AdmissionSettings, events: list[tuple]
) -> None:
    admission = Admission(settings)
    inside: list[tuple[Priority, str]] = []
    for event in events:
        if event[0] == "depart":
            if inside:
                admission.release(*inside.pop(event[1] % len(inside)))
        elif admission.try_acquire(event[1], event[2]).admitted:
            inside.append((event[1], event[2]))
        open_to = []
        for priority in (LOW, NORMAL, HIGH):
            verdict = admission.try_acquire(priority)
            open_to.append(verdict.admitted)
            if verdict.admitted:
                admission.release(priority)
        assert open_to == sorted(open_to), "whoever is open to LOW is open to all above"
