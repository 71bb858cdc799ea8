"""Records as bytes: what is written is read, and nothing else is."""

from __future__ import annotations

import pytest

from hyperscale.ledger.wal.record import (
    HEADER_BYTES,
    MAGIC,
    PAYLOAD_BYTES_MAX,
    Flaw,
    Record,
    Scanner,
    encode_batch,
    last_checksum,
    later_batch,
)
from hyperscale.ledger.wal.segment import Header, decode_header, encode_header

SEED = 77
RECORDS = [Record(5, b"five", 1, 2, 99), Record(6, b"", 3, 0, 99), Record(7, b"x" * 300)]


def scan(data: bytes, lsn: int = 5, seed: int = SEED) -> tuple[list[Record], Scanner]:
    found: list[Record] = []
    scanner = Scanner(seed, 0, lsn)
    scanner.feed(data, 0, found)
    return found, scanner


def test_what_is_encoded_is_found_again() -> None:
    data = encode_batch(RECORDS, SEED)
    found, scanner = scan(data)
    assert found == RECORDS
    assert (scanner.flaw, scanner.at, scanner.next_lsn) == (Flaw.NONE, len(data), 8)
    assert (scanner.last_lsn, scanner.position, scanner.batch_at) == (7, 2, 0)
    assert scanner.last_crc == last_checksum(data, 300)


def test_the_format_does_not_change() -> None:
    """Logs written today open for ever."""
    record = Record(0x0102030405060708, b"payload", 9, 3, 0x1112131415161718)
    assert encode_batch([record], 0).hex() == (
        "48735201" "59d2b2f3" "07000000" "0807060504030201" "1817161514131211" "0000" "09" "03"
        "7061796c6f6164"
    )  # fmt: skip


def test_the_header_of_a_segment_does_not_change() -> None:
    header = Header(2, 3, 4, 5, 6, 7, 8, 9, 10)
    data = encode_header(header)
    assert data.hex() == (
        "487357414c00010a" "1f39e661" "02000000" "03000000" "04000000" "05000000" "06000000"
        "0700000000000000" "0800000000000000" "0900000000000000" "0a00000000000000"
    )  # fmt: skip
    assert decode_header(data) == header
    assert decode_header(data[:-1]) is None
    assert decode_header(data[:20] + b"?" + data[21:]) is None


def test_it_may_be_fed_in_pieces() -> None:
    data = encode_batch(RECORDS, SEED)
    for cut in range(len(data)):
        found: list[Record] = []
        scanner = Scanner(SEED, 0, 5)
        taken = scanner.feed(data[:cut], 0, found)
        assert scanner.flaw in (Flaw.NONE, Flaw.SHORT)
        scanner.feed(data[taken:], 0, found)
        assert found == RECORDS
        assert scanner.at == len(data)


@pytest.mark.parametrize(
    ("change", "flaw"),
    [
        (lambda data: data[: HEADER_BYTES - 1], Flaw.SHORT),
        (lambda data: data[: HEADER_BYTES + 2], Flaw.SHORT),
        (lambda data: b"????" + data[4:], Flaw.NO_RECORD),
        (lambda data: bytes(64), Flaw.NO_RECORD),
        (lambda data: b"\0" * 3, Flaw.NO_RECORD),
        (lambda data: data[:8] + b"\xff\xff\xff\xff" + data[12:], Flaw.LENGTH),
        (lambda data: data[:40] + b"?" + data[41:], Flaw.CHECKSUM),
    ],
)
def test_each_flaw_has_its_name(change: object, flaw: Flaw) -> None:
    data = encode_batch([Record(5, b"a payload")], SEED)
    found, scanner = scan(change(data))  # type: ignore[operator]
    assert (found, scanner.flaw, scanner.at) == ([], flaw, 0)


def test_records_of_another_segment_or_out_of_order_do_not_pass() -> None:
    data = encode_batch(RECORDS, SEED)
    assert scan(data, seed=SEED + 1)[1].flaw is Flaw.CHECKSUM
    assert scan(data, lsn=6)[1].flaw is Flaw.ORDER
    assert scan(encode_batch(RECORDS[:2], SEED) * 2)[1].flaw is Flaw.ORDER


def test_numbers_jump_where_the_header_says_so() -> None:
    carried, rest = encode_batch(RECORDS, SEED), encode_batch([Record(50, b"later")], SEED)
    for cut in (0, len(carried), len(carried) + 10):
        found: list[Record] = []
        scanner = Scanner(SEED, 64, 5, jump_at=64 + len(carried), jump_lsn=50)
        taken = scanner.feed((carried + rest)[:cut], 0, found)
        scanner.feed((carried + rest)[taken:], 0, found)
        assert [record.lsn for record in found] == [5, 6, 7, 50]


def test_a_later_batch_proves_damage_and_the_same_batch_does_not() -> None:
    torn = encode_batch([Record(5, b"a"), Record(6, b"b"), Record(7, b"c")], SEED)
    later = encode_batch([Record(8, b"d")], SEED)
    broken = b"?" + torn[1:]
    assert later_batch(broken, SEED, 5) is None
    assert later_batch(broken + later, SEED, 5) == len(torn)
    assert later_batch(broken + later, SEED + 1, 5) is None
    assert later_batch(broken + encode_batch([Record(1 << 40, b"d")], SEED), SEED, 5) is None


def test_a_search_is_not_fooled_by_a_payload_full_of_magic() -> None:
    assert later_batch(MAGIC * 50_000, SEED, 5) is None


def test_the_largest_length_is_bounded() -> None:
    assert PAYLOAD_BYTES_MAX == 16 * 1024 * 1024
