"""The table of recovery: complete, unambiguous, and each case told as a story."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from dataclasses import fields
from itertools import product

import pytest

from hyperscale.ledger.wal import LogCompacted, LogFailed, WriteAheadLog
from hyperscale.ledger.wal.recovery import CASES, Decision, ScanFacts, decide
from hyperscale.ledger.wal.segment import HEADER_BYTES, decode_header, name_of
from hyperscale.runtime.host import Disk
from hyperscale.sim.disk import CrashDisk
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World
from tests.unit.ledger.wal.logs import DIRECTORY, SMALL, Files, files_of, simulate, start, write


def every_facts() -> list[ScanFacts]:
    return [ScanFacts(*values) for values in product((False, True), repeat=len(fields(ScanFacts)))]


def test_exactly_one_case_matches_whatever_is_on_disk() -> None:
    for facts in every_facts():
        matching = [case.label for case in CASES if case.matches(facts)]
        assert len(matching) == 1, f"{facts}: {matching}"


def test_every_case_is_reached_and_has_a_name_of_its_own() -> None:
    assert {decide(facts).label for facts in every_facts()} == {case.label for case in CASES}
    assert len({case.label for case in CASES}) == len(CASES)


def test_nothing_but_good_bytes_is_ever_appended_to() -> None:
    for facts in every_facts():
        if decide(facts).decision is Decision.CONTINUE:
            assert facts.fresh
            assert not facts.surplus
            assert facts.durable_part_good


async def three(log: WriteAheadLog) -> None:
    await log.append(b"one")
    await log.append_many([b"two", b"three"])


async def nothing(log: WriteAheadLog) -> None:
    return None


def case_of(files: Files) -> str:
    found = start(files)
    assert found.recovered is not None
    return found.recovered.case


def test_a_new_directory_is_an_empty_log() -> None:
    found = start({})
    assert found.recovered is not None
    assert (found.recovered.case, found.recovered.next_lsn) == ("empty", 1)


def test_a_log_that_was_closed_goes_on_in_a_new_segment() -> None:
    files = write(three)
    found = start(files)
    assert found.recovered is not None
    assert (found.recovered.case, found.recovered.cut_bytes) == ("closed", 0)
    assert found.payloads == [b"one", b"two", b"three"]
    assert found.recovered.next_lsn == 4
    assert sorted(found.files) == [name_of(1), name_of(2)]
    assert len(found.files[name_of(2)]) == HEADER_BYTES, "there was nothing to carry over"


def test_a_batch_in_doubt_is_carried_over() -> None:
    """It may be in the page cache only, so it is written again before it is relied upon."""
    files = write(three, close=False)
    found = start(files)
    assert found.recovered is not None
    assert (found.recovered.case, found.recovered.next_lsn) == ("in-doubt", 4)
    header = decode_header(found.files[name_of(2)])
    assert header is not None
    assert (header.first_lsn, header.resume_lsn, header.previous_last_lsn) == (2, 4, 1)
    assert b"two" in found.files[name_of(2)]
    assert b"two" not in found.files[name_of(1)]
    assert start(found.files).payloads == [b"one", b"two", b"three"]


def test_starting_again_and_again_adds_no_segments() -> None:
    files = write(three, close=False)
    first = start(files)
    again = start(first.files)
    assert again.recovered is not None
    assert again.recovered.case == "nothing-added"
    assert again.files == first.files
    assert again.lsns == first.lsns == [1, 2, 3]


def test_a_torn_tail_is_cut_and_its_numbers_are_not_given_again() -> None:
    files = write(three, close=False)
    torn = files[name_of(1)][:-1]
    found = start({name_of(1): torn})
    assert found.payloads == [b"one", b"two"]
    assert found.recovered is not None
    assert found.recovered.case == "torn-tail"
    assert found.recovered.next_lsn > 3
    more = write(three, files=found.files, close=False)
    lsns = start(more).lsns
    assert lsns[:2] == [1, 2]
    assert min(lsns[2:]) > 3


def test_a_cut_is_told_until_something_is_appended() -> None:
    found = start({name_of(1): write(three, close=False)[name_of(1)][:-1]})
    again = start(found.files)
    assert again.recovered is not None
    assert again.recovered.cut_bytes > 0
    assert name_of(1) in str(again.recovered)
    later = start(write(three, files=again.files))
    assert later.recovered is not None
    assert later.recovered.cut_bytes == 0


def test_leftovers_of_an_interrupted_start_are_removed() -> None:
    files = write(three, close=False)
    found = start(files)
    interrupted = {**found.files, name_of(1): files[name_of(1)]}
    again = start(interrupted)
    assert again.payloads == [b"one", b"two", b"three"]
    assert again.files == found.files


def test_an_unfinished_segment_is_removed() -> None:
    files = {**write(three), "segment_00000002.wal.new": b"half a hea"}
    found = start(files)
    assert found.payloads == [b"one", b"two", b"three"]
    assert "segment_00000002.wal.new" not in found.files


def test_other_files_are_left_alone() -> None:
    files = {**write(nothing), "notes.txt": b"mine", "segment_1.wal": b"no"}
    assert start(files).files["notes.txt"] == b"mine"


def test_only_records_after_the_checkpoint_are_delivered() -> None:
    assert start(write(three), after_lsn=2).payloads == [b"three"]


def test_numbers_go_on_behind_the_checkpoint_even_when_the_log_ends_before_it() -> None:
    for files in ({}, write(nothing), write(three), write(three, close=False)):
        found = start(files, after_lsn=100)
        assert found.recovered is not None
        assert found.recovered.next_lsn == 101


def test_a_log_that_begins_after_what_is_needed_is_refused() -> None:
    async def work(log: WriteAheadLog) -> None:
        for _ in range(12):
            await log.append(b"x" * 100)
        assert await log.compact(6) > 0

    files = write(work, SMALL)
    assert isinstance(start(files).error, LogCompacted)
    assert start(files, after_lsn=6).lsns == list(range(7, 13))


def test_a_name_that_was_never_synced_is_synced_before_it_is_relied_upon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first start dies when it syncs the directory; the second finds nothing to do but that."""

    async def story(world: World, host: SimHost) -> list[bytes]:
        with monkeypatch.context() as broken:
            broken.setattr(host.disk, "sync_directory", _fails_for(DIRECTORY, host.disk))
            with pytest.raises(LogFailed):
                await WriteAheadLog.open(host, DIRECTORY)
        log = await WriteAheadLog.open(host, DIRECTORY)
        assert log.recovered.case == "nothing-added"
        await log.append(b"acknowledged")
        world.crash("a", "lost-unsynced")
        world.restart("a")
        await asyncio.sleep(0)
        again = await WriteAheadLog.open(world.host("a"), DIRECTORY)
        return [record.payload async for record in again.read()]

    assert simulate(story) == [b"acknowledged"]


def _fails_for(directory: str, disk: Disk) -> Callable[[str], Awaitable[None]]:
    honest = disk.sync_directory

    async def sync_directory(path: str) -> None:
        if path == directory:
            raise OSError(errno.EIO, "Input/output error")
        await honest(path)

    return sync_directory


@pytest.mark.parametrize("disk", ["kept", "lost-unsynced", "torn"])
def test_a_crash_at_any_moment_of_a_start_changes_nothing(disk: CrashDisk) -> None:
    """Carrying over, cutting and trimming, each interrupted after every step."""
    files = write(three, close=False)
    torn = {name_of(1): files[name_of(1)][:-1]}
    for before, wanted in ((files, [b"one", b"two", b"three"]), (torn, [b"one", b"two"])):
        for step in range(25):

            async def story(world: World, host: SimHost, step: int = step) -> Files:
                host.tasks.spawn("start", WriteAheadLog.open(host, DIRECTORY, SMALL))
                await asyncio.sleep(step * 0.0003)
                world.crash("a", disk)
                return files_of(world)

            left = simulate(story, before)
            assert start(left).payloads == wanted, f"after step {step}"
