"""Whole messages on a stream, sealed like datagrams when the cluster has a secret.

A message travels as frames. Sealed, each frame is one sealed piece that begins with a byte telling
whether it is the last; plain, there is one frame per message. A stream that carries a stranger's
bytes is refused at its first frame, before anything is kept.
"""

from __future__ import annotations

from typing import Final, Protocol

from hyperscale.cluster.membership import Refused
from hyperscale.cluster.membership.messages import EXCHANGE_BYTES_MAX
from hyperscale.runtime.host import Stream
from hyperscale.wire.frames import FrameDecoder, encode_frame

READ_BYTES: Final = 64 * 1024
PIECE_BYTES: Final = 1_000  # with seal and marker well inside a sealed datagram
SEALED_FRAME_BYTES_MAX: Final = 2_048
_MORE, _LAST = b"\x00", b"\x01"


class Opened(Protocol):
    @property
    def sender(self) -> str: ...

    @property
    def data(self) -> bytes: ...


class Seal(Protocol):
    """Encrypts and authenticates; `open` gives None for what does not open."""

    def seal(self, data: bytes) -> bytes: ...

    def open(self, datagram: bytes) -> Opened | None: ...


class ExchangeStream:
    def __init__(self, stream: Stream, seal: Seal | None) -> None:
        self._stream = stream
        self._seal = seal
        limit = EXCHANGE_BYTES_MAX if seal is None else SEALED_FRAME_BYTES_MAX
        self._frames = FrameDecoder(limit)
        self._ready: list[bytes] = []
        self.bytes_out = 0

    async def send(self, message: bytes) -> None:
        for frame in self._framed(message):
            self.bytes_out += len(frame)
            self._stream.write(frame)
        await self._stream.drain()

    async def receive(self) -> tuple[str | None, bytes]:
        """Who sealed the next message (None on a plain stream), and the message."""
        if self._seal is None:
            return None, await self._frame()
        speaker, pieces, size = None, [], 0
        while True:
            opened = self._seal.open(await self._frame())
            if opened is None or not opened.data or speaker not in (None, opened.sender):
                raise Refused("seal")
            speaker = opened.sender
            pieces.append(opened.data[1:])
            size += len(opened.data)
            if size > EXCHANGE_BYTES_MAX:
                raise Refused("malformed")
            if opened.data[:1] == _LAST:
                return speaker, b"".join(pieces)

    def close(self) -> None:
        self._stream.close()

    def _framed(self, message: bytes) -> list[bytes]:
        if self._seal is None:
            return [encode_frame(message)]
        cuts = range(0, len(message), PIECE_BYTES)
        return [
            encode_frame(
                self._seal.seal(
                    (_LAST if cut == cuts[-1] else _MORE) + message[cut : cut + PIECE_BYTES]
                )
            )
            for cut in cuts
        ]

    async def _frame(self) -> bytes:
        while not self._ready:
            data = await self._stream.read(READ_BYTES)
            if not data:
                raise ConnectionResetError("the exchange ended early")
            self._frames.feed(data)
            self._ready += [payload for _flags, payload in self._frames]
        return self._ready.pop(0)
