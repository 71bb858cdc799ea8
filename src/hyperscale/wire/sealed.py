"""Sealed datagrams: AES-256-GCM under keys derived from the cluster secret.

    version  kind  key id  start  number  sender length  sender ... | ciphertext ... tag
    u8       u8    4       16     u64     u8

Every start of a sender draws 16 bytes and gets a key of its own from the secret, its id and these
(HKDF); the nonce is the number of the datagram. So no nonce can repeat under a key, however often a
node restarts. Everything before the ciphertext is authenticated with it.

    sender                       receiver
      data, number 7  ---------->  does not know this start: keeps nothing of it, and asks
                 <---------------  question, for number 7
      answer  ------------------>  knows it now, by the numbers above the answer's
      data, number 9  ---------->  (number 7 sealed again) opens

A datagram that was recorded before the receiver started opens at nobody: whoever replays it cannot
answer, and the real sender answers under a higher number. Once known, a sender pays nothing. What
does not open is counted and dropped, never raised: the network is full of strangers.
"""

from __future__ import annotations

import os
import struct
import time
from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from hyperscale.wire.replay import QUESTION_BYTES, SENDERS_MAX, Senders

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VERSION = 2
# Fits one packet on every path of today's Internet, tunnels included.
DATAGRAM_BYTES_MAX = 1200
SECRET_CHARACTERS_MIN = 16
SENDER_BYTES_MAX = 64
START_BYTES = 16
KEY_BYTES = 32
TAG_BYTES = 16

# Those sent last, which a receiver that does not know us yet may ask for again: of the busiest
# sender what it sends in the longest way there and back.
KEPT = 64

_HEADER = struct.Struct(f"!BB4s{START_BYTES}sQB")
_QUESTION = struct.Struct(f"!{QUESTION_BYTES}sQ")
_WEAK = frozenset({"password", "secret", "changeme", "hyperscale", "default", "test"})


class Kind(IntEnum):
    DATA = 0
    QUESTION = 1
    ANSWER = 2


class Opened(NamedTuple):
    """`data` is None when it was for us alone. `answers` go back to where it came from."""

    sender: str
    data: bytes | None
    answers: tuple[bytes, ...] = ()


def check_secret(secret: str) -> None:
    """Raises ValueError for a secret a stranger would guess."""
    if len(secret) < SECRET_CHARACTERS_MIN:
        raise ValueError(
            f"the cluster secret has {len(secret)} characters, at least {SECRET_CHARACTERS_MIN} "
            "are needed"
        )
    letters = secret.strip().lower()
    if len(set(letters)) < 6 or any(
        letters == weak * (len(letters) // len(weak)) for weak in _WEAK
    ):
        raise ValueError("the cluster secret is too easy to guess: use random characters")


class Secret:
    """A cluster secret ready for use: its id for the wire, and keys per sender."""

    def __init__(self, secret: str) -> None:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        check_secret(secret)
        root = HKDF(SHA256(), KEY_BYTES, salt=b"hyperscale datagrams v1", info=b"root")
        self._root = root.derive(secret.encode())
        self.id = self._expand(b"key id")[:4]

    def key(self, sender: bytes, start: bytes) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._expand(b"sender" + start + sender))

    def key_for(self, purpose: bytes) -> AESGCM:
        """For what is no datagram; its nonces are random."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._expand(b"purpose " + purpose))

    def _expand(self, info: bytes) -> bytes:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

        return HKDFExpand(SHA256(), KEY_BYTES, info).derive(self._root)


class Sealer:
    """Seals what this node sends and opens what others send.

    With `previous` datagrams under the old secret still open while a new one is rolled out;
    sealing is always done with the current one.
    """

    def __init__(
        self,
        sender: str,
        secret: str,
        previous: str | None = None,
        *,
        senders_max: int = SENDERS_MAX,
        entropy: Callable[[int], bytes] = os.urandom,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sender = sender.encode()
        if not 0 < len(self._sender) <= SENDER_BYTES_MAX:
            raise ValueError(f"a sender id has 1 to {SENDER_BYTES_MAX} bytes, not {sender!r}")
        current = Secret(secret)
        self._secrets = {current.id: current}
        if previous is not None and previous != secret:
            old = Secret(previous)
            self._secrets[old.id] = old
        self._key_id = current.id
        self._start = entropy(START_BYTES)
        self._encrypt = current.key(self._sender, self._start).encrypt
        self._number = 0
        self._sent: list[tuple[int, bytes]] = [(-1, b"")] * KEPT
        self._senders = Senders(entropy, clock, senders_max)
        self.dropped: Counter[str] = Counter()

    @property
    def payload_bytes_max(self) -> int:
        """What fits beside our own header into one datagram."""
        return DATAGRAM_BYTES_MAX - _HEADER.size - len(self._sender) - TAG_BYTES

    def knows(self, datagram: bytes) -> bool:
        """Whether it says to be sealed under one of our secrets."""
        return datagram[2:6] in self._secrets

    def seal(self, data: bytes) -> bytes:
        """Raises ValueError when the data does not fit one datagram."""
        if len(data) > self.payload_bytes_max:
            raise ValueError(f"{len(data)} bytes do not fit a datagram of {DATAGRAM_BYTES_MAX}")
        self._sent[self._number % KEPT] = (self._number, data)
        return self._sealed(Kind.DATA, data)

    def open(self, datagram: bytes) -> Opened | None:
        """What is inside, or None: then `dropped` counts why."""
        from cryptography.exceptions import InvalidTag

        if not _HEADER.size + 1 + TAG_BYTES <= len(datagram) <= DATAGRAM_BYTES_MAX:
            return self._drop("size")
        version, kind, key_id, start, number, sender_bytes = _HEADER.unpack_from(datagram)
        if version != VERSION:
            return self._drop("version")
        at = _HEADER.size + sender_bytes
        if not 0 < sender_bytes <= SENDER_BYTES_MAX or at + TAG_BYTES > len(datagram):
            return self._drop("malformed")
        secret = self._secrets.get(key_id)
        if secret is None:
            return self._drop("unknown_key")
        sender = datagram[_HEADER.size : at]
        one = self._senders.known(sender, start)
        if start == self._start or (one is not None and not one.window.is_new(number)):
            return self._drop("replay")
        key = secret.key(sender, start) if one is None else one.key
        try:
            data = key.decrypt(_nonce(number), datagram[at:], datagram[:at])
            name = sender.decode()
        except InvalidTag:
            return self._drop("forged")
        except UnicodeDecodeError:
            return self._drop("malformed")
        if one is not None:
            self._senders.heard(sender, one, number)
        if kind == Kind.DATA:
            return Opened(name, data) if one is not None else self._ask(sender, name, number)
        if kind == Kind.QUESTION and len(data) == _QUESTION.size:
            return self._answer(name, *_QUESTION.unpack(data))
        if kind != Kind.ANSWER:
            return self._drop("malformed")
        # A question that is put for each of several datagrams is answered as often.
        if one is None and not self._senders.answered(sender, start, key, number, data):
            return self._drop("late_answer")
        return Opened(name, None)

    def _ask(self, sender: bytes, name: str, number: int) -> Opened:
        self._drop("unproven")
        question = _QUESTION.pack(self._senders.question(sender), number)
        return Opened(name, None, (self._sealed(Kind.QUESTION, question),))

    def _answer(self, name: str, question: bytes, number: int) -> Opened:
        """With the datagram it was about, if we still have it: sealed again once and no more, so
        that nobody makes us send for ever."""
        answer = self._sealed(Kind.ANSWER, question)
        at = number % KEPT
        kept, data = self._sent[at]
        if kept != number:
            return Opened(name, None, (answer,))
        self._sent[at] = (-1, b"")
        return Opened(name, None, (answer, self._sealed(Kind.DATA, data)))

    def _sealed(self, kind: Kind, data: bytes) -> bytes:
        number = self._number
        self._number += 1
        head = _HEADER.pack(VERSION, kind, self._key_id, self._start, number, len(self._sender))
        head += self._sender
        return head + self._encrypt(_nonce(number), data, head)

    def _drop(self, why: str) -> Opened | None:
        self.dropped[why] += 1
        return None


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "big")
