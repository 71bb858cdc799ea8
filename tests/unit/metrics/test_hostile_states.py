"""Numbers of a part that a worker made up: refused as a whole, or harmless in the results."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from hyperscale.engine.results import aggregate_of
from hyperscale.metrics.exported import DamagedState
from tests.unit.nodes.manager.cases import FACTS, state


def numbers_of(told: Any) -> Iterator[tuple[Any, Any]]:
    """Where each number stands: what holds it, and its place there."""
    places = told.items() if isinstance(told, dict) else enumerate(told)
    for place, value in list(places):
        if isinstance(value, (list, dict)):
            yield from numbers_of(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield told, place


@pytest.mark.parametrize("strange", [2**64 - 1, -(2**63), 2**53, -1, 1e308, math.inf, math.nan])
def test_whatever_one_number_is_the_sum_can_be_told(strange: float) -> None:
    told = msgspec.msgpack.decode(state(10, 2, 5.0))
    taken = 0
    for holder, place in numbers_of(told):
        honest, holder[place] = holder[place], strange
        aggregate = aggregate_of(FACTS)
        with suppress(DamagedState):
            for _ in range(2):
                aggregate.absorb(msgspec.msgpack.encode(told))
            taken += 1
        msgspec.json.encode(aggregate.freeze())
        aggregate.export()
        holder[place] = honest
    assert taken < len(list(numbers_of(told)))


def test_nesting_without_end_is_damage() -> None:
    with pytest.raises(DamagedState):
        aggregate_of(FACTS).absorb(b"\x91" * 5_000)
