"""Sealed datagrams: AES-256-GCM under keys derived from the cluster secret.

    version  key id  epoch  salt   number  sender length  sender ... | ciphertext ... tag
    u8       4       u64    8      u64     u8

Every start of a sender draws a salt and gets a key of its own from the secret, its id, epoch and
salt (HKDF); the nonce is the number of the datagram. So no nonce can repeat under a key, however
often a node restarts. Everything before the ciphertext is authenticated with it. What does not
open is counted and dropped, never raised: the network is full of strangers.
"""

from __future__ import annotations

import os
import struct
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from hyperscale.wire.replay import SENDERS_MAX, ReplayGuard

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VERSION = 1
# Fits one packet on every path of today's Internet, tunnels included.
DATAGRAM_BYTES_MAX = 1200
SECRET_CHARACTERS_MIN = 16
SENDER_BYTES_MAX = 64
SALT_BYTES = 8
KEY_BYTES = 32
TAG_BYTES = 16

_HEADER = struct.Struct(f"!B4sQ{SALT_BYTES}sQB")
_WEAK = frozenset({"password", "secret", "changeme", "hyperscale", "default", "test"})


class Opened(NamedTuple):
    sender: str
    epoch: int
    data: bytes


def check_secret(secret: str) -> None:
    """Raises ValueError for a secret a stranger would guess (B-80)."""
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

    def key(self, sender: bytes, epoch: int, salt: bytes) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._expand(b"sender" + salt + struct.pack("!Q", epoch) + sender))

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

    `epoch` must be higher at every start of the same sender, as an incarnation is. With `previous`
    datagrams under the old secret still open while a new one is rolled out; sealing is always
    done with the current one.
    """

    def __init__(
        self,
        sender: str,
        epoch: int,
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
        self._epoch = epoch
        self._salt = entropy(SALT_BYTES)
        self._seal = current.key(self._sender, epoch, self._salt).encrypt
        self._number = 0
        self._clock = clock
        self._guard = ReplayGuard(senders_max)
        self._keys: dict[bytes, tuple[tuple[bytes, int, bytes], AESGCM]] = {}
        self.dropped: Counter[str] = Counter()

    @property
    def payload_bytes_max(self) -> int:
        """What fits beside our own header into one datagram."""
        return DATAGRAM_BYTES_MAX - _HEADER.size - len(self._sender) - TAG_BYTES

    def knows(self, datagram: bytes) -> bool:
        """Whether it says to be sealed under one of our secrets."""
        return datagram[1:5] in self._secrets

    def seal(self, data: bytes) -> bytes:
        """Raises ValueError when the data does not fit one datagram."""
        if len(data) > self.payload_bytes_max:
            raise ValueError(f"{len(data)} bytes do not fit a datagram of {DATAGRAM_BYTES_MAX}")
        number = self._number
        self._number += 1
        head = _HEADER.pack(
            VERSION, self._key_id, self._epoch, self._salt, number, len(self._sender)
        )
        head += self._sender
        return head + self._seal(_nonce(number), data, head)

    def open(self, datagram: bytes) -> Opened | None:
        """What is inside, or None: then `dropped` counts why."""
        if not _HEADER.size + 1 + TAG_BYTES <= len(datagram) <= DATAGRAM_BYTES_MAX:
            return self._drop("size")
        version, key_id, epoch, salt, number, sender_bytes = _HEADER.unpack_from(datagram)
        if version != VERSION:
            return self._drop("version")
        start = _HEADER.size + sender_bytes
        if not 0 < sender_bytes <= SENDER_BYTES_MAX or start + TAG_BYTES > len(datagram):
            return self._drop("malformed")
        secret = self._secrets.get(key_id)
        if secret is None:
            return self._drop("unknown_key")
        sender = datagram[_HEADER.size : start]
        if not self._guard.is_new(sender, epoch, salt, number):
            return self._drop("jump" if self._guard.leaps(sender, epoch) else "replay")
        return self._decrypt(secret, sender, epoch, salt, number, datagram, start)

    def vouched(self, sender: str, epoch: int) -> None:
        """A connection with a certificate has shown in which epoch this sender is."""
        if self._guard.vouched(sender.encode(), epoch):
            del self._keys[sender.encode()]

    def _decrypt(
        self,
        secret: Secret,
        sender: bytes,
        epoch: int,
        salt: bytes,
        number: int,
        datagram: bytes,
        start: int,
    ) -> Opened | None:
        from cryptography.exceptions import InvalidTag

        life = (secret.id, epoch, salt)
        known = self._keys.get(sender)
        if known is not None and known[0] == life:
            key = known[1]
        else:
            key = secret.key(sender, epoch, salt)
        try:
            data = key.decrypt(_nonce(number), datagram[start:], datagram[:start])
            name = sender.decode()
        except InvalidTag:
            return self._drop("forged")
        except UnicodeDecodeError:
            return self._drop("malformed")
        # Only the key of a sender that has proven itself is kept, one for each that the guard
        # remembers, so strangers cannot fill the list.
        self._keys[sender] = (life, key)
        for gone in self._guard.mark(self._clock(), sender, epoch, salt, number):
            del self._keys[gone]
        return Opened(name, epoch, data)

    def _drop(self, why: str) -> Opened | None:
        self.dropped[why] += 1
        return None


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "big")
