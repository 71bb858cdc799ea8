"""Values between workflows: what comes out is what went in, and reading runs nothing."""

from __future__ import annotations

import math
import os
import pickle
from datetime import UTC, date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.engine.values import NotPlain, Unreadable, pack, pickled, unpack
from hyperscale.nodes.protocol import sealing

_HASHABLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters()),
    st.binary(),
    st.datetimes(timezones=st.none() | st.just(UTC)).map(lambda at: at.replace(fold=0)),
)
_KEYS = st.recursive(_HASHABLE, lambda inner: st.tuples(inner) | st.frozensets(inner), max_leaves=4)
_VALUES = st.recursive(
    _KEYS,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(_KEYS, inner),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    """The value with its types, which `==` does not look at: True is 1, and a set has no order."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return kind, [(shape(key), shape(each)) for key, each in value.items()]
    if isinstance(value, list | tuple):
        return kind, [shape(each) for each in value]
    if isinstance(value, set | frozenset):
        return kind, sorted(repr(shape(each)) for each in value)
    return kind, repr(value)


@given(_VALUES | st.sets(_KEYS))
def test_what_comes_out_is_what_went_in(value: Any) -> None:
    assert shape(unpack(pack(value), pickles=False)) == shape(value)


def test_numbers_that_are_none() -> None:
    assert math.isnan(unpack(pack(math.nan), pickles=False))


class Own:
    pass


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Own(), "Own"),
        ({"prices": [Decimal("1.5")]}, "decimal.Decimal"),
        ((date(2026, 1, 1),), "datetime.date"),
        ({Own: 1}, "builtins.type"),
        (os.environ, "os._Environ"),
    ],
)
def test_what_is_not_plain_is_named(value: object, named: str) -> None:
    with pytest.raises(NotPlain, match=named):
        pack(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(NotPlain, match="holds itself"):
        pack(value)


class Touches:
    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._file,)


def test_a_pickle_is_read_only_when_it_was_asked_for(tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    with pytest.raises(Unreadable, match="pickle_values"):
        unpack(pickle.dumps(Touches(trap)), pickles=False)
    assert not trap.exists()
    assert unpack(pickled({"at": Decimal("1.5")}), pickles=True) == {"at": Decimal("1.5")}


@given(st.binary())
def test_bytes_of_anybody_are_a_value_or_refused(data: bytes) -> None:
    for given_bytes in (data, pack(None)[:1] + data):
        try:
            unpack(given_bytes, pickles=False)
        except Unreadable as error:
            assert str(error)  # noqa: PT017 - either way is right


@given(_VALUES)
def test_no_value_looks_like_a_sealed_one(value: Any) -> None:
    assert not pack(value).startswith(sealing._MARK)
    assert not pickled(value).startswith(sealing._MARK)
