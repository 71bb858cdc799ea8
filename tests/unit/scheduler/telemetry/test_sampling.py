"""How much of each class is told, and that trouble raises it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.scheduler.leader.election import RENEW
from hyperscale.scheduler.store import calls
from hyperscale.scheduler.telemetry.hook import Call, TraceClass
from hyperscale.scheduler.telemetry.sampling import SHARES, WINDOW_S, Shares


@pytest.mark.parametrize(
    ("call", "share"),
    [
        (calls.BEAT, 0.05),
        (calls.CLAIM, 0.1),
        (RENEW, 1.0),
        (calls.RAISE_EPOCH, 1.0),
        (calls.COUNTS, 0.0),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_each_class_has_its_share(call: Call, share: float) -> None:
    assert Shares(0.01).of(call.traced, 0.0) == share


def test_the_share_of_jobs_is_a_setting() -> None:
    assert Shares(0.25).of(TraceClass.JOB, 0.0) == 0.25


def test_failures_raise_the_share_of_their_class_and_of_no_other() -> None:
    shares = Shares(0.01)
    for number in range(10):
        shares.note(TraceClass.QUEUE, number < 5, 1.0)
    assert shares.of(TraceClass.QUEUE, 1.0) == 0.5
    assert shares.of(TraceClass.WORKERS, 1.0) == SHARES[TraceClass.WORKERS]


def test_two_quiet_windows_later_the_share_is_as_before() -> None:
    shares = Shares(0.01)
    shares.note(TraceClass.JOB, True, 0.0)
    assert shares.of(TraceClass.JOB, WINDOW_S - 1) == 1.0
    assert shares.of(TraceClass.JOB, WINDOW_S + 1) == 1.0
    assert shares.of(TraceClass.JOB, 2 * WINDOW_S + 2) == 0.01


@given(
    st.lists(st.tuples(st.sampled_from(TraceClass), st.booleans(), st.floats(0, 90)), max_size=60)
)
def test_a_share_lies_between_its_base_and_all(
    events: list[tuple[TraceClass, bool, float]],
) -> None:
    shares, now_s = Shares(SHARES[TraceClass.JOB]), 0.0
    for kind, failed, wait_s in events:
        now_s += wait_s
        shares.note(kind, failed, now_s)
        assert SHARES[kind] <= shares.of(kind, now_s) <= 1
        if failed:
            assert shares.of(kind, now_s) > 0
