"""Compressed bodies: which codings this installation can read, and reading them.

brotli and zstd are optional packages, found when first asked for. A decoded body is bounded like a
received one: a kilobyte can hold a gigabyte of zeros.
"""

from __future__ import annotations

import zlib
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from hyperscale.workload.results import CallFailed, Outcome

_EXTRAS = {"br": ("brotli", "brotli"), "zstd": ("zstandard", "zstd")}  # coding: module, extra
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_RAW_DEFLATE = -zlib.MAX_WBITS


class _TooLarge(Exception):
    pass


@cache
def accepted_encodings() -> str:
    found = [coding for coding, (module, _) in _EXTRAS.items() if find_spec(module)]
    return ", ".join(["gzip", "deflate", *found])


def decode(body: bytes, encodings: tuple[str, ...], max_bytes: int) -> bytes:
    """The body without its codings, the last applied taken off first."""
    for coding in reversed(encodings):
        if not body:
            return body
        try:
            body = _decode(body, coding, max_bytes)
        except _TooLarge:
            raise CallFailed(
                Outcome.PROTOCOL, f"the body is more than {max_bytes} bytes when decompressed"
            ) from None
    return body


def _decode(body: bytes, coding: str, max_bytes: int) -> bytes:
    match coding:
        case "gzip" | "x-gzip":
            return _inflate(body, coding, _GZIP_OR_ZLIB, max_bytes)
        case "deflate":
            # Named after zlib's format, sent by many servers without zlib's header.
            with_header = body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
            wbits = _GZIP_OR_ZLIB if with_header else _RAW_DEFLATE
            return _inflate(body, coding, wbits, max_bytes)
        case "br":
            return _brotli(body, max_bytes)
        case "zstd":
            return _zstd(body, max_bytes)
    raise CallFailed(
        Outcome.PROTOCOL, f"the body has a content encoding nobody asked for: {coding}"
    )


def _inflate(body: bytes, coding: str, wbits: int, max_bytes: int) -> bytes:
    parts = []
    room = max_bytes
    while body:
        inflater = zlib.decompressobj(wbits)
        try:
            part = inflater.decompress(body, room + 1)
        except zlib.error as error:
            raise _damaged(coding) from error
        room -= len(part)
        if room < 0:
            raise _TooLarge
        if not inflater.eof:
            raise _damaged(coding)
        parts.append(part)
        # gzip allows several members; what follows deflate is padding
        body = inflater.unused_data if coding != "deflate" else b""
    return b"".join(parts)


def _brotli(body: bytes, max_bytes: int) -> bytes:
    brotli = _optional("br")
    decoder = brotli.Decompressor()
    parts = []
    room = max_bytes
    try:
        # Small slices, because only brotli 1.2 can be told how much to produce at once.
        for start in range(0, len(body), 1024):
            part = decoder.process(body[start : start + 1024])
            parts.append(part)
            room -= len(part)
            if room < 0:
                raise _TooLarge
    except brotli.error as error:
        raise _damaged("br") from error
    if not decoder.is_finished():
        raise _damaged("br")
    return b"".join(parts)


def _zstd(body: bytes, max_bytes: int) -> bytes:
    zstandard = _optional("zstd")
    try:
        reader = zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True)
        decoded: bytes = reader.read(max_bytes + 1)
    except zstandard.ZstdError as error:
        raise _damaged("zstd") from error
    if len(decoded) > max_bytes:
        raise _TooLarge
    return decoded


def _optional(coding: str) -> Any:
    module, extra = _EXTRAS[coding]
    try:
        return import_module(module)
    except ImportError:
        raise CallFailed(
            Outcome.PROTOCOL,
            f"the body is {coding}-encoded; install hyperscale-loadtest[{extra}] to read it",
        ) from None


def _damaged(coding: str) -> CallFailed:
    return CallFailed(Outcome.PROTOCOL, f"the body is not valid {coding}")
