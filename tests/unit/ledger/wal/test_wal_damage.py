"""Every way in which a few bytes can be cut or flipped, and what a start makes of it."""

from __future__ import annotations

import pytest

from hyperscale.ledger.wal import LogDamaged, WalSettings, WriteAheadLog
from hyperscale.ledger.wal.inspection import inspect
from hyperscale.ledger.wal.record import HEADER_BYTES as RECORD_BYTES
from hyperscale.ledger.wal.segment import HEADER_BYTES, name_of
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World
from tests.unit.ledger.wal.logs import DIRECTORY, Files, simulate, start, write

PAYLOADS = [b"first", b"second record", b"", b"the fourth", b"x" * 9, b"last of them"]
BATCHES = [PAYLOADS[:1], PAYLOADS[1:4], PAYLOADS[4:]]
QUICK = WalSettings(read_bytes=4096)


async def in_batches(log: WriteAheadLog) -> None:
    for batch in BATCHES:
        await log.append_many(batch)


def changed(files: Files, name: str, data: bytes) -> Files:
    return {**files, name: data}


def flipped(data: bytes, bit: int) -> bytes:
    broken = bytearray(data)
    broken[bit // 8] ^= 1 << bit % 8
    return bytes(broken)


def test_a_log_cut_anywhere_in_its_last_record_starts_with_all_earlier_ones() -> None:
    files = write(in_batches, close=False)
    name = max(files)
    data = files[name]
    last = RECORD_BYTES + len(PAYLOADS[-1])
    for size in range(len(data) - last, len(data)):
        found = start(changed(files, name, data[:size]))
        assert found.error is None
        assert found.payloads == PAYLOADS[:-1]
        assert found.recovered is not None
        assert found.recovered.cut_bytes == size - (len(data) - last)


def test_a_log_cut_anywhere_at_all_starts_with_a_prefix() -> None:
    files = write(in_batches, close=False)
    (name,) = files
    for size in range(HEADER_BYTES, len(files[name])):
        found = start(changed(files, name, files[name][:size]))
        assert found.error is None
        assert found.payloads == PAYLOADS[: len(found.payloads)]


def test_no_flipped_bit_of_a_closed_log_goes_unnoticed() -> None:
    """Only the mark of the close may be lost, and it holds nothing."""
    files = write(in_batches)
    (name,) = files
    data = files[name]
    for bit in range(len(data) * 8):
        found = start(changed(files, name, flipped(data, bit)), QUICK)
        if bit // 8 >= len(data) - RECORD_BYTES:
            assert found.payloads == PAYLOADS, f"bit {bit} of the mark"
            assert found.recovered is not None
            assert found.recovered.cut_bytes == RECORD_BYTES
        else:
            assert isinstance(found.error, LogDamaged), f"bit {bit}"
            assert found.files == changed(files, name, flipped(data, bit)), "nothing was changed"


def test_a_flipped_bit_of_an_unclosed_log_is_refused_or_cuts_into_the_last_batch() -> None:
    files = write(in_batches, close=False)
    (name,) = files
    data = files[name]
    in_doubt = sum(RECORD_BYTES + len(payload) for payload in BATCHES[-1])
    for bit in range(len(data) * 8):
        found = start(changed(files, name, flipped(data, bit)), QUICK)
        if bit // 8 < len(data) - in_doubt:
            assert isinstance(found.error, LogDamaged), f"bit {bit}"
        else:
            assert found.recovered is not None
            assert found.recovered.cut_bytes > 0
            kept = len(found.payloads)
            assert kept >= len(PAYLOADS) - len(BATCHES[-1])
            assert found.payloads == PAYLOADS[:kept]


def test_no_flipped_bit_of_several_segments_goes_unnoticed() -> None:
    async def work(log: WriteAheadLog) -> None:
        for number in range(12):
            await log.append(b"%d" % number * 40)

    files = write(work)
    assert len(files) > 2
    whole = start(files).records
    for name, data in files.items():
        for bit in range(3, len(data) * 8, 17):
            found = start(changed(files, name, flipped(data, bit)), QUICK)
            assert found.error is not None or found.records == whole, f"{name}, bit {bit}"


def test_the_refusal_names_the_file_the_place_and_what_to_do() -> None:
    files = write(in_batches)
    (name,) = files
    at = HEADER_BYTES + RECORD_BYTES + len(PAYLOADS[0])
    found = start(changed(files, name, flipped(files[name], (at + RECORD_BYTES) * 8)))
    assert isinstance(found.error, LogDamaged)
    assert (found.error.path, found.error.offset) == (f"wal/{name}", at)
    assert "the checksum does not match" in found.error.message
    assert "good up to LSN 1" in found.error.message
    assert "hyperscale wal repair" in found.error.hint


@pytest.mark.parametrize("missing", [1, 2])
def test_a_missing_segment_is_damage(missing: int) -> None:
    async def work(log: WriteAheadLog) -> None:
        for _ in range(12):
            await log.append(b"x" * 100)

    files = write(work)
    del files[name_of(missing + 1)]
    found = start(files)
    assert isinstance(found.error, LogDamaged)
    assert f"segment {missing + 1} is missing" in found.error.message


def test_a_segment_of_another_log_is_refused() -> None:
    async def work(log: WriteAheadLog) -> None:
        for _ in range(12):
            await log.append(b"x" * 100)

    async def other(log: WriteAheadLog) -> None:
        for _ in range(12):
            await log.append(b"y" * 101)

    files, strange = write(work), write(other)
    found = start(changed(files, name_of(2), strange[name_of(2)]))
    assert isinstance(found.error, LogDamaged)


def test_a_log_that_grows_while_it_is_looked_at_is_not_called_damaged() -> None:
    """Of the second batch half was there at the first look, and the third came before the next."""
    files = write(in_batches, close=False)
    (name,) = files
    half = len(files[name]) - sum(RECORD_BYTES + len(payload) for payload in BATCHES[2]) - 5

    async def story(world: World, host: SimHost) -> None:
        disk = host.disk

        async def size(path: str) -> int:
            return half

        disk.size = size  # type: ignore[method-assign]
        found = await inspect(disk, DIRECTORY, QUICK)
        assert found.damage() is None
        assert 0 < found.records < len(PAYLOADS) - len(BATCHES[2])

    simulate(story, files)
