from __future__ import annotations

from hyperscale.scheduler.queue.job import Failure
from hyperscale.scheduler.worker.executors.breaker import (
    TARGETS_MAX,
    Breakers,
    counts,
    target_of,
)


def opened() -> Breakers:
    breakers = Breakers(failures_max=3, rest_s=30)
    for second in range(3):
        assert breakers.admits("t", second)
        breakers.ended("t", False, second)
    return breakers


def test_failures_in_a_row_open_it_and_success_between_does_not() -> None:
    assert not opened().is_closed("t")
    breakers = Breakers(failures_max=3)
    for ok in (False, False, True, False, False):
        breakers.ended("t", ok, 0)
    assert breakers.is_closed("t")


def test_open_fails_fast_then_lets_one_through() -> None:
    breakers = opened()
    assert breakers.rest_s("t", 22.0) == 10.0
    assert breakers.rest_s("other", 22.0) == 0.0
    assert not breakers.admits("t", 31.9)
    assert breakers.admits("other", 31.9)
    assert breakers.admits("t", 32)
    assert not breakers.admits("t", 33)


def test_half_open_closes_on_success_and_opens_on_failure() -> None:
    breakers = opened()
    breakers.admits("t", 40)
    breakers.ended("t", False, 41)
    assert not breakers.is_closed("t")
    assert not breakers.admits("t", 70.9)
    assert breakers.admits("t", 71)
    breakers.ended("t", True, 72)
    assert breakers.is_closed("t")


def test_a_lost_probe_does_not_close_the_door_for_ever() -> None:
    breakers = opened()
    assert breakers.admits("t", 40)
    assert breakers.admits("t", 70)


def test_bounded() -> None:
    breakers = Breakers(failures_max=1, rest_s=1)
    for target in range(TARGETS_MAX + 10):
        breakers.ended(str(target), False, 0)
        assert breakers.admits(str(target), 1)
    assert len(breakers) == TARGETS_MAX


def test_targets_and_what_speaks_against_them() -> None:
    assert target_of("http", {"url": "http://shop:81/a?b"}) == "http shop:81/a"
    assert target_of("http", {"url": "http://shop:81/b"}) == "http shop:81/b"
    assert target_of("http", {"url": "http://ada:pw@shop/"}) == "http shop/"
    assert target_of("command", {"argv": '["a","--k","https://u:p@h"]'}).endswith('u:***@h"]')
    assert target_of("python", {"call": "a:b"}) == "python a:b"
    assert target_of("plugin", {}) == "plugin"
    assert counts("http", Failure.ERROR)
    assert not counts("python", Failure.ERROR)
    assert counts("python", Failure.TIMEOUT)
    assert not counts("http", Failure.PERMANENT)


def test_what_is_no_url_has_a_target_all_the_same() -> None:
    assert target_of("http", {"url": "http://user:pw@[::1/"}) == "http "
