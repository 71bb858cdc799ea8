"""Compressed bodies: which codings this installation can read, and reading them.

brotli and zstd are optional packages, found when first asked for. A decoded body is bounded like a
received one: a kilobyte can hold a gigabyte of zeros. A body that ends too early is an error, never
a shorter body.
"""

from __future__ import annotations

import zlib
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from hyperscale.workload.results import CallFailed, Outcome

_EXTRAS = {"br": ("brotli", "brotli"), "zstd": ("zstandard", "zstd")}  # coding: module, extra
_CODINGS = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd"})
# A gzip body may consist of members, a zstd body of frames. Block-wise compression puts 64 KiB into
# each, so no body needs as many; 64 MiB of empty ones would take seconds.
_MAX_MEMBERS = 65_536
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_RAW_DEFLATE = -zlib.MAX_WBITS


class _TooLarge(Exception):
    pass


@cache
def accepted_encodings() -> str:
    found = [coding for coding, (module, _) in _EXTRAS.items() if find_spec(module)]
    return ", ".join(["gzip", "deflate", *found])


def decode(body: bytes, encodings: tuple[str, ...], max_bytes: int) -> bytes:
    """The body without its codings, the last applied taken off first.

    What is behind a coding of no known name ("none", "utf-8") is handed over as it is.
    """
    for coding in reversed(encodings):
        if not body or coding not in _CODINGS:
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
        case "br":
            return _brotli(body, max_bytes)
        case "zstd":
            return _zstd(body, max_bytes)
        case "deflate":
            # Named after zlib's format, sent by many servers without zlib's header.
            with_header = body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
            wbits = _GZIP_OR_ZLIB if with_header else _RAW_DEFLATE
            return _inflate(body, coding, wbits, max_bytes)
    return _inflate(body, coding, _GZIP_OR_ZLIB, max_bytes)


def _inflate(body: bytes, coding: str, wbits: int, max_bytes: int) -> bytes:
    view = memoryview(body)
    parts = []
    room = max_bytes
    at, step = 0, len(body)
    for _ in range(_MAX_MEMBERS):
        inflater = zlib.decompressobj(wbits)
        while at < len(body) and not inflater.eof:
            given = view[at : at + step]
            try:
                part = inflater.decompress(given, room + 1)
            except zlib.error as error:
                raise _damaged(coding) from error
            room -= len(part)
            if room < 0:
                raise _TooLarge
            parts.append(part)
            at += len(given) - len(inflater.unused_data)
            step *= 2
        if not inflater.eof:
            raise _damaged(coding)
        if at == len(body) or coding == "deflate":  # what follows deflate is padding
            return b"".join(parts)
        # Only the first member is given all there is: what a member leaves over is copied.
        step = 1024
    raise _too_many(coding)


def _brotli(body: bytes, max_bytes: int) -> bytes:
    brotli = _optional("br")
    decoder = brotli.Decompressor()
    parts = []
    room = max_bytes
    given = body
    try:
        while not decoder.is_finished():
            part = decoder.process(given, output_buffer_limit=room + 1)
            if not part and not given:  # all was given, and it wants more
                raise _damaged("br")
            parts.append(part)
            room -= len(part)
            if room < 0:
                raise _TooLarge
            given = b""
    except brotli.error as error:
        raise _damaged("br") from error
    return b"".join(parts)


def _zstd(body: bytes, max_bytes: int) -> bytes:
    zstandard = _optional("zstd")
    decompressor = zstandard.ZstdDecompressor()
    view = memoryview(body)
    parts = []
    room = max_bytes
    at = 0
    for _ in range(_MAX_MEMBERS):
        frame = decompressor.decompressobj()
        while at < len(body) and not frame.eof:
            # It cannot be told how much to produce. Four bytes can hold a block of 128 KiB.
            given = view[at : at + max(64, room // 32_768)]
            try:
                part = frame.decompress(given)
            except zstandard.ZstdError as error:
                raise _damaged("zstd") from error
            room -= len(part)
            if room < 0:
                raise _TooLarge
            parts.append(part)
            at += len(given) - len(frame.unused_data)
        if not frame.eof:
            raise _damaged("zstd")
        if at == len(body):
            return b"".join(parts)
    raise _too_many("zstd")


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


def _too_many(coding: str) -> CallFailed:
    text = f"the body consists of more than {_MAX_MEMBERS} {coding} streams"
    return CallFailed(Outcome.PROTOCOL, text)
