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

from hyperscale.errors import BadInput

KEY_BYTES_MAX = 256
SEQUENCE_MAX = 2**63 - 1

# Sequence without leading zeros and a lower-case nonce: one text per key.
_KEY = re.compile(r"[!-~\u00a1-\ud7ff\ue000-\U0010ffff]+:(0|[1-9][0-9]{0,18}):[0-9a-f]{16}")


class InvalidKey(BadInput):
    def __init__(self, text: str) -> None:
        super().__init__(
            f"Invalid idempotency key format: {text[:80]!r}.",
            "A key is client:sequence:nonce, at most 256 bytes, no blanks; the sequence is a whole "
            "number, the nonce 16 characters of 0-9 and a-f.",
        )


def check_key(text: str) -> None:
    """Raises InvalidKey for what is no key."""
    match = _KEY.fullmatch(text)
    if match is None or not _fits(text) or int(match[1]) > SEQUENCE_MAX:
        raise InvalidKey(text)


def _fits(text: str) -> bool:
    if len(text) > KEY_BYTES_MAX:
        return False
    return text.isascii() or len(text.encode("utf-8", "replace")) <= KEY_BYTES_MAX


class IdempotencyKeyGenerator:
    """Keys of one client process; `generate` may be called from any thread."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._nonce = secrets.token_hex(8)
        # next() on a count is one step under the interpreter's lock, unlike "read, add, store".
        self._sequence = itertools.count()
        check_key(f"{client_id}:{SEQUENCE_MAX}:{self._nonce}")

    def generate(self) -> str:
        """The next key, which no other program makes."""
        return f"{self._client_id}:{next(self._sequence)}:{self._nonce}"
