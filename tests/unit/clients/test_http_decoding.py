"""Compressed bodies come out whole, or not at all."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib

import brotli
import pytest
import zstandard

from hyperscale.clients.http import decoding
from hyperscale.clients.http.decoding import decode
from hyperscale.workload.results import CallFailed

TEXT = b"hello " * 50
NOISE = random.Random(1).randbytes(600_000)
LIMIT = 1_000_000


def raw_deflate(data: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=-15)
    return deflater.compress(data) + deflater.flush()


CODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("coding", CODERS)
@pytest.mark.parametrize("data", [TEXT, NOISE, b"x", bytes(LIMIT)], ids=len)
def test_whole_bodies(coding: str, data: bytes) -> None:
    assert decode(CODERS[coding](data), (coding,), LIMIT) == data


@pytest.mark.parametrize("coding", CODERS)
@pytest.mark.parametrize("data", [TEXT, NOISE], ids=["text", "noise"])
def test_a_body_that_ends_too_early_is_an_error(coding: str, data: bytes) -> None:
    whole = CODERS[coding](data)
    ends = {1, 5, len(whole) // 4, len(whole) // 2, len(whole) - 5, len(whole) - 1}
    for end in ends:
        with pytest.raises(CallFailed, match="not valid"):
            decode(whole[:end], (coding,), LIMIT)


@pytest.mark.parametrize("coding", CODERS)
def test_too_large_when_decompressed(coding: str) -> None:
    with pytest.raises(CallFailed, match="more than 1000000 bytes"):
        decode(CODERS[coding](bytes(LIMIT + 1)), (coding,), LIMIT)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_is_not_unpacked_further_than_the_limit(coding: str) -> None:
    bomb = CODERS[coding](bytes(100_000_000))
    tracemalloc.start()
    with pytest.raises(CallFailed, match="more than 1000000 bytes"):
        decode(bomb, (coding,), LIMIT)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_codings() -> None:
    packed = gzip.compress(TEXT)
    for codings, data, read in (
        (("none",), TEXT, TEXT),
        (("utf-8",), TEXT, TEXT),
        (("foo",), packed, packed),
        (("foo", "gzip"), packed, TEXT),
        (("gzip", "foo"), packed, packed),  # what is behind an unknown one stays packed
        (("gzip", "gzip"), gzip.compress(packed), TEXT),
        (("gzip", "br", "zstd"), zstandard.compress(brotli.compress(packed)), TEXT),
        (("gzip",), b"", b""),
        (("deflate",), raw_deflate(TEXT), TEXT),
        (("deflate",), zlib.compress(TEXT) + bytes(10), TEXT),
    ):
        assert decode(data, codings, LIMIT) == read, codings


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize(
    "parts",
    [[b"", TEXT, b""], [TEXT, NOISE[:99_999], b"", NOISE[:1000]], [NOISE[:300_000], TEXT] * 2],
    ids=len,
)
def test_bodies_of_several_streams(coding: str, parts: list[bytes]) -> None:
    packed = b"".join(CODERS[coding](part) for part in parts)
    assert decode(packed, (coding,), LIMIT) == b"".join(parts)
    with pytest.raises(CallFailed, match="not valid"):
        decode(packed[:-1], (coding,), LIMIT)
    with pytest.raises(CallFailed, match="not valid"):
        decode(packed + b"garbage", (coding,), LIMIT)


class Given:
    """Counts the bytes that a decompressor is given."""

    def __init__(self, made: object, counted: list[int]) -> None:
        self._made = made
        self._counted = counted

    def decompress(self, data: bytes, *limit: int) -> bytes:
        self._counted.append(len(data))
        return self._made.decompress(data, *limit)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> object:
        return getattr(self._made, name)


@pytest.mark.parametrize("part", [b"", b"x"])
def test_many_members_are_not_copied_again_for_each(
    part: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    original = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", lambda bits: Given(original(bits), counted))
    assert decode(gzip.compress(part) * 20_000, ("gzip",), LIMIT) == part * 20_000
    assert sum(counted) < 50_000_000


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_endless_members_are_refused(coding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_MAX_MEMBERS", 100)
    with pytest.raises(CallFailed, match=f"more than 100 {coding} streams"):
        decode(CODERS[coding](b"") * 101, (coding,), LIMIT)
    assert decode(CODERS[coding](b"") * 100, (coding,), LIMIT) == b""
