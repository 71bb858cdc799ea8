"""Ids of jobs that no schedule makes: UUIDs in the order of time."""

from __future__ import annotations

import uuid
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.scheduler.queue.identity import time_ordered_id

INSTANTS = st.integers(0, (1 << 48) * 1000 - 1)


@given(INSTANTS, st.integers(0))
def test_it_is_a_uuid_of_version_7_that_tells_its_millisecond(now: int, seed: int) -> None:
    text = time_ordered_id(now, Random(seed))
    made = uuid.UUID(text)
    assert str(made) == text
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == now // 1000


@given(INSTANTS, INSTANTS)
def test_a_later_one_sorts_later(one: int, other: int) -> None:
    dice = Random(1)
    if one != other:
        assert (time_ordered_id(one, dice) < time_ordered_id(other, dice)) == (one < other)


def test_of_one_instant_all_differ() -> None:
    dice = Random(1)
    assert len({time_ordered_id(1_700_000_000_000_000, dice) for _ in range(10_000)}) == 10_000
