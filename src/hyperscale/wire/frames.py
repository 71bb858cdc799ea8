"""Frames on a byte stream: 4 bytes of length, 1 byte of flags, the payload.

The length counts what follows it, big-endian. It is judged before a byte of the payload is kept,
so what a stranger announces costs nothing. `FrameDecoder` takes the stream in any pieces.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from hyperscale.wire.errors import Malformed

PREFIX = struct.Struct("!IB")
LENGTH_BYTES = 4
COMPRESSED = 0x01
KNOWN_FLAGS = COMPRESSED

# What one message may take when its kind sets no other limit.
DEFAULT_LIMIT_BYTES = 1024 * 1024

Screen = Callable[[int, int, bytes], bool | None]
"""(flags, size, beginning) of a frame still arriving: True to skip it, False to keep it, None to
be asked again with more of it."""


def encode_frame(payload: bytes, flags: int = 0) -> bytes:
    return PREFIX.pack(len(payload) + 1, flags) + payload


class FrameDecoder:
    """Bytes in through `feed`, (flags, payload) out by iterating; what is incomplete waits."""

    def __init__(
        self, limit_bytes: int = DEFAULT_LIMIT_BYTES, screen: Screen | None = None
    ) -> None:
        self.limit_bytes = limit_bytes
        self.screen = screen
        self.arrived: Callable[[], None] | None = None
        """Called when a frame that the screen kept has come in whole."""
        self._buffer: bytes | bytearray = b""
        self._at = 0
        self._to_skip = 0
        self._screened = False

    @property
    def buffered_bytes(self) -> int:
        return len(self._buffer) - self._at

    def feed(self, data: bytes) -> None:
        if self._at == len(self._buffer):
            self._buffer = data
            self._at = 0
        else:
            if not isinstance(self._buffer, bytearray):
                self._buffer = bytearray(memoryview(self._buffer)[self._at :])
                self._at = 0
            elif self._at:
                del self._buffer[: self._at]
                self._at = 0
            self._buffer += data
        if self._to_skip:
            self._skip()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """The complete frames. Raises Malformed where the stream stops making sense."""
        unpack = PREFIX.unpack_from
        while True:
            buffer, at = self._buffer, self._at
            available = len(buffer) - at
            if available < PREFIX.size:
                return
            length, flags = unpack(buffer, at)
            if length == 0 or length > self.limit_bytes:
                raise Malformed(
                    f"a frame of {length:,} bytes, where 1 to {self.limit_bytes:,} are allowed"
                )
            if flags & ~KNOWN_FLAGS:
                raise Malformed(f"unknown frame flags {flags:#04x}")
            end = at + LENGTH_BYTES + length
            if end > len(buffer):
                self._judge_partial(flags, length, at)
                return
            self._at = end
            if self._screened:
                self._screened = False
                if self.arrived is not None:
                    self.arrived()
            yield flags, bytes(buffer[at + PREFIX.size : end])

    def close(self) -> None:
        """Drop what is there: half a frame may be tens of megabytes. Whoever screens frames holds
        their decoder, so the two would keep each other until the collector comes."""
        self.screen = self.arrived = None
        self._buffer, self._at, self._to_skip = b"", 0, 0

    def _judge_partial(self, flags: int, length: int, at: int) -> None:
        if self.screen is None or self._screened:
            return
        verdict = self.screen(flags, length - 1, bytes(self._buffer[at + PREFIX.size :]))
        if verdict is None:
            return
        self._screened = True
        if verdict:
            self._to_skip = LENGTH_BYTES + length
            self._skip()

    def _skip(self) -> None:
        skipped = min(self._to_skip, len(self._buffer) - self._at)
        self._at += skipped
        self._to_skip -= skipped
        if not self._to_skip:
            self._screened = False
