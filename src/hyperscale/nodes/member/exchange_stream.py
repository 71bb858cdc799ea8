"""Whole messages on a stream, one frame each."""

from __future__ import annotations

from typing import Final

from hyperscale.cluster.membership.messages import EXCHANGE_BYTES_MAX
from hyperscale.runtime.host import Stream
from hyperscale.wire.frames import FrameDecoder, encode_frame

READ_BYTES: Final = 64 * 1024


class ExchangeStream:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._frames = FrameDecoder(EXCHANGE_BYTES_MAX)
        self._ready: list[bytes] = []
        self.bytes_out = 0

    async def send(self, message: bytes) -> None:
        frame = encode_frame(message)
        self.bytes_out += len(frame)
        self._stream.write(frame)
        await self._stream.drain()

    async def receive(self) -> bytes:
        while not self._ready:
            data = await self._stream.read(READ_BYTES)
            if not data:
                raise ConnectionResetError("the exchange ended early")
            self._frames.feed(data)
            self._ready += [payload for _flags, payload in self._frames]
        return self._ready.pop(0)

    def close(self) -> None:
        self._stream.close()
