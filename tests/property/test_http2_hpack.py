"""HPACK against the `hpack` package, in both directions, over whole histories of a connection."""

from __future__ import annotations

import hpack
import pytest
from hpack.huffman_constants import REQUEST_CODES_LENGTH
from hpack.table import HeaderTable
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.http2 import huffman
from hyperscale.http2.hpack import STATIC, BadBlock, Tables, size_update

NAMES = st.sampled_from([b":status", b"date", b"x-id", b"content-type", b"server", b"user-agent"])
VALUES = st.one_of(st.sampled_from([b"200", b"a", b"text/plain"]), st.binary(max_size=60))
BLOCKS = st.lists(st.lists(st.tuples(NAMES, VALUES), max_size=6), max_size=12)


def test_the_tables_are_those_of_the_standard() -> None:
    assert tuple(HeaderTable.STATIC_TABLE) == STATIC
    assert tuple(REQUEST_CODES_LENGTH) == huffman._LENGTHS


@given(BLOCKS, st.lists(st.sampled_from([0, 60, 200, 4096]), max_size=12))
def test_what_another_encoder_writes_is_read(
    blocks: list[list[tuple[bytes, bytes]]], sizes: list[int]
) -> None:
    tables = Tables(65536)
    table = tables.table()
    encoder = hpack.Encoder()
    for at, fields in enumerate(blocks):
        if at < len(sizes):
            encoder.header_table_size = sizes[at]
        block = tables.decode(table, encoder.encode(fields))
        assert list(block.fields) == fields
        table = block.after
        kept = tuple(
            (bytes(name), bytes(value)) for name, value in encoder.header_table.dynamic_entries
        )
        assert table.entries == kept


@given(BLOCKS, st.lists(st.sampled_from([0, 60, 200, 4096]), max_size=12))
def test_what_is_written_another_decoder_reads(
    blocks: list[list[tuple[bytes, bytes]]], sizes: list[int]
) -> None:
    tables = Tables(65536)
    table = tables.table()
    decoder = hpack.Decoder()
    for at, fields in enumerate(blocks):
        before = b""
        if at < len(sizes):
            table = tables.resized(table, sizes[at])
            before = size_update(sizes[at])
        block, after = tables.encode(table, fields, key=tuple(fields))
        assert table.encoded[tuple(fields)] == (block, after)
        assert [tuple(one) for one in decoder.decode(before + block, raw=True)] == fields
        table = after


@given(st.binary(max_size=200))
def test_huffman_both_ways(text: bytes) -> None:
    assert huffman.decode(huffman.encode(text)) == text


@given(st.binary(max_size=80))
def test_any_bytes_are_read_as_the_other_reads_them_or_refused(data: bytes) -> None:
    tables = Tables(65536)
    try:
        ours = list(tables.decode(tables.table(), data).fields)
    except BadBlock:
        ours = None
    try:
        theirs = [tuple(one) for one in hpack.Decoder().decode(data, raw=True)]
    except (hpack.HPACKError, OverflowError):
        theirs = None
    if theirs is None or ours is None:
        assert ours is None or any(not name for name, _ in ours)
    else:
        assert ours == theirs


def test_a_small_block_that_says_a_lot_is_refused() -> None:
    tables = Tables(10_000)
    encoder = hpack.Encoder()
    big = (b"x", b"y" * 3000)
    start = encoder.encode([big])
    again = encoder.encode([big])
    with pytest.raises(BadBlock, match="more than 10000 bytes"):
        tables.decode(tables.table(), start + again * 100)


def test_tables_do_not_pile_up() -> None:
    tables = Tables(65536)
    table = tables.table()
    for number in range(5_000):
        table = tables.decode(table, b"\x40\x04x-id\x04%04d" % number).after
    assert len(tables._known) <= 4096
    assert len(table.entries) == 4096 // (4 + 4 + 32)
