"""Statements of many rows: every row arrives once, whatever their number."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.scheduler.store.sqlite.bulk import SIZES, Bulk, Lookup

INSERT = Bulk("INSERT OR ROLLBACK INTO things", 2, "")
UPDATE = Bulk("UPDATE OR ROLLBACK things SET value = column2 FROM (", 2, ") WHERE name = column1")
FIND = Lookup("SELECT name, value FROM things WHERE name IN")
COUNTS = st.one_of(
    st.integers(0, 3 * SIZES[0]), st.sampled_from([n + d for n in SIZES for d in (-1, 0, 1)])
)


def things() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE things (name TEXT PRIMARY KEY, value INTEGER NOT NULL)")
    return connection


def names(count: int) -> list[str]:
    return [f"t{number:03}" for number in range(count)]


@given(COUNTS)
def test_every_row_is_inserted_changed_and_found(count: int) -> None:
    connection = things()
    INSERT.run(connection, [(name, 0) for name in names(count)])
    changes = [(name, number) for number, name in enumerate(names(count))]
    UPDATE.run(connection, changes)
    found = FIND.rows(connection, ["missing", *names(count)])
    assert sorted(found) == changes
    connection.close()


@pytest.mark.parametrize("count", SIZES)
def test_a_violated_constraint_ends_the_transaction(count: int) -> None:
    connection = things()
    INSERT.run(connection, [("t000", 7)])
    connection.execute("BEGIN IMMEDIATE")
    INSERT.run(connection, [("before", 1)])
    with pytest.raises(sqlite3.IntegrityError):
        INSERT.run(connection, [(name, 0) for name in reversed(names(count))])
    assert not connection.in_transaction
    assert connection.execute("SELECT name, value FROM things").fetchall() == [("t000", 7)]
    connection.close()
