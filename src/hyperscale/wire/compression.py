"""Compression of large bodies with zstd, and the guard against what expands without end.

A sender compresses only what gains from it and what the receiver's guard will let through. A
receiver believes the size in the zstd header only to refuse: unknown, above the kind's limit or
above the ratio, and nothing is expanded.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hyperscale.wire.errors import Malformed

# Below this a frame fits a few packets and compressing costs more than it saves.
THRESHOLD_BYTES = 4 * 1024
RATIO_MAX = 100
# Level 1: three times the speed of the default for a tenth less gain.
LEVEL = 1
# zstd allocates a window before it knows that the data is bad.
WINDOW_BYTES_MAX = 8 * 1024 * 1024


@cache
def _compressor() -> Any:
    import zstandard

    return zstandard.ZstdCompressor(level=LEVEL, write_content_size=True)


@cache
def _decompressor() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES_MAX)


def compress(body: bytes) -> bytes | None:
    """The smaller form of a body, or None when it should travel as it is."""
    if len(body) < THRESHOLD_BYTES:
        return None
    packed: bytes = _compressor().compress(body)
    if len(packed) > len(body) * 9 // 10 or len(body) > len(packed) * RATIO_MAX:
        return None
    return packed


def decompress(packed: bytes, limit_bytes: int) -> bytes:
    """Raises Malformed for anything that is not an honest compressed body of that size."""
    import zstandard

    try:
        declared = zstandard.frame_content_size(packed)
        if declared < 0:
            raise Malformed("a compressed body that does not tell its size")
        if declared > limit_bytes:
            raise Malformed(f"a body of {declared:,} bytes, where {limit_bytes:,} are allowed")
        if declared > len(packed) * RATIO_MAX:
            raise Malformed(f"a body that grows more than {RATIO_MAX} times when unpacked")
        body: bytes = _decompressor().decompress(packed, max_output_size=limit_bytes)
    except zstandard.ZstdError as error:
        raise Malformed(f"a body that cannot be unpacked: {error}") from None
    return body
