"""SCRAM (RFC 5802, RFC 7677): both sides show that they know the password, and neither sends it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from functools import lru_cache

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-1": "sha1"}
ROUNDS_LEAST = 4096  # RFC 7677: a server that asks for fewer is after the password
ROUNDS_MOST = 10_000_000  # one that asks for more is after our time


class Refused(Exception):
    """The server does not keep to SCRAM, or does not know the password."""


class Exchange:
    def __init__(self, mechanism: str, user: str, password: str, nonce: str) -> None:
        self._hash = HASHES[mechanism]
        self._password = password
        self._nonce = nonce
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={nonce}"
        self._signature = b""

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def final(self, challenge: bytes) -> bytes:
        try:
            text = challenge.decode()
            said = dict(one.split("=", 1) for one in text.split(","))
            nonce, rounds = said["r"], int(said["i"])
            salt = base64.b64decode(said["s"], validate=True)
        except (KeyError, ValueError, binascii.Error):
            raise Refused("its challenge is not one of SCRAM") from None
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise Refused("its nonce does not begin with ours")
        if not ROUNDS_LEAST <= rounds <= ROUNDS_MOST:
            raise Refused(f"it asks for {rounds} rounds of hashing")
        client, stored, server = _keys(self._hash, self._password, salt, rounds)
        without_proof = f"c=biws,r={nonce}"
        signed = f"{self._bare},{text},{without_proof}".encode()
        mask = hmac.digest(stored, signed, self._hash)
        proof = bytes(a ^ b for a, b in zip(client, mask, strict=True))
        self._signature = hmac.digest(server, signed, self._hash)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, last: bytes) -> None:
        if not hmac.compare_digest(last, b"v=" + base64.b64encode(self._signature)):
            raise Refused("it does not know the password")


@lru_cache(maxsize=64)
def _keys(hash_name: str, password: str, salt: bytes, rounds: int) -> tuple[bytes, bytes, bytes]:
    """Thousands of hashes, which are the same for each connection of a user."""
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, rounds)
    client = hmac.digest(salted, b"Client Key", hash_name)
    stored = hashlib.new(hash_name, client).digest()
    return client, stored, hmac.digest(salted, b"Server Key", hash_name)
