"""Records and scans over random contents, cuts and damage."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.ledger.wal.record import (
    HEADER_BYTES,
    MAGIC,
    Flaw,
    Record,
    Scanner,
    encode_batch,
    later_batch,
)

seeds = st.integers(0, 2**32 - 1)
payloads = st.one_of(st.binary(max_size=80), st.just(MAGIC * 5), st.just(bytes(100)))
batches = st.lists(st.lists(payloads, min_size=1, max_size=4), min_size=1, max_size=5)


def written(contents: list[list[bytes]], seed: int, first: int) -> tuple[list[Record], list[bytes]]:
    records: list[Record] = []
    encoded: list[bytes] = []
    for batch in contents:
        lsn = first + len(records)
        group = [Record(lsn + n, payload, n % 255 + 1, n % 4, 7) for n, payload in enumerate(batch)]
        records += group
        encoded.append(encode_batch(group, seed))
    return records, encoded


def scanned(data: bytes, seed: int, first: int) -> tuple[list[Record], Scanner]:
    found: list[Record] = []
    scanner = Scanner(seed, 0, first)
    scanner.feed(data, 0, found)
    return found, scanner


@given(batches, seeds, st.integers(1, 2**63), st.lists(st.integers(0, 2_000), max_size=12))
def test_any_split_into_bites_gives_the_same_records(
    contents: list[list[bytes]], seed: int, first: int, cuts: list[int]
) -> None:
    records, encoded = written(contents, seed, first)
    data, found, rest = b"".join(encoded), [], b""  # type: ignore[var-annotated]
    scanner = Scanner(seed, 0, first)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(edges):
        loop_yield = rest + data[start:end]
        rest = loop_yield[scanner.feed(loop_yield, 0, found) :]
        assert scanner.flaw in (Flaw.NONE, Flaw.SHORT)
    assert found == records
    assert scanner.at == len(data)
    assert scanner.batch_at == len(data) - len(encoded[-1])
    assert scanner.before_lsn == (first + len(records) - len(contents[-1]) - 1) * (
        len(contents) > 1
    )


@given(batches, seeds, st.data())
def test_a_cut_leaves_a_prefix(contents: list[list[bytes]], seed: int, data: st.DataObject) -> None:
    records, encoded = written(contents, seed, 1)
    whole = b"".join(encoded)
    found, scanner = scanned(whole[: data.draw(st.integers(0, len(whole)))], seed, 1)
    assert found == records[: len(found)]
    assert scanner.flaw in (Flaw.NONE, Flaw.SHORT)


@given(batches, seeds, st.data())
def test_damage_is_never_read_as_a_record(
    contents: list[list[bytes]], seed: int, data: st.DataObject
) -> None:
    """Up to 32 flipped bits in a row are always noticed by the checksum."""
    records, encoded = written(contents, seed, 1)
    whole = bytearray(b"".join(encoded))
    at = data.draw(st.integers(0, len(whole) - 1))
    mask = data.draw(st.binary(min_size=1, max_size=4).filter(any))
    for offset, bits in enumerate(mask[: len(whole) - at]):
        whole[at + offset] ^= bits
    found, scanner = scanned(bytes(whole), seed, 1)
    assert found == records[: len(found)]
    if bytes(whole) != b"".join(encoded):
        assert scanner.flaw is not Flaw.NONE


@given(batches, seeds, st.data())
def test_damage_before_the_last_batch_is_always_proven_and_in_it_never(
    contents: list[list[bytes]], seed: int, data: st.DataObject
) -> None:
    _, encoded = written(contents, seed, 1)
    whole = bytearray(b"".join(encoded))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    _, scanner = scanned(bytes(whole), seed, 1)
    proof = later_batch(bytes(whole[scanner.at :]), seed, scanner.next_lsn)
    assert (proof is not None) == (at < len(whole) - len(encoded[-1]))


@given(st.binary(max_size=400), seeds)
def test_noise_is_no_record(noise: bytes, seed: int) -> None:
    found, scanner = scanned(noise, seed, 1)
    assert found == []
    assert scanner.at == 0
    assert later_batch(noise, seed, 1) is None


@given(payloads, seeds)
def test_the_size_is_what_the_queue_counts(payload: bytes, seed: int) -> None:
    assert len(encode_batch([Record(1, payload)], seed)) == HEADER_BYTES + len(payload)
