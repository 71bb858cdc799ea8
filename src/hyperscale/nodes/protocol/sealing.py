"""What gates and managers keep for workers and do not read: sealed under the cluster secret.

Code, variables and values that steps hand on may hold passwords, and a job's records are on the
disks of all of them. So they are written sealed, with AES-256-GCM, and opened by the worker that
runs them. A cluster without a secret keeps them as they come.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from hyperscale.engine.messages import Stamped, Values
from hyperscale.errors import RunFailed
from hyperscale.nodes.protocol.jobs import Body
from hyperscale.nodes.protocol.parts import DispatchPart
from hyperscale.wire.sealed import Secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_PURPOSE = b"job records"
_MARK = b"\0"  # before what is sealed; no value begins so
_KEY_ID_BYTES = 4
_NONCE_BYTES = 12


class _Private(msgspec.Struct, frozen=True, array_like=True):
    source: bytes
    overrides: bytes
    env: dict[str, str]
    secrets: tuple[str, ...]


_encode = msgspec.msgpack.Encoder().encode
_private = msgspec.msgpack.Decoder(_Private)


class Sealing:
    def __init__(self, secret: str | None, previous: str | None = None) -> None:
        """`previous` opens what was sealed before the secret was changed."""
        known = [Secret(text) for text in (secret, previous) if text is not None]
        self._keys: dict[bytes, AESGCM] = {one.id: one.key_for(_PURPOSE) for one in known}
        self._current = known[0].id if known else None

    def seal_body(self, body: Body) -> Body:
        if self._current is None:
            return body
        private = _Private(body.source, body.overrides, body.env, body.secrets)
        return msgspec.structs.replace(
            body, sealed=self._seal(_encode(private)), source=b"", overrides=b"", env={}, secrets=()
        )

    def open_body(self, body: Body) -> Body:
        """Raises RunFailed when it was sealed under a secret that is not ours."""
        return msgspec.structs.replace(body, sealed=b"", **self._opened(body.sealed))

    def open_order(self, order: DispatchPart) -> DispatchPart:
        """Raises RunFailed when it was sealed under a secret that is not ours."""
        order = msgspec.structs.replace(order, sealed=b"", **self._opened(order.sealed))
        used = {name: self.open_values(values) for name, values in order.used.items()}
        return msgspec.structs.replace(order, context=self.open_values(order.context), used=used)

    def _opened(self, sealed: bytes) -> dict[str, Any]:
        return msgspec.structs.asdict(_private.decode(self._open(sealed))) if sealed else {}

    def seal_values(self, values: Values) -> Values:
        if self._current is None:
            return values
        return {
            key: Stamped(one.stamp, one.core, self._seal(one.value)) for key, one in values.items()
        }

    def open_values(self, values: Values) -> Values:
        """Raises RunFailed when they were sealed under a secret that is not ours."""
        return {
            key: Stamped(one.stamp, one.core, self._open(one.value)) for key, one in values.items()
        }

    def _seal(self, data: bytes) -> bytes:
        assert self._current is not None
        nonce = os.urandom(_NONCE_BYTES)
        return _MARK + self._current + nonce + self._keys[self._current].encrypt(nonce, data, None)

    def _open(self, data: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        if not data.startswith(_MARK):
            return data
        start = len(_MARK) + _KEY_ID_BYTES
        key = self._keys.get(data[len(_MARK) : start])
        nonce, rest = data[start : start + _NONCE_BYTES], data[start + _NONCE_BYTES :]
        with suppress(InvalidTag):
            if key is not None:
                return key.decrypt(nonce, rest, None)
        raise RunFailed(
            "the job was sealed under another cluster secret than this node has",
            "give every node the same --secret-file; --previous-secret-file while it changes",
        )


UNSEALED = Sealing(None)
