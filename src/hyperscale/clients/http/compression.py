"""Compressed request bodies: `compress="gzip"` of a call.

Levels are those that k6 and most servers use: a body that changes with every call is compressed
while the load runs, and the best ratio would cost more processor time than the call itself.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from hyperscale.errors import BadInput
from hyperscale.workload.texts import shown

CODINGS = ("gzip", "deflate", "zstd", "br")
_LEVEL = 6
_ZSTD_LEVEL = 3
_BROTLI_QUALITY = 5


class Compressor(NamedTuple):
    """Compresses a body piece by piece; a piece may give nothing yet."""

    add: Callable[[bytes], bytes]
    end: Callable[[], bytes]


def check_coding(coding: Any) -> None:
    if coding not in CODINGS:
        names = ", ".join(map(repr, CODINGS))
        raise BadInput(f"compress of a call is {shown(coding)} but must be one of {names}")


def compress(body: bytes, coding: str) -> bytes:
    if coding == "gzip":  # without the time of day: equal bodies give equal bytes
        return gzip.compress(body, _LEVEL, mtime=0)
    if coding == "deflate":
        return zlib.compress(body, _LEVEL)
    compressor = compressor_for(coding)
    return compressor.add(body) + compressor.end()


def compressor_for(coding: str) -> Compressor:
    if coding == "zstd":
        zstd = import_module("zstandard").ZstdCompressor(level=_ZSTD_LEVEL).compressobj()
        return Compressor(zstd.compress, zstd.flush)
    if coding == "br":
        try:
            brotli = import_module("brotli").Compressor(quality=_BROTLI_QUALITY)
        except ImportError:
            raise BadInput(
                "compress='br' needs a package that is not installed",
                "pip install 'hyperscale-loadtest[brotli]', or compress='gzip'",
            ) from None
        return Compressor(brotli.process, brotli.finish)
    window = zlib.MAX_WBITS + 16 if coding == "gzip" else zlib.MAX_WBITS
    zipped = zlib.compressobj(_LEVEL, zlib.DEFLATED, window)
    return Compressor(zipped.compress, zipped.flush)
