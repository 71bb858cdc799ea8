"""The name of one logical submission: `{client_id}:{sequence}:{nonce}`.

A retry carries the same key, a new request the next sequence, a restarted client a new nonce. A
client that must be able to retry after its own crash keeps the key it used and passes it again. The
text is read from the right, because a client id may hold colons (host:pid, IPv6). There is one
text per key, so equal keys are equal texts.
"""

from __future__ import annotations

import itertools
import re
import secrets
from hashlib import blake2b

from hyperscale.errors import BadInput

KEY_BYTES_MAX = 256
SEQUENCE_MAX = 2**63 - 1
FINGERPRINT_BYTES = 16
"""128 bits: two of a million live keys meet with a chance below 10^-26."""

# Sequence without leading zeros and a lower-case nonce: one text per key.
_KEY = re.compile(r"[!-~\u00a1-\ud7ff\ue000-\U0010ffff]+:(0|[1-9][0-9]{0,18}):[0-9a-f]{16}")


class InvalidKey(BadInput):
    def __init__(self, text: str) -> None:
        super().__init__(
            f"Invalid idempotency key format: {text[:80]!r}.",
            "A key is client:sequence:nonce, at most 256 bytes, no blanks; the sequence is a whole "
            "number, the nonce 16 characters of 0-9 and a-f.",
        )


class IdempotencyKey(str):
    """A text known to be a key; made by `parse` or `of`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> IdempotencyKey:
        match = _KEY.fullmatch(text)
        if match is None or not _fits(text) or int(match[1]) > SEQUENCE_MAX:
            raise InvalidKey(text)
        return cls(text)

    @classmethod
    def of(cls, client_id: str, sequence: int, nonce: str) -> IdempotencyKey:
        return cls.parse(f"{client_id}:{sequence}:{nonce}")

    @property
    def client_id(self) -> str:
        return self.rsplit(":", 2)[0]

    @property
    def sequence(self) -> int:
        return int(self.rsplit(":", 2)[1])

    @property
    def nonce(self) -> str:
        return self.rsplit(":", 1)[1]


def _fits(text: str) -> bool:
    if len(text) > KEY_BYTES_MAX:
        return False
    return text.isascii() or len(text.encode("utf-8", "replace")) <= KEY_BYTES_MAX


def fingerprint(key: str, scope: str = "") -> bytes:
    """What a ledger remembers of a key, and what routes it: a retry with another job id must reach
    the same ledger. `scope` tells apart the parts of one submission that are sent to several
    datacenters on purpose."""
    text = f"{scope}\0{key}" if scope else key
    return blake2b(text.encode(), digest_size=FINGERPRINT_BYTES).digest()


def content_digest(*parts: bytes) -> bytes:
    """Identity of what is submitted. The job id of a try is no part of it."""
    digest = blake2b(digest_size=FINGERPRINT_BYTES)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


class KeyGenerator:
    """Keys of one client process; `next` may be called from any thread."""

    def __init__(self, client_id: str, nonce: str | None = None) -> None:
        self._client_id = client_id
        self._nonce = nonce or secrets.token_hex(8)
        # next() on a count is one step under the interpreter's lock, unlike "read, add, store".
        self._sequence = itertools.count()
        IdempotencyKey.of(client_id, SEQUENCE_MAX, self._nonce)

    def next(self) -> IdempotencyKey:
        return IdempotencyKey(f"{self._client_id}:{next(self._sequence)}:{self._nonce}")
