"""How much of each class is told, and that trouble raises it."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.scheduler.leader.election import Lease
from hyperscale.scheduler.store.types import Store
from hyperscale.scheduler.telemetry.sampling import KIND_OF, SHARES, WINDOW_S, Kind, Shares


def calls_of(*protocols: type) -> set[str]:
    return {name for one in protocols for name, _ in inspect.getmembers(one, inspect.isfunction)}


def test_the_table_names_calls_that_exist() -> None:
    assert set(KIND_OF) <= calls_of(Store, Lease)


@pytest.mark.parametrize(
    ("call", "share"),
    [("beat", 0.05), ("claim", 0.1), ("renew", 1.0), ("raise_epoch", 1.0), ("counts", 0.0)],
)
def test_each_class_has_its_share(call: str, share: float) -> None:
    assert Shares(0.01).of(KIND_OF.get(call, Kind.LOOKS), 0.0) == share


def test_the_share_of_jobs_is_a_setting() -> None:
    assert Shares(0.25).of(Kind.JOB, 0.0) == 0.25


def test_failures_raise_the_share_of_their_class_and_of_no_other() -> None:
    shares = Shares(0.01)
    for number in range(10):
        shares.note(Kind.QUEUE, number < 5, 1.0)
    assert shares.of(Kind.QUEUE, 1.0) == 0.5
    assert shares.of(Kind.WORKERS, 1.0) == SHARES[Kind.WORKERS]


def test_two_quiet_windows_later_the_share_is_as_before() -> None:
    shares = Shares(0.01)
    shares.note(Kind.JOB, True, 0.0)
    assert shares.of(Kind.JOB, WINDOW_S - 1) == 1.0
    assert shares.of(Kind.JOB, WINDOW_S + 1) == 1.0
    assert shares.of(Kind.JOB, 2 * WINDOW_S + 2) == 0.01


@given(st.lists(st.tuples(st.sampled_from(Kind), st.booleans(), st.floats(0, 90)), max_size=60))
def test_a_share_lies_between_its_base_and_all(events: list[tuple[Kind, bool, float]]) -> None:
    shares, now_s = Shares(SHARES[Kind.JOB]), 0.0
    for kind, failed, wait_s in events:
        now_s += wait_s
        shares.note(kind, failed, now_s)
        assert SHARES[kind] <= shares.of(kind, now_s) <= 1
        if failed:
            assert shares.of(kind, now_s) > 0
