"""Arbitrary bytes and damaged replies into everything that reads responses."""

from __future__ import annotations

import gzip
import random
import zlib

import brotli
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fixtures.http_replies import FIVE, OK, REPLIES
from tests.fuzz.http_bytes import feed_all

TEXT = b"hello " * 50
SEEDS = [
    *(reply.data for reply in REPLIES.values() if len(reply.data) <= 2000),
    *(
        OK + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (coding, len(data)) + data
        for coding, data in (
            (b"gzip", gzip.compress(TEXT, mtime=0)),
            (b"deflate", zlib.compress(TEXT)),
            (b"br", brotli.compress(TEXT)),
            (b"zstd", zstandard.compress(TEXT)),
            (b"none", TEXT),
        )
    ),
    OK + b"Set-Cookie: a=b; Path=/x; Max-Age=10\r\nLocation: /caf\xe9\r\n" + FIVE,
    *(pack(TEXT) for pack in (zlib.compress, brotli.compress, zstandard.compress)),
]
PIECES = [b"", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\n\n", b" ", b"\t", b":", b"\0", b"0", b"5"]
PIECES += [b";", b",", b"\xa0", b"\x85", b"chunked", b"Content-Length: 5\r\n", OK, b"0\r\n"]


@given(st.binary(max_size=2000))
@example(b"HTTP/1.1 200 OK\nContent-Length: 5\n\nX: y\r\n\r\n")
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r")
def test_arbitrary_bytes(data: bytes) -> None:
    feed_all(data)


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_damaged_replies(seed: int) -> None:
    """The same damages in each run; the fuzzer looks for others."""
    chance = random.Random(seed)
    feed_all(SEEDS[seed])
    for _ in range(30):
        data = SEEDS[seed]
        for _ in range(chance.randint(1, 4)):
            at = chance.randint(0, len(data))
            data = data[:at] + chance.choice(PIECES) + data[at + chance.randint(0, 3) :]
        if chance.random() < 0.3:
            other = chance.choice(SEEDS)
            data = data[: chance.randint(0, len(data))] + other[chance.randint(0, len(other)) :]
        feed_all(data)
