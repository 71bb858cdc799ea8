"""Dice that always fall the same way: a number in [0, 1) from names.

Jitter must differ between jobs and schedules, yet be the same for the leader that dies and the one
that takes over, and for every store. So it is a hash, not a random generator.
"""

from __future__ import annotations

from hashlib import blake2b


def chance(*names: str | int) -> float:
    text = "\x00".join(map(str, names)).encode()
    return int.from_bytes(blake2b(text, digest_size=6).digest(), "big") / (1 << 48)
