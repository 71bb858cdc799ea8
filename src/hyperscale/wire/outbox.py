"""Frames on their way out: gathered within one turn of the loop, written at once.

One write per turn is one TLS record and one system call for all requests of that turn. When the
other side does not keep up, `congested` tells callers to wait and `overfull` tells servers to
refuse; when it does not read at all, the connection is given up instead of the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hyperscale.runtime.host import Host, Stream

# Written without looking whether the stream has room: a quarter of its own buffer or so.
UNCHECKED_BYTES = 256 * 1024
# Written while the stream is full: from here on the peer gets no new work done,
OVERFULL_BYTES = 4 * 1024 * 1024
# and from here on it is taken for one that does not read at all.
STALLED_BYTES = 64 * 1024 * 1024


class Outbox:
    def __init__(self, host: Host, stream: Stream, broken: Callable[[str], None]) -> None:
        self._host = host
        self._stream = stream
        self._broken = broken
        self._loop = asyncio.get_running_loop()
        self._frames: list[bytes] = []
        self._gathered = 0
        self._scheduled = False
        self._closed = False
        self._since_drain = 0
        self.congested = False
        self._room = asyncio.Event()
        self._room.set()

    @property
    def overfull(self) -> bool:
        return self._since_drain > OVERFULL_BYTES and self.congested

    def put(self, frame: bytes) -> None:
        if self._closed:
            return
        self._frames.append(frame)
        self._gathered += len(frame)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turned)
        if self._gathered > UNCHECKED_BYTES:
            self.flush()

    async def room(self) -> None:
        """Return when the stream takes bytes again, or will never again."""
        await self._room.wait()

    def _turned(self) -> None:
        self._scheduled = False
        self.flush()

    def flush(self) -> None:
        if not self._frames or self._closed:
            return
        data = self._frames[0] if len(self._frames) == 1 else b"".join(self._frames)
        self._frames.clear()
        self._gathered = 0
        self._stream.write(data)
        self._since_drain += len(data)
        if self.congested:
            if self._since_drain > STALLED_BYTES:
                self._broken("the other side does not read what it is sent")
        elif self._since_drain > UNCHECKED_BYTES:
            self.congested = True
            self._room.clear()
            try:
                self._host.tasks.spawn(f"drain {self._stream.peer}", self._drain())
            except RuntimeError:
                self._broken("this host is stopping")

    def close(self) -> None:
        """Write what is waiting, and wake everyone who waits for room."""
        self.flush()
        self._closed = True
        self._room.set()

    async def _drain(self) -> None:
        try:
            await self._stream.drain()
        except ConnectionError as error:
            self._broken(str(error))
        finally:
            self.congested = False
            self._since_drain = 0
            self._room.set()
