from __future__ import annotations

import pytest

from hyperscale.cluster.overload import (
    SETTINGS_BY_ROLE,
    Admission,
    AdmissionResult,
    AdmissionSettings,
    LoadLevel,
    Pressure,
    Priority,
    sheds,
)

CRITICAL, HIGH, NORMAL, LOW = Priority


def fill(admission: Admission, priority: Priority, count: int) -> None:
    for _ in range(count):
        assert admission.try_acquire(priority).admitted


@pytest.mark.parametrize(
    ("load", "refused"),
    [
        (LoadLevel.HEALTHY, set()),
        (LoadLevel.BUSY, {LOW}),
        (LoadLevel.STRESSED, {NORMAL, LOW}),
        (LoadLevel.OVERLOADED, {HIGH, NORMAL, LOW}),
    ],
)
def test_each_state_sheds_its_classes(load: LoadLevel, refused: set[Priority]) -> None:
    assert {priority for priority in Priority if sheds(load, priority)} == refused


def test_the_501st_high_is_refused_when_all_slots_are_in_use() -> None:
    admission = Admission()
    fill(admission, LOW, 200)
    fill(admission, NORMAL, 300)
    fill(admission, HIGH, 500)
    assert admission.try_acquire(HIGH) is AdmissionResult.FULL
    admission.release(HIGH)
    assert admission.try_acquire(HIGH).admitted


def test_higher_classes_borrow_idle_slots_of_lower_ones() -> None:
    admission = Admission()
    fill(admission, NORMAL, 500)
    assert admission.try_acquire(NORMAL) is AdmissionResult.FULL
    assert admission.try_acquire(LOW) is AdmissionResult.FULL
    fill(admission, HIGH, 500)
    assert admission.try_acquire(HIGH) is AdmissionResult.FULL


def test_lower_classes_never_take_the_slots_of_higher_ones() -> None:
    admission = Admission()
    fill(admission, LOW, 200)
    assert admission.try_acquire(LOW) is AdmissionResult.FULL
    fill(admission, NORMAL, 300)
    assert admission.try_acquire(NORMAL) is AdmissionResult.FULL
    fill(admission, HIGH, 500)


def test_high_can_use_everything_and_then_the_others_wait() -> None:
    admission = Admission()
    fill(admission, HIGH, 1_000)
    assert [admission.try_acquire(kind) for kind in (HIGH, NORMAL, LOW)] == [
        AdmissionResult.FULL
    ] * 3
    assert admission.try_acquire(CRITICAL).admitted


def test_critical_is_outside_the_total() -> None:
    admission = Admission(AdmissionSettings(total=10, high=5, normal=3, low=2))
    for source in range(100):
        assert admission.try_acquire(CRITICAL, f"peer {source}").admitted
    fill(admission, LOW, 2)
    fill(admission, NORMAL, 3)
    fill(admission, HIGH, 5)
    assert admission.counts()[CRITICAL].shed == 0


def test_one_source_cannot_abuse_critical() -> None:
    admission = Admission(AdmissionSettings(critical_per_source=2))
    assert admission.try_acquire(CRITICAL, "noisy").admitted
    assert admission.try_acquire(CRITICAL, "noisy").admitted
    assert admission.try_acquire(CRITICAL, "noisy") is AdmissionResult.ABUSE
    assert admission.try_acquire(CRITICAL, "quiet").admitted
    counts = admission.counts()[CRITICAL]
    assert (counts.in_flight, counts.shed, counts.abused) == (3, 0, 1)
    admission.release(CRITICAL, "noisy")
    assert admission.try_acquire(CRITICAL, "noisy").admitted


def test_an_overloaded_node_keeps_a_little_room_for_state_sync() -> None:
    admission = Admission(AdmissionSettings(high_when_overloaded=2))
    verdicts = [admission.try_acquire(HIGH, load=LoadLevel.OVERLOADED) for _ in range(3)]
    assert verdicts == [AdmissionResult.ADMITTED, AdmissionResult.ADMITTED, AdmissionResult.SHED]
    assert admission.try_acquire(NORMAL, load=LoadLevel.OVERLOADED) is AdmissionResult.SHED
    assert admission.try_acquire(CRITICAL, load=LoadLevel.OVERLOADED).admitted


def test_zero_is_no_limit() -> None:
    admission = Admission(AdmissionSettings(total=0, high=0, normal=0, low=1))
    fill(admission, NORMAL, 5_000)
    assert admission.try_acquire(LOW).admitted
    assert admission.try_acquire(LOW) is AdmissionResult.FULL


def test_pressure_follows_the_ceilings() -> None:
    admission = Admission()
    assert admission.pressure is Pressure.HEALTHY
    fill(admission, LOW, 200)
    assert admission.pressure is Pressure.PRESSURED
    fill(admission, NORMAL, 300)
    assert admission.pressure is Pressure.OVERLOADED


def test_a_slot_nobody_had_cannot_be_released() -> None:
    admission = Admission()
    with pytest.raises(RuntimeError):
        admission.release(LOW)
    admission.try_acquire(CRITICAL, "a")
    with pytest.raises(RuntimeError):
        admission.release(CRITICAL, "b")
    assert admission.in_flight == 1


@pytest.mark.parametrize("role", sorted(SETTINGS_BY_ROLE))
def test_slots_of_a_role_add_up(role: str) -> None:
    settings = SETTINGS_BY_ROLE[role]
    assert settings.high + settings.normal + settings.low == settings.total


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        AdmissionSettings(low=-1)
    with pytest.raises(ValueError, match="at least 1"):
        AdmissionSettings(critical_per_source=0)
