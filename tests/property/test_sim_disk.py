"""Laws of the simulated disk under any order of operations and crashes."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.sim.disk import DiskImage

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.binary(min_size=1, max_size=8)),
        st.tuples(st.just("truncate"), st.integers(0, 30)),
        st.tuples(st.just("sync"), st.none()),
    ),
    max_size=30,
)


def play(operations: list[tuple[str, object]]) -> tuple[DiskImage, bytes, bytes]:
    """A disk after the operations; what is in its file, and what the last sync promised."""
    disk = DiskImage(Random(0))
    file = disk.create("x")
    disk.sync_directory("")
    current = durable = b""
    for _verb, value in operations:
        if isinstance(value, bytes):
            file.append(value)
            current += value
        elif isinstance(value, int):
            file.truncate(value)
            current = current[:value].ljust(value, b"\0")
        else:
            file.sync(len(file.data))
            durable = current
    return disk, current, durable


@settings(deadline=None)
@given(OPERATIONS)
def test_a_power_cut_leaves_exactly_what_was_synced(operations: list[tuple[str, object]]) -> None:
    disk, current, durable = play(operations)
    assert bytes(disk.file("x").data) == current
    assert disk.durable("x") == durable
    disk.crash("lost-unsynced")
    assert bytes(disk.file("x").data) == durable
    assert disk.durable("x") == durable


@settings(deadline=None)
@given(OPERATIONS)
def test_a_kill_changes_nothing(operations: list[tuple[str, object]]) -> None:
    disk, current, durable = play(operations)
    disk.crash("kept")
    assert bytes(disk.file("x").data) == current
    assert disk.durable("x") == durable


@settings(deadline=None)
@given(st.binary(max_size=40), st.binary(max_size=2000), st.integers())
def test_a_torn_tail_never_touches_what_was_synced(synced: bytes, tail: bytes, seed: int) -> None:
    disk = DiskImage(Random(seed))
    file = disk.create("x")
    disk.sync_directory("")
    file.append(synced)
    file.sync(len(synced))
    file.append(tail)
    disk.crash("torn")
    left = bytes(disk.file("x").data)
    assert left.startswith(synced)
    assert len(left) <= len(synced) + len(tail)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["create", "rename", "remove", "sync"]), max_size=20), st.integers()
)
def test_names_after_a_crash_are_those_of_some_moment_since_the_sync(
    verbs: list[str], seed: int
) -> None:
    random = Random(seed)
    disk = DiskImage(random)
    disk.sync_directory("")
    moments = [frozenset[str]()]
    for number, verb in enumerate(verbs):
        names = [name for name, _ in disk.files()]
        if verb == "create":
            disk.create(f"f{number}")
        elif verb == "sync":
            disk.sync_directory("")
            moments.clear()
        elif names and verb == "rename":
            disk.rename(random.choice(names), f"r{number}")
        elif names:
            disk.remove(random.choice(names))
        moments.append(frozenset(name for name, _ in disk.files()))
    disk.crash("torn")
    assert frozenset(name for name, _ in disk.files()) in moments
