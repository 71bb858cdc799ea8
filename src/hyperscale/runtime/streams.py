"""TCP streams on the event loop's own transports.

A transport calls the protocol with whatever arrived; the reader takes it chunk by chunk. When
nobody reads, the transport is paused, so an idle reader costs a bounded buffer and then the
sender's time. A pump that waits is given a small chunk on the spot: waking its task would cost
another turn of the loop, which for one small message is as much as all the rest.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import cast

from hyperscale.runtime.host import PUMP_BYTES, Address, Stream

# Unread bytes at which the transport is paused: several reads' worth, far below any memory worry.
PAUSE_READING_BYTES = 512 * 1024
# Unsent bytes at which `drain` waits: a few times what a socket buffer takes at once.
PAUSE_WRITING_BYTES = 256 * 1024
# How long a closed stream may keep its unsent bytes for a peer that does not read them.
LINGER_S = 10.0


def address_of(socket_name: object) -> Address:
    """Host and port of a socket's name; IPv6 names carry two more fields."""
    if isinstance(socket_name, tuple) and len(socket_name) >= 2:
        return Address(str(socket_name[0]), int(socket_name[1]))
    return Address("", 0)


class RealStream(asyncio.Protocol, Stream):
    """Both the loop's protocol and the `Stream` that node code holds."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._peer = Address("", 0)
        self._chunks: deque[bytes] = deque()
        self._unread = 0
        self._reading_paused = False
        self._ended = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._take: Callable[[bytes], None] | None = None
        self._writing_paused = False
        self._drainers: list[asyncio.Future[None]] = []
        self._linger: asyncio.TimerHandle | None = None

    @property
    def peer(self) -> Address:
        return self._peer

    def peer_certificate(self) -> bytes | None:
        if self._transport is None:
            return None
        tls = self._transport.get_extra_info("ssl_object")
        return cast("ssl.SSLObject", tls).getpeercert(binary_form=True) if tls else None

    async def read(self, limit: int) -> bytes:
        while not self._chunks:
            if self._error is not None:
                raise ConnectionError(f"the stream to {self._peer} broke: {self._error}")
            if self._ended:
                return b""
            if self._reader is not None:
                raise RuntimeError("two readers of one stream")
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        chunk = self._chunks.popleft()
        if len(chunk) > limit:
            self._chunks.appendleft(chunk[limit:])
            chunk = chunk[:limit]
        self._unread -= len(chunk)
        if self._reading_paused and self._unread < PAUSE_READING_BYTES // 2:
            self._reading_paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()
        return chunk

    async def pump(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        try:
            await super().pump(take)
        finally:
            self._take = None

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        if self._writing_paused and not self._ended:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._drainers.append(waiter)
            try:
                await waiter
            finally:
                self._drainers.remove(waiter)
        if self._error is not None:
            raise ConnectionError(f"the stream to {self._peer} broke: {self._error}")

    def close(self) -> None:
        self._chunks.clear()
        self._unread = 0
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()
            self._linger = asyncio.get_running_loop().call_later(LINGER_S, self.abort)

    def abort(self) -> None:
        """Close without waiting for unsent bytes."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=PAUSE_WRITING_BYTES)
        self._peer = address_of(transport.get_extra_info("peername"))

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        if (
            self._take is not None
            and len(data) < PUMP_BYTES
            and reader is not None
            and not reader.done()
        ):
            try:
                self._take(data)
            except Exception as error:  # noqa: BLE001 - the pump raises it
                if not reader.done():
                    reader.set_exception(error)
            return
        self._chunks.append(data)
        self._unread += len(data)
        if self._unread > PAUSE_READING_BYTES and not self._reading_paused:
            self._reading_paused = True
            if self._transport is not None:
                self._transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> bool:
        self._ended = True
        self._wake_reader()
        return False  # the transport closes itself once everything is sent

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._error = exc
        # Its buffers, a quarter of a megabyte under TLS, would stay until somebody collects cycles.
        self._transport = None
        if self._linger is not None:
            self._linger.cancel()
            self._chunks.clear()
        self._wake_reader()
        self.resume_writing()

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        for waiter in self._drainers:
            if not waiter.done():
                waiter.set_result(None)

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
