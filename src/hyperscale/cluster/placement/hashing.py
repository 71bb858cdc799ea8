"""A hash every process, machine and version agrees on. Python's own is salted per process."""

from __future__ import annotations

from hashlib import blake2b


def stable_hash(*parts: str) -> int:
    """64 bits. Each part is preceded by its length, so ("ab", "c") and ("a", "bc") differ."""
    digest = blake2b(digest_size=8)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(4, "big"))
        digest.update(encoded)
    return int.from_bytes(digest.digest(), "big")


def unit_interval(*parts: str) -> float:
    """A number in (0, 1), both ends excluded: safe to take the logarithm of."""
    return ((stable_hash(*parts) >> 11) + 0.5) / (1 << 53)
